//! A gateway on a router between two hosts with kernel TCP at both ends: check, run, kill, undo.

#![expect(clippy::print_stdout, reason = "a test that cannot run here says so")]

mod firewall;
mod lab;
mod priority;
mod restart;

use bentpipe_os::nft;
use lab::{FAR, HOST, Lab, ROUTER, echo, err, ip, out, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

fn figures(lab: &Lab) -> Value {
    let output = lab.gateway(&["status", "--json"]);
    serde_json::from_str(&out(&output)).unwrap_or_else(|e| panic!("{e}: {}", err(&output)))
}

#[test]
fn a_check_shows_everything_and_leaves_no_trace() {
    let Some(lab) = Lab::new("check", true) else { return };
    let before = lab.traces();
    let file = lab.file("");
    let output = lab.gateway(&["check", &file]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", err(&output));
    for wanted in [
        "TCP that is forwarded from eth1 to eth0",
        "ip tuntap add dev bentlan mode tun vnet_hdr",
        "ip -6 rule add pref 6270 fwmark 0x6270/0xffffffff lookup 6270",
        "add rule inet bentpipe_gateway inward iifname \"eth0\" meta l4proto tcp",
        "ok  rehearsal",
        "the gateway would start",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    let json: Value = serde_json::from_str(&out(&lab.gateway(&["check", &file, "--json"]))).expect("JSON");
    assert_eq!(json["starts"], true);
    assert_eq!(lab.traces(), before);
    assert_eq!(out(&lab.gateway(&["undo"])), "nothing to undo\n");
    assert_eq!(lab.traces(), before);
}

#[test]
fn what_is_missing_is_named_before_anything_is_changed() {
    let Some(lab) = Lab::new("missing", true) else { return };
    let before = lab.traces();
    let refused = |file: &str, wanted: &[&str]| {
        for verb in ["check", "run"] {
            let output = lab.gateway(&[verb, file]);
            let text = out(&output) + &err(&output);
            assert_eq!(output.status.code(), Some(2), "{verb}: {text}");
            for wanted in wanted {
                assert!(text.contains(wanted), "{verb}: {wanted} is not in\n{text}");
            }
            assert_eq!(lab.traces(), before, "{verb}");
        }
    };
    let file = lab.file("");
    let wrong = text(Path::new(&file)).replace("\"eth0\"", "\"eth9\"");
    fs::write(&file, wrong).expect("a file");
    refused(&file, &["interface eth9", "it does not exist", "did you mean eth"]);
    refused(
        &lab.file("[status]\nrecords = \"/nowhere/flows.csv\"\n"),
        &["records /nowhere/flows.csv", "no such folder"],
    );
    refused(&lab.file("[status]\nprometheus = \"192.0.2.1:9464\"\n"), &["metrics at 192.0.2.1:9464"]);
    refused(&lab.file("[[rules]]\naction = \"drop\"\n"), &["gw.toml:9:10", "it can be accelerate, pass"]);
    let file = lab.file("");
    for (args, wanted) in [
        ("link add bentsat type veth peer name other", "interface bentsat"),
        ("rule add pref 6271 fwmark 0x77 lookup 77", "rule preference 6271"),
        ("rule add pref 9 fwmark 0x6270 lookup 77", "mark 0x6270"),
        ("route add 192.0.2.0/24 dev eth0 table 6271", "routing table 6271"),
    ] {
        lab.at(ROUTER, || ip(args)).expect("to take it");
        let output = lab.gateway(&["run", &file]);
        let undone = args.replace(" add ", " del ").replace(" type veth peer name other", "");
        lab.at(ROUTER, || ip(&undone)).expect("to give it back");
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains(&format!("{wanted}: already in use")), "{}", err(&output));
    }
    lab.at(ROUTER, || nft::run("add table inet bentpipe_gateway")).expect("a table");
    assert!(
        err(&lab.gateway(&["run", &file])).contains("nftables table inet bentpipe_gateway: already in use")
    );
    lab.at(ROUTER, || nft::run("delete table inet bentpipe_gateway")).expect("it goes");
    lab.at(ROUTER, || {
        for name in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            fs::write(format!("/proc/sys/net/{name}"), "0").expect("a setting");
        }
    });
    let output = lab.gateway(&["run", &file]);
    assert!(err(&output).contains("this machine is not a router\nhelp: sudo sysctl"), "{}", err(&output));
    assert_eq!(lab.traces(), before);
}

#[test]
fn without_nft_or_permission_nothing_is_tried() {
    let Some(lab) = Lab::new("permission", true) else { return };
    let file = lab.file("");
    let before = lab.traces();
    let output = lab.gateway_with(&["run", &file], |command| {
        command.env("PATH", "/nowhere");
    });
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output).contains("error: nft: missing\nhelp: sudo apt-get install nftables"),
        "{}",
        err(&output)
    );
    // an ordinary user, in a folder that everyone can write to
    let open = |path: &Path| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o777))
    };
    open(&lab.folder).expect("a folder for all");
    let program = lab.folder.join("bentpipe");
    fs::copy(env!("CARGO_BIN_EXE_bentpipe"), &program).expect("a copy");
    let can_reach = std::process::Command::new(&program).arg("--version").uid(65_534).gid(65_534).output();
    if can_reach.is_ok_and(|o| o.status.success()) {
        let run_dir = lab.run_dir().display().to_string();
        let output = lab.at(ROUTER, || {
            let args = ["gateway", "check", &file, "--run-dir", &run_dir];
            std::process::Command::new(&program)
                .args(args)
                .uid(65_534)
                .gid(65_534)
                .output()
                .expect("it starts")
        });
        let text = out(&output);
        assert_eq!(output.status.code(), Some(2), "{text}{}", err(&output));
        assert!(text.contains("NO  permission") && text.contains("needs CAP_NET_ADMIN"), "{text}");
        assert!(text.contains("add table inet bentpipe_gateway"), "{text}");
    } else {
        println!("SKIPPED without permission: nobody cannot reach {}", program.display());
    }
    assert_eq!(lab.traces(), before);
}

