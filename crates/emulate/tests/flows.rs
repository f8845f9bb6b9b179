//! A scenario's flows as kernel sockets, between two namespaces joined by a plain veth pair: without a link,
//! so that only the sockets matter.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail and say why")]

use bentpipe_emulate::flows::{FlowResults, Flows, HostNamespace, KernelRequirements, kernel_requirements};
use bentpipe_emulate::wait_until_up;
use bentpipe_os::netlink::{Metrics, Netlink, Route, VethPair};
use bentpipe_os::{Clock, namespace};
use bentpipe_report::FlowReport;
use bentpipe_scenario::{Scenario, Source, load};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd as _, OwnedFd};

/// Two hosts joined by a veth pair.
struct Pair {
    networks: [OwnedFd; 2],
    addresses: [IpAddr; 2],
}

const INTERFACE: &str = "bent0";
const MAC: [u8; 6] = [2, 0x62, 0x65, 0x6e, 0x74, 1];

/// Creates the hosts; the test's thread ends in the second one. `None` without permission.
fn pair(test: &str) -> Option<Pair> {
    let make = || -> Result<Pair, Box<dyn Error>> {
        let networks = [namespace::new_network()?, namespace::new_network()?];
        let addresses = [1, 2].map(|i| IpAddr::from(Ipv4Addr::new(10, 55, 0, i)));
        Netlink::open()?.add_veth(&VethPair {
            name: INTERFACE,
            mac: MAC,
            peer: INTERFACE,
            peer_mac: MAC,
            peer_network: networks[0].as_fd(),
            mtu: 1500,
        })?;
        for (network, address) in networks.iter().zip(addresses) {
            namespace::in_network(network, || -> Result<(), bentpipe_os::netlink::Error> {
                let mut netlink = Netlink::open()?;
                netlink.set_up(INTERFACE)?;
                netlink.add_address(INTERFACE, address)?;
                let to = (IpAddr::from(Ipv4Addr::UNSPECIFIED), 0);
                netlink.add_route(&Route { to, interface: INTERFACE, metrics: Metrics::default() })
            })??;
        }
        for network in &networks {
            namespace::in_network(network, || wait_until_up(INTERFACE))??;
        }
        Ok(Pair { networks, addresses })
    };
    make().map_err(|error| println!("SKIPPED {test}: {error}")).ok()
}

/// Two hosts `a` and `b`, with these keys of `[host]` and these flows.
fn scenario(keys: &str, flows: &str) -> Scenario {
    let stop = if flows.contains("transfer") { "stop = \"finished\"" } else { "" };
    let text = format!(
        "schema = 1\ntitle = \"t\"\nduration = \"3 s\"\n{stop}\n[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n[[links]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nbuffer = \"100 packets\"\n[host]\n{keys}\n{flows}",
    );
    let source = Source::from_bytes("test", text.as_bytes()).unwrap();
    load(&source, &[], None).unwrap_or_else(|e| panic!("{e}"))
}

fn flow(more: &str) -> String {
    format!("[[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{more}\n")
}

fn run(pair: &Pair, scenario: &Scenario) -> (KernelRequirements, FlowResults) {
    let needs = kernel_requirements(scenario, &bentpipe_os::tcp::congestion_controls().unwrap())
        .unwrap_or_else(|e| panic!("{e}"));
    let place = |i: usize| HostNamespace {
        network: pair.networks[i].as_fd(),
        address: pair.addresses[i],
        v6: None,
        interface: INTERFACE,
    };
    let flows = Flows::open(scenario, &needs, &[Some(place(0)), Some(place(1))]);
    let flows = flows.unwrap_or_else(|e| panic!("{e}"));
    let outcome = flows.run(Clock::start(), &mut |_, _| true).unwrap();
    assert_eq!(outcome.faults, [""; 0]);
    (needs, outcome)
}

