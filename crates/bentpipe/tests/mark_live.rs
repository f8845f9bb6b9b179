//! The example node on live links: tcpdump counts as many marked packets as the node does, whether the
//! kernel hands over super-packets or not, and a journal of it replays byte for byte.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test: what is skipped is printed, what fails may panic"
)]

use lab::passage::{Forwarding, GatewayKind, Host, RouterTestbed};
use lab::rig::{self, json};
use lab::{Rig, Who, capture};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// The near end of an emulated link is the last host, here `b`. The buffer holds the whole windows of 400 KB,
/// so that no marked packet is lost.
const SCENARIO: &str = r#"schema = 1
title = "marked"
duration = "30 s"
[[hosts]]
name = "a"
[[hosts]]
name = "b"
[[links]]
name = "satellite"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "20 ms"
buffer = "20 MB"
[[flows]]
name = "unused"
from = "a"
to = "b"
"#;

const NODE: &str = r#"[[nodes]]
name = "marker"
kind = "mark"
link = "satellite"
every = 10
dscp = 10
"#;

/// Shell code that captures incoming data segments with DSCP 10 into `$FILE`, and calls `work` meanwhile.
/// Pure ACKs are left out: when a connection closes, the kernel copies the DSCP into its last ones.
const CAPTURE: &str = r#"
me=; [ "$(id -u)" = 0 ] && me='-Z root'
tcpdump $me -i $PORT -Q in -w "$FILE" -s 96 -B 8192 --time-stamp-precision=nano --immediate-mode \
  'tcp and ip[1] & 0xfc = 40 and ip[2:2] - ((ip[0] & 0xf) << 2) != (tcp[12] & 0xf0) >> 2' 2>"$FILE.log" & t=$!
i=0; until grep -q 'listening on' "$FILE.log"; do i=$((i+1)); [ $i -lt 100 ] || { cat "$FILE.log" >&2; exit 9; }; sleep 0.05; done
work || exit 8
sleep 0.5; kill -INT $t; wait $t
"#;

/// Returns the program `mark` in a rig, or prints the reason why the test is skipped.
fn rig(test: &str, who: Who) -> Option<Rig> {
    let needed = ["iperf3", "tcpdump", "ethtool", "ip", "unshare", "nsenter"];
    let why = match needed.iter().find(|p| !rig::has(p)) {
        Some(missing) => format!("{missing} is not installed"),
        None if who == Who::CurrentUser && !rig::is_root() => "it takes root".to_owned(),
        None => match Rig::new(&program(), who) {
            Ok(rig) => return Some(rig),
            Err(why) => why,
        },
    };
    println!("SKIPPED {test}: {why}");
    None
}

/// Returns the example's program, which cargo builds before it runs the tests.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("examples/mark");
    assert!(program.exists(), "build it first: cargo build -p bentpipe --example mark");
    program
}

/// Returns a script that captures what comes in at `port` into `file` while `work` runs.
fn capturing(port: &str, file: &Path, work: &str) -> String {
    format!("PORT={port}; FILE='{}'; work() {{ {work}; }}{CAPTURE}", file.display())
}

fn marks(file: &Path) -> u64 {
    capture::read(file).unwrap().len() as u64
}

/// Asserts that tcpdump has seen each mark, `seen` forward and backward.
fn assert_marked(node: &Value, seen: [u64; 2]) {
    // an object in a report, a list of pairs in a gateway's status
    let counters = &node["counters"];
    let in_list = |key: &str| counters.as_array()?.iter().find(|pair| pair[0] == key)?[1].as_u64();
    let of = |key: &str| {
        counters[key].as_u64().or_else(|| in_list(key)).unwrap_or_else(|| panic!("{key}: {node}"))
    };
    assert_eq!(seen, [of("marked_forward"), of("marked_backward")], "{node}");
    for side in ["forward", "backward"] {
        let data = of(&format!("data_{side}"));
        assert!(data > 1000 && of(&format!("marked_{side}")) == data / 10, "{node}");
    }
}

#[test]
fn marks_on_an_emulated_link_are_counted_and_replayed() {
    const TEST: &str = "marks_on_an_emulated_link_are_counted_and_replayed";
    let Some(rig) = rig(TEST, Who::CurrentUser) else { return };
    let scenario = rig.file("marked.toml", &format!("{SCENARIO}{NODE}")).unwrap();
    for offload in ["on", "off"] {
        let [near, far, out, journal] =
            ["near", "far", "out", "journal"].map(|n| rig.path(&format!("{n}-{offload}")));
        let off = format!("ethtool -K bent0 tx {offload} gso {offload} tso {offload} >&2");
        let work = format!("{off} && sleep 1 && iperf3 -4 -c far --bidir -w 400K -t 4 >&2");
        let far_end = capturing("any", &far, "iperf3 -s -1 >&2");
        let near_end = capturing("bent0", &near, &work);
        let paths = [&out, &journal].map(|path| path.display().to_string());
        let words = ["emulate", &scenario, "--seed", "1", "--out", &paths[0], "--journal", &paths[1]];
        let words = [&words[..], &["--far", &far_end, "--", "sh", "-c", &near_end]].concat();
        rig.output(&words, LIMIT).unwrap();
        let report = json(&out.join("report.json")).unwrap();
        assert_marked(&report["nodes"][0], [marks(&near), marks(&far)]);
        rig.output(&["replay", &paths[1]], LIMIT).unwrap();
    }
}

#[test]
fn marks_of_a_gateway_on_real_interfaces_are_counted() {
    const TEST: &str = "marks_of_a_gateway_on_real_interfaces_are_counted";
    let Some(rig) = rig(TEST, Who::CurrentUser) else { return };
    let [lan, satellite, run_dir] = ["lan", "satellite", "gateway"].map(|name| rig.path(name));
    let mark = rig.program().display().to_string();
    let bed = RouterTestbed::new(rig).unwrap();
    let node = NODE.replace("link = \"satellite\"\n", "");
    for offload in ["on", "off"] {
        for (host, interface) in [(Host::Sender, "ls"), (Host::Receiver, "lc")] {
            let words = ["-K", interface, "tx", offload, "gso", offload, "tso", offload];
            bed.start(host, "ethtool", &words).unwrap().wait(LIMIT).unwrap().succeeded("ethtool").unwrap();
        }
        let carrier = Forwarding::Accelerated(GatewayKind::Routed);
        // well below what the machine can carry, so that no packet is lost behind the node
        let gateway =
            bed.start_forwarding(carrier, &format!("rate = \"50 Mbit/s\"\nrtt = \"20 ms\"\n{node}")).unwrap();
        let [server, _] = carrier.ends();
        let far_end =
            capturing("lc", &satellite, &format!("sleep 1; iperf3 -4 -c {server} --bidir -t 4 >&2"));
        let near_end = capturing("ls", &lan, "iperf3 -4 -s -1 >&2");
        let start = |host, script: &str| bed.start(host, "sh", &["-c", script]).unwrap();
        let near = start(Host::Sender, &near_end);
        start(Host::Receiver, &far_end).wait(LIMIT).unwrap().succeeded("the receiver").unwrap();
        near.wait(LIMIT).unwrap().succeeded("the sender").unwrap();
        let words = ["gateway", "status", "--json", "--run-dir", &run_dir.display().to_string()];
        let status = bed.start(Host::Router, &mark, &words).unwrap().wait(LIMIT).unwrap().out;
        let status: Value = serde_json::from_str(&status).unwrap();
        gateway.end().unwrap();
        assert_marked(&status["figures"]["nodes"][0], [marks(&satellite), marks(&lan)]);
    }
}