#[test]
fn packets_go_through_the_gateway_and_all_changes_are_undone() {
    let Some(lab) = Lab::new("run", true) else { return };
    let before = lab.traces();
    let gateway = lab.start(&lab.file(""));
    for v6 in [false, true] {
        assert!(lab.ping(v6), "IPv6: {v6}");
        echo(&mut lab.connect(v6), 3_000_000);
    }
    let status = figures(&lab);
    for from in 0..2 {
        let bytes = status["figures"]["bytes"][from].as_u64().expect("a number");
        assert!(bytes > 6_000_000, "{status}");
    }
    assert!(status["figures"]["port_drops"].as_array().is_some_and(|d| d.len() >= 4));
    assert!(out(&lab.gateway(&["top", "--once"])).starts_with("bentpipe gateway gateway  routed  "));
    assert!(out(&lab.gateway(&["flows"])).starts_with("LAN "));
    let twice = lab.gateway(&["run", &lab.file("")]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(err(&twice).contains(&format!("gateway `gateway` is running (process {})", gateway.pid())));
    let again = lab.gateway(&["check", &lab.file("")]);
    assert_eq!(again.status.code(), Some(2));
    assert!(out(&again).contains("it is running"), "{}", out(&again));
    let (status, log) = gateway.end(Signal::TERM);
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("event=\"ended\" text=\"stopped by a signal\""), "{log}");
    assert_eq!(lab.traces(), before, "{log}");
    let none = lab.gateway(&["status"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("no gateway is running"));
}

#[test]
fn with_a_rate_everything_to_the_satellite_goes_through() {
    let Some(lab) = Lab::new("paced", true) else { return };
    let file = lab.file("");
    let paced = text(Path::new(&file)).replace("[satellite]\n", "[satellite]\nrate = \"24 Mbit/s\"\n");
    fs::write(&file, paced).expect("a file");
    let _gateway = lab.start(&file);
    let packets = || figures(&lab)["figures"]["packets"].clone();
    let first = packets();
    assert!(lab.ping(false) && lab.ping(true));
    let then = packets();
    let more = |side: usize| then[side].as_u64().unwrap() - first[side].as_u64().unwrap();
    assert!(more(0) >= 4, "two echo requests of each family: {first} {then}");
    assert_eq!(more(1), 0, "answers have another hop: {first} {then}");
}

#[test]
fn when_it_is_killed_the_kernel_forwards_by_itself() {
    let Some(lab) = Lab::new("killed", true) else { return };
    let before = lab.traces();
    let gateway = lab.start(&lab.file(""));
    let mut streams = [lab.connect(false), lab.connect(true)];
    for stream in &mut streams {
        echo(stream, 1_000_000);
    }
    // in the middle of a transfer
    let busy = lab.connect(false);
    let send = move || {
        let mut busy = busy;
        echo(&mut busy, 20_000_000);
    };
    let running = std::thread::Builder::new().spawn(send).expect("a thread");
    gateway.end(Signal::KILL);
    for stream in &mut streams {
        echo(stream, 1_000_000);
    }
    running.join().expect("every byte came back");
    assert!(lab.ping(false) && lab.ping(true));
    echo(&mut lab.connect(true), 1_000_000);
    let checked = out(&lab.gateway(&["check", &lab.file("")]));
    assert!(checked.contains("it was killed and left rules behind"), "{checked}");
    let undone = out(&lab.gateway(&["undo"]));
    assert!(undone.contains("gateway gateway: nftables table inet bentpipe_gateway removed\n"), "{undone}");
    assert!(undone.contains("IPv6 routing rule for mark 0x6271 removed\n"), "{undone}");
    assert_eq!(lab.traces(), before);
    assert!(lab.ping(false));
}

#[test]
fn a_planned_end_loses_no_byte_of_what_is_under_way() {
    let Some(lab) = Lab::new("planned", true) else { return };
    let gateway = lab.start(&lab.file(""));
    let busy = [false, true].map(|v6| {
        let mut stream = lab.connect(v6);
        let send = move || {
            echo(&mut stream, 20_000_000);
            stream
        };
        std::thread::Builder::new().spawn(send).expect("a thread")
    });
    let (status, log) = gateway.end(Signal::TERM);
    assert_eq!(status, Some(0), "{log}");
    for sending in busy {
        let mut stream = sending.join().expect("every byte came back");
        echo(&mut stream, 1_000_000);
    }
}

#[test]
fn the_next_run_undoes_what_a_killed_one_left() {
    let Some(lab) = Lab::new("again", true) else { return };
    let before = lab.traces();
    lab.start(&lab.file("")).end(Signal::KILL);
    let gateway = lab.start(&lab.file(""));
    assert!(gateway.lines.contains("event=\"leftover\""), "{}", gateway.lines);
    echo(&mut lab.connect(false), 1_000_000);
    assert!(figures(&lab)["figures"]["bytes"][0].as_u64().unwrap() > 1_000_000);
    // undoing a running gateway stops it
    let undone = out(&lab.gateway(&["undo"]));
    assert!(undone.contains(&format!("process {} stopped", gateway.pid())), "{undone}");
    assert_eq!(lab.traces(), before);
}

#[test]
fn addresses_are_translated_beside_it() {
    let Some(lab) = Lab::new("translated", false) else { return };
    let rules = "add table inet mine
add chain inet mine out { type nat hook postrouting priority 100; }
add rule inet mine out oifname \"eth0\" masquerade
add chain inet mine pass { type filter hook forward priority 0; }
add rule inet mine pass ct state invalid drop
";
    if let Err(why) = lab.at(ROUTER, || nft::run(rules)) {
        println!("SKIPPED translated: {why}");
        return;
    }
    let before = lab.traces();
    let mut early = lab.connect(false);
    echo(&mut early, 100_000);
    let gateway = lab.start(&lab.file(""));
    let mut late = [lab.connect(false), lab.connect(true)];
    for stream in &mut late {
        echo(stream, 1_000_000);
    }
    echo(&mut early, 1_000_000);
    assert!(figures(&lab)["figures"]["bytes"][1].as_u64().unwrap() > 3_000_000);
    gateway.end(Signal::KILL);
    for stream in &mut late {
        echo(stream, 1_000_000);
    }
    echo(&mut early, 1_000_000);
    echo(&mut lab.connect(true), 1_000_000);
    lab.gateway(&["undo"]);
    assert_eq!(lab.traces(), before);
}

#[test]
fn its_file_is_read_again_without_losing_a_connection() {
    let Some(lab) = Lab::new("reload", true) else { return };
    let file = lab.file("");
    let mut gateway = lab.start(&file);
    let mut stream = lab.connect(false);
    echo(&mut stream, 100_000);
    let reload = || lab.gateway(&["reload"]);
    assert!(out(&reload()).ends_with("has not changed\n"));
    lab.file("[[rules]]\naction = \"pass\"\nport = 22\n");
    assert!(out(&reload()).ends_with("is in effect\n"));
    lab.file("[[rules]]\naction = \"pas\"\n");
    let refused = reload();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        err(&refused).contains("gw.toml:9:10") && err(&refused).contains("did you mean `pass`?"),
        "{}",
        err(&refused)
    );
    lab.file("mark = 7\n");
    assert!(err(&reload()).contains("[deploy] cannot change while the gateway runs"));
    lab.file("[[rules]]\naction = \"pass\"\nport = 23\n");
    gateway.signal(Signal::HUP);
    gateway.wait_for("event=\"reloaded\" text=\"");
    echo(&mut stream, 100_000);
    assert_eq!(gateway.end(Signal::TERM).0, Some(0));
}