#[test]
fn a_transfer_ends_with_the_acknowledgment_of_its_last_byte() {
    let Some(pair) = pair("a_transfer_ends_with_the_acknowledgment_of_its_last_byte") else { return };
    let (_, out) = run(&pair, &scenario("", &flow("app = { transfer = \"3 MB\" }\nstart = \"100 ms\"")));
    let f = &out.reports[0];
    let tcp = f.tcp().unwrap();
    assert_eq!((tcp.bytes_acked, tcp.retransmits, tcp.timeouts), (3_000_000, 0, 0));
    assert!(tcp.established_s >= Some(0.1) && tcp.finished_s >= tcp.established_s, "{f:?}");
    let until = *out.record.time_s.last().unwrap();
    assert!(until < 2.0, "it stops when all is done: {until}");
    // nearly all acknowledged bytes were read
    assert!(f.goodput_bps * until > 0.99 * 24e6, "{f:?}");
    assert!(tcp.segments_sent >= 3_000_000 / 1460 && tcp.rtt_ms.p50.is_some(), "{f:?}");
    let shares: f64 = tcp.limited_by.shares().iter().map(|(_, share)| share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

/// The advertised window is the scenario's, although the kernel raises its limit after the first segments.
#[test]
fn a_window_is_what_is_asked_for() {
    for (window, keys) in [
        (128_000.0, "window = \"128 segments\"\nsegment = \"1000 B\"\ntimestamps = false\ntcp = \"newreno\""),
        (64_000.0, "window = \"64 segments\"\nsegment = \"1000 B\"\ntimestamps = false\ntcp = \"cubic\""),
        (65_535.0, "window = \"65535 B\"\nwindow_scale = false\ntimestamps = false\ntcp = \"newreno\""),
    ] {
        let Some(pair) = pair("a_window_is_what_is_asked_for") else { return };
        let (_, out) = run(&pair, &scenario(keys, &flow("app = { rate = \"20 Mbit/s\" }")));
        let windows = out.record.flows[0].column("receive_window_bytes").unwrap();
        let late = &windows[windows.len() / 2..];
        assert!(late.iter().all(|w| *w <= window), "{window}: {late:?}");
        let full = late.iter().filter(|w| (**w - window).abs() < 1.0).count();
        assert!(full * 10 > late.len() * 9, "{window}: {full} of {}: {late:?}", late.len());
        assert!((out.reports[0].goodput_bps / 20e6 - 1.0).abs() < 0.05, "{window}: {:?}", out.reports[0]);
    }
}

/// A slow reader buffers no more than the window, so the sender's window closes.
#[test]
fn a_slow_reader_closes_the_window() {
    let Some(pair) = pair("a_slow_reader_closes_the_window") else { return };
    let keys = "window = \"128 segments\"\nsegment = \"1000 B\"";
    let (_, out) = run(&pair, &scenario(keys, &flow("reader = { rate = \"2 Mbit/s\" }")));
    let f = &out.reports[0];
    assert!((f.goodput_bps / 2e6 - 1.0).abs() < 0.05, "{}", f.goodput_bps);
    let tcp = f.tcp().unwrap();
    assert!(tcp.limited_by.receiver_window > 0.8, "{tcp:?}");
    // 0.75 MB were read in 3 s; data acknowledged and not read is in the receive buffer
    let unread = tcp.bytes_acked as f64 - f.goodput_bps * 3.0 / 8.0;
    assert!((64e3..=256e3).contains(&unread), "{unread} of a window of 128000");
}

#[test]
fn questions_typing_and_datagrams_run_as_in_the_simulator() {
    let Some(pair) = pair("questions_typing_and_datagrams_run_as_in_the_simulator") else { return };
    let apps = [
        ("ask", "a", "b", "{ requests = { request = \"300 B\", response = \"20 kB\", think = \"50 ms\" } }"),
        ("type", "a", "b", "{ telnet = { size = \"10 B\", gap = \"20 ms\" } }"),
        ("voice", "b", "a", "{ udp = { size = \"200 B\", rate = \"64 kbit/s\" } }"),
        ("noise", "b", "a", "{ udp = { size = \"200 B\", rate = \"64 kbit/s\", pattern = \"poisson\" } }"),
    ];
    let one = |(name, from, to, app): (&str, &str, &str, &str)| {
        format!("[[flows]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\napp = {app}\n")
    };
    let scenario = scenario("", &apps.map(one).concat());
    let (_, out) = run(&pair, &scenario);
    let simulated = bentpipe_sim::run(&scenario);
    let asked = out.reports[0].tcp().unwrap().requests.as_ref().unwrap();
    // 3 s of 50 ms on average, drawn from the scenario's seed; the simulator adds RTTs and delayed ACKs
    let simulated_asked = simulated.flows[0].tcp().unwrap().requests.as_ref().unwrap().completed;
    assert!((simulated_asked..90).contains(&asked.completed), "{asked:?} {simulated_asked}");
    let typing = |f: &FlowReport| f.tcp().unwrap().telnet.clone().unwrap();
    let (typed, simulated_typed) = (typing(&out.reports[1]), typing(&simulated.flows[1]));
    assert!(typed.writes.abs_diff(simulated_typed.writes) <= 2, "{typed:?} {simulated_typed:?}");
    assert!(typed.acknowledged + 5 >= typed.writes && typed.ack_ms.p50.is_some(), "{typed:?}");
    for i in [2, 3] {
        let (real, simulated) = (out.reports[i].udp().unwrap(), simulated.flows[i].udp().unwrap());
        assert!(real.sent.abs_diff(simulated.sent) <= 1, "the same draws: {real:?} {simulated:?}");
        assert_eq!((real.lost, real.duplicates, real.reordered), (0, 0, 0));
        assert!(real.received + 1 >= real.sent && real.delay_ms.quantiles.p50.unwrap() < 5.0, "{real:?}");
    }
}

/// One sender and two receivers.
const STAR: &str = r#"
schema = 1
title = "t"
duration = "1 s"
hosts = [{ name = "s" }, { name = "a" }, { name = "b" }]
routers = [{ name = "r" }]
links = [
    { name = "1", from = "s", to = "r", rate = "1 Mbit/s", delay = "1 ms", buffer = "9 packets" },
    { name = "2", from = "r", to = "a", rate = "1 Mbit/s", delay = "1 ms", buffer = "9 packets" },
    { name = "3", from = "r", to = "b", rate = "1 Mbit/s", delay = "1 ms", buffer = "9 packets" },
]
flows = [
    { name = "old", from = "s", to = "a", tcp = "newreno", timestamps = false },
    { name = "new", from = "s", to = "b", tcp = "cubic" },
]
"#;

/// Two flows of a host may have SACK on and off: an option is only used when both ends offer it.
#[test]
fn options_are_switched_off_at_the_end_that_can_do_without() {
    let load = |text: &str| load(&Source::from_bytes("t", text.as_bytes()).unwrap(), &[], None).unwrap();
    let kernel = ["reno".to_owned(), "cubic".to_owned()];
    let found = kernel_requirements(&load(STAR), &kernel).unwrap();
    let value = |host: usize, path: &str| {
        let host = found.hosts.iter().find(|h| h.host == host).unwrap();
        host.settings.iter().find(|(p, _)| *p == path).unwrap().1.clone()
    };
    for (path, values) in [
        ("net/ipv4/tcp_sack", ["1", "0", "1"]),
        ("net/ipv4/tcp_timestamps", ["1", "0", "1"]),
        ("net/ipv4/tcp_window_scaling", ["1", "1", "1"]),
    ] {
        assert_eq!([0, 1, 2].map(|host| value(host, path)), values, "{path}");
    }
    assert_eq!(found.congestion, ["reno", "cubic"].map(|name| Some(name.to_owned())));
    // between the same two hosts it is not possible
    let error =
        kernel_requirements(&load(&STAR.replace("to = \"b\", tcp", "to = \"a\", tcp")), &kernel).unwrap_err();
    assert!(error.to_string().starts_with("flows `new` and `old` differ in SACK, and host `s`"), "{error}");
    assert!(error.is_refusal());
}

/// An older receiver lacks the option where it receives data: for requests, at the host that asks.
#[test]
fn an_option_is_off_at_the_receiver_that_does_not_know_it() {
    let kernel = ["reno".to_owned(), "cubic".to_owned()];
    let old = "receiver = { window = \"65535 B\", window_scale = false }";
    for (app, values) in
        [("\"bulk\"", ["1", "0"]), ("{ requests = { response = \"1 MB\", count = 1 } }", ["0", "1"])]
    {
        let found =
            kernel_requirements(&scenario("", &flow(&format!("app = {app}\n{old}"))), &kernel).unwrap();
        let scaling = |host: usize| {
            let settings = &found.hosts[host].settings;
            settings.iter().find(|(p, _)| *p == "net/ipv4/tcp_window_scaling").unwrap().1.clone()
        };
        assert_eq!([scaling(0), scaling(1)], values, "{app}");
    }
}

#[test]
fn what_the_kernel_cannot_do_is_said_once() {
    let kernel = ["reno".to_owned(), "cubic".to_owned()];
    let found = |keys: &str| kernel_requirements(&scenario(keys, &flow("")), &kernel);
    assert_eq!(
        found("").unwrap().differs,
        [
            "the kernel's shortest timeout is a round trip and at most 200 ms, here 1 s",
            "the kernel validates its window as RFC 2861 says, not RFC 7661",
        ]
    );
    let old = "tcp = \"sack\"\nssthresh = \"window\"\nwindow = \"64 segments\"\ninitial_rto = \"3 s\"\nvalidation = \"keep\"\njitter = \"1 ms\"";
    assert_eq!(
        found(old).unwrap().differs,
        [
            "with SACK the kernel finds losses by time too (RACK, RFC 8985)",
            "the kernel reduces its window by PRR (RFC 9937)",
            "slow start has no first threshold in the kernel, here 93440 B",
            "before the first round trip the kernel waits 1 s, here 3 s",
            "the kernel's shortest timeout is a round trip and at most 200 ms, here 1 s",
            "the kernel has no random delay at the sender",
        ]
    );
    let error = found("segment = \"1461 B\"").unwrap_err().to_string();
    assert!(error.contains("segments of 1461 B; the kernel takes 88 B to 1460 B here"), "{error}");
}

/// Flows that the kernel cannot run have the engine at both ends, whatever their application; a flow of the
/// kernel runs beside them. Only the kernel's need its settings.
#[test]
fn what_the_kernel_lacks_runs_in_the_engine_beside_the_kernel() {
    let Some(pair) = pair("what_the_kernel_lacks_runs_in_the_engine_beside_the_kernel") else { return };
    let flows = [
        ("swift", "tcp = \"swift-faithful\"\napp = { rate = \"4 Mbit/s\" }"),
        ("granted", "tcp = \"explicit-rate\"\ngrant = \"4 Mbit/s\"\nsack = false"),
        ("ask", "tcp = \"swift-sat\"\napp = { requests = { response = \"20 kB\", think = \"50 ms\" } }"),
        ("type", "tcp = \"peach\"\napp = { telnet = { size = \"10 B\", gap = \"20 ms\" } }"),
        ("kernel", "tcp = \"newreno\"\napp = { rate = \"4 Mbit/s\" }"),
        ("size", "tcp = \"peach-plus\"\napp = { transfer = \"1 MB\" }\nstart = \"2500 ms\""),
    ];
    let one = |(name, keys): (&str, &str)| flow(keys).replace("\"f\"", &format!("\"{name}\""));
    let scenario = scenario("", &flows.map(one).concat());
    let (needs, out) = run(&pair, &scenario);
    assert_eq!(needs.engine, [true, true, true, true, false, true]);
    assert_eq!(needs.congestion[4].as_deref(), Some("reno"));
    let simulated = bentpipe_sim::run(&scenario);
    let both = |i: usize| [out.reports[i].tcp().unwrap(), simulated.flows[i].tcp().unwrap()];
    for i in [0, 1, 4] {
        let [live, expected] = [&out.reports[i], &simulated.flows[i]].map(|f| f.goodput_bps);
        assert!((live / expected - 1.0).abs() < 0.05, "{}: {live} {expected}", flows[i].0);
        let shares: f64 = both(i)[0].limited_by.shares().iter().map(|(_, share)| share).sum();
        assert!((shares - 1.0).abs() < 1e-9 && both(i)[0].rtt_ms.p50.is_some(), "{:?}", both(i)[0]);
    }
    let asked = both(2).map(|tcp| tcp.requests.as_ref().unwrap().completed);
    assert!(asked[0] >= asked[1] / 2 && asked[0] < 90, "{asked:?}");
    let typed = both(3).map(|tcp| tcp.telnet.clone().unwrap());
    // the same draws; the simulated run is longer, since there the link slows the last flow down
    let writes = 100..=typed[1].writes + 2;
    assert!(writes.contains(&typed[0].writes) && typed[0].ack_ms.p50.is_some(), "{typed:?}");
    let [size, _] = both(5);
    assert_eq!((size.bytes_acked, size.timeouts), (1_000_000, 0));
    assert!(size.finished_s > size.established_s && size.established_s > Some(2.5), "{size:?}");
    assert!(both(0).iter().all(|tcp| tcp.probes.is_some()) && both(4)[0].probes.is_none());
    let said = |text: &str| needs.differs.iter().any(|line| line.starts_with(text));
    assert!(
        said("peach runs in bentpipe's own TCP at both ends, not in the kernel's (flow type)"),
        "{needs:?}"
    );
}

#[test]
fn datagrams_at_granted_rates_are_refused() {
    let text = flow(
        "app = { udp = { size = \"200 B\", rate = \"64 kbit/s\" } }\nencoding = \"tia-1039\"\nask = { guaranteed = \"64 kbit/s\" }",
    );
    let error = kernel_requirements(&scenario("", &text), &[]).unwrap_err();
    assert!(error.is_refusal() && error.to_string().starts_with("flow `f` asks for rates"), "{error}");
}