#[test]
fn it_keeps_no_more_rights_than_it_needs() {
    let Some(lab) = Lab::new("rights", true) else { return };
    let gateway = lab.start(&lab.file(""));
    let process = text(Path::new(&format!("/proc/{}/status", gateway.pid())));
    // CAP_NET_ADMIN is 12, CAP_SYS_NICE is 23
    let most = 1_u64 << 12 | 1 << 23;
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let line = process.lines().find_map(|l| l.strip_prefix(&format!("{name}:\t"))).expect(name);
        let set = u64::from_str_radix(line, 16).expect("a number");
        assert_eq!(set & !most, 0, "{name} {line}");
    }
    assert!(process.contains("NoNewPrivs:\t1"), "{process}");
    let threads = fs::read_dir(format!("/proc/{}/task", gateway.pid())).expect("its threads");
    for thread in threads.flatten() {
        let status = text(&thread.path().join("status"));
        let line = status.lines().find_map(|l| l.strip_prefix("CapEff:\t")).expect("a set");
        assert_eq!(u64::from_str_radix(line, 16).expect("a number") & !most, 0, "{status}");
    }
}

#[test]
fn prometheus_finds_metrics() {
    let Some(lab) = Lab::new("metrics", true) else { return };
    let _gateway = lab.start(&lab.file("[status]\nprometheus = \"127.0.0.1:9464\"\n"));
    let ask = || {
        let mut stream = lab.at(ROUTER, || TcpStream::connect("127.0.0.1:9464")).expect("a listener");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("a request");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        page
    };
    echo(&mut lab.connect(false), 100_000);
    let value = || -> f64 {
        let page = ask();
        let line = page
            .lines()
            .find(|l| l.starts_with("bentpipe_gateway_bytes_total{gateway=\"gateway\",from=\"lan\"}"));
        line.and_then(|l| l.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{page}"))
    };
    wait_until("counting bytes", || value() > 100_000.0);
}

#[test]
fn two_gateways_of_different_names_stand_side_by_side() {
    let Some(lab) = Lab::new("two", true) else { return };
    let before = lab.traces();
    let first = lab.start(&lab.file(""));
    let other = "name = \"two\"\ntun_lan = \"twolan\"\ntun_satellite = \"twosat\"\nnft_table = \"two\"\nmark = 0x100\ntable = 100\npriority = 100\n";
    let second = lab.start(&lab.file(other));
    let which = lab.gateway(&["status"]);
    assert!(
        err(&which).contains("there are 2 gateways: choose one with --name\nhelp: gateway, two"),
        "{}",
        err(&which)
    );
    assert!(out(&lab.gateway(&["status", "--name", "two"])).starts_with("gateway two (routed, "));
    assert!(lab.ping(false));
    assert_eq!(second.end(Signal::INT).0, Some(0));
    assert_eq!(first.end(Signal::TERM).0, Some(0));
    assert_eq!(lab.traces(), before);
}

#[test]
fn connections_are_listed_and_recorded_by_their_real_addresses_and_rules_see_them() {
    let Some(lab) = Lab::new("flows", true) else { return };
    let records = lab.folder.join("flows.jsonl");
    let more = format!(
        "[[rules]]\naction = \"pass\"\nfrom = \"fd77:1::/64\"\nopened_from = \"lan\"\n[policy]\nsubscriber_prefix = {{ v4 = 24, v6 = 48 }}\n[limits]\nclosing = \"1 s\"\n[status]\nrecords = \"{}\"\n",
        records.display()
    );
    let _gateway = lab.start(&lab.file(&more));
    let mut streams = [lab.connect(false), lab.connect(true)];
    for stream in &mut streams {
        echo(stream, 200_000);
    }
    let page: Value = serde_json::from_str(&out(&lab.gateway(&["flows", "--json"]))).expect("JSON");
    assert_eq!(page["all"], 2, "{page}");
    for (host, subscriber, why) in
        [("10.77.1.2:", "10.77.1.0/24", Value::Null), ("[fd77:1::2]:", "fd77:1::/48", "policy".into())]
    {
        let flows = page["flows"].as_array().expect("a list");
        let flow = flows.iter().find(|f| f["lan"].as_str().is_some_and(|lan| lan.starts_with(host)));
        let flow = flow.unwrap_or_else(|| panic!("no {host} in {page}"));
        assert_eq!((flow["subscriber"].as_str(), &flow["why_passing"]), (Some(subscriber), &why), "{page}");
        assert_eq!(
            (flow["opened_from"].as_str(), flow["state"].as_str()),
            (Some("lan"), Some("established"))
        );
        assert!(flow["bytes"][0].as_u64() >= Some(200_000) && flow["bytes"][1].as_u64() >= Some(200_000));
    }
    // from now on IPv4 connections pass; existing ones stay as they are
    lab.file(&more.replace("\"fd77:1::/64\"", "\"10.77.1.2\""));
    assert!(out(&lab.gateway(&["reload"])).ends_with("is in effect\n"));
    let mut late = lab.connect(false);
    echo(&mut late, 100_000);
    for stream in &mut streams {
        echo(stream, 100_000);
    }
    let passing = figures(&lab)["figures"]["passing"].as_u64();
    assert_eq!(passing, Some(2));
    drop(streams);
    drop(late);
    wait_until("recording", || text(&records).lines().count() == 3);
    for line in text(&records).lines() {
        let record: Value = serde_json::from_str(line).expect("JSON");
        assert!(
            record["satellite"].as_str().is_some_and(|s| s.contains("77:2") || s.contains("77.2.2")),
            "{line}"
        );
        assert!(record["end"].is_string() && record["ended_unix_s"].as_u64() > Some(1_700_000_000), "{line}");
    }
}

#[test]
fn inline_it_is_the_wire_between_two_interfaces() {
    let Some(lab) = Lab::new("inline", true) else { return };
    // one network over two wires: the router no longer routes
    lab.at(ROUTER, || {
        for interface in ["eth0", "eth1"] {
            ip(&format!("addr flush dev {interface}")).expect("no addresses");
        }
    });
    lab.at(FAR, || {
        ip("addr add 10.77.1.3/24 dev b0").expect("an address");
        ip("-6 addr add fd77:1::3/64 dev b0 nodad").expect("an address");
    });
    let file = lab.file("");
    let inline = text(Path::new(&file)).replace("routed", "inline").replace("watch = \"0 s\"\n", "");
    fs::write(&file, inline).expect("a file");
    let reach = |address: &str| {
        let args = ["-c", "2", "-i", "0.1", "-W", "2", address];
        lab.at(HOST, || std::process::Command::new("ping").args(args).output())
            .is_ok_and(|o| o.status.success())
    };
    assert!(!reach("10.77.1.3"), "there is no wire yet");
    let before = lab.traces();
    let checked = lab.gateway(&["check", &file]);
    assert_eq!(checked.status.code(), Some(0), "{}", out(&checked));
    assert!(out(&checked).contains("every frame between eth1 and eth0"));
    let gateway = lab.start(&file);
    for address in ["10.77.1.3", "fd77:1::3"] {
        // a host that was just unreachable is only resolved again after some seconds
        wait_until("reaching the other end", || reach(address));
        let mut stream = lab.connect_to(address);
        echo(&mut stream, 1_000_000);
    }
    assert!(figures(&lab)["figures"]["bytes"][0].as_u64() > Some(2_000_000));
    assert_eq!(gateway.end(Signal::TERM).0, Some(0));
    assert!(!reach("10.77.1.3"), "the wire is gone");
    assert_eq!(lab.traces(), before);
}
