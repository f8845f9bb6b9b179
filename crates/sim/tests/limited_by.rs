//! For each cause, a scenario in which it has the largest fraction; and properties of every report.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_report::Report;
use bentpipe_scenario::{Source, load};

/// A GEO path of 10 Mbit/s and 560 ms RTT between two hosts, one flow. `host` and `flow` are additional keys.
fn run(link: &str, host: &str, flow: &str) -> Report {
    let window = if host.contains("window") { "" } else { "window = \"8 MiB\"\n" };
    let text = format!(
        "schema = 1\ntitle = \"limits\"\nduration = \"60 s\"\n\
         [dumbbell]\nrtt = \"560 ms\"\nrate = \"10 Mbit/s\"\nbuffer = \"1000 packets\"\n{link}\n\
         access = {{ rate = \"100 Mbit/s\", delay = \"1 ms\", buffer = \"10000 packets\" }}\n\
         [host]\nsegment = \"1000 B\"\n{window}{host}\n\
         [[flows]]\nname = \"flow\"\nfrom = \"src1\"\nto = \"dst1\"\n{flow}\n"
    );
    let scenario = load(&Source::new("limits.toml", text), &[], None).unwrap_or_else(|e| panic!("{e}"));
    bentpipe_sim::run(&scenario)
}

#[track_caller]
fn largest(report: &Report, cause: &str) {
    let shares = report.flows[0].tcp().unwrap().limited_by.shares();
    let sum: f64 = shares.iter().map(|s| s.1).sum();
    assert!((sum - 1.0).abs() < 1e-9, "shares sum to {sum}");
    let (first, share) = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(first, cause, "{shares:?}");
    assert!(share > 0.5, "{cause} has {share}");
    let text = report.to_text();
    let percent = format!("limited {:.0} % of the time by", share * 100.0);
    assert!(share > 0.995 || text.contains(&percent), "{percent} is missing in\n{text}");
}

#[test]
fn limited_by_handshake() {
    // all packets are lost, so the connection is never established
    let report = run("loss = 1.0", "tcp = \"sack\"", "app = \"bulk\"");
    largest(&report, "handshake");
    assert_eq!(report.flows[0].tcp().unwrap().established_s, None);
}

#[test]
fn limited_by_application() {
    largest(&run("", "tcp = \"cubic\"", "app = { rate = \"200 kbit/s\" }"), "application");
}

#[test]
fn limited_by_send_buffer() {
    largest(&run("", "tcp = \"cubic\"\nsend_buffer = \"32 KiB\"", "app = \"bulk\""), "send_buffer");
}

#[test]
fn limited_by_receiver_window() {
    let report = run("", "tcp = \"cubic\"\nwindow = \"64 segments\"", "app = \"bulk\"");
    largest(&report, "receiver_window");
    // one window per RTT: 64 000 B in slightly more than 562 ms
    let goodput = report.flows[0].goodput_bps;
    assert!((0.85e6..0.912e6).contains(&goodput), "{goodput}");
}

#[test]
fn limited_by_a_receiver_that_reads_slowly() {
    let report =
        run("", "tcp = \"cubic\"\nwindow = \"1 MiB\"", "app = \"bulk\"\nreader = { rate = \"1 Mbit/s\" }");
    largest(&report, "receiver_window");
    assert!(report.to_text().contains("reads slowly"));
    let goodput = report.flows[0].goodput_bps;
    assert!((0.9e6..1.0e6).contains(&goodput), "{goodput}");
}

#[test]
fn limited_by_congestion_window() {
    largest(&run("loss = 1e-3", "tcp = \"sack\"", "app = \"bulk\""), "congestion_window");
}

#[test]
fn limited_by_pacing() {
    // a sender with delayed opportunities, as on a busy host or a shared return link
    largest(&run("", "tcp = \"cubic\"\njitter = \"200 ms\"", "app = \"bulk\""), "pacing");
}

#[test]
fn limited_by_recovery() {
    // one packet in five is lost: most of the time the sender waits for a timeout
    largest(&run("loss = 0.2", "tcp = \"newreno\"", "app = \"bulk\""), "recovery");
}

/// Every sent packet is accounted for: none disappears without a cause.
#[test]
fn packets_are_accounted_for() {
    let report = run("loss = 1e-2\nber = 1e-6", "tcp = \"cubic\"", "app = { transfer = \"1 MB\" }");
    let flow = &report.flows[0];
    assert!(flow.tcp().unwrap().finished_s.is_some(), "{flow:?}");
    assert_eq!(flow.tcp().unwrap().bytes_acked, 1_000_000);
    let link = |name: &str| report.links.iter().find(|l| *l.name == *name).unwrap();
    let lost: u64 = link("bottleneck").drops.values().sum();
    assert!(lost > 10);
    assert_eq!(link("bottleneck").packets - lost, link("dst1-access").packets);
    assert_eq!(link("dst1-access-return").packets, link("bottleneck-return").packets);
}

/// The automatic window follows the RTT under load. If it followed that of the handshake, it would stop at
/// twice the amount read in 20 ms, 25 kB, and the deep queue would never fill.
#[test]
fn limited_by_a_window_that_grows_with_the_queue() {
    let text = "schema = 1\ntitle = \"deep queue\"\nduration = \"60 s\"\n\
                [dumbbell]\nrtt = \"20 ms\"\nrate = \"10 Mbit/s\"\nbuffer = \"1000 packets\"\n\
                access = { rate = \"100 Mbit/s\", delay = \"1 ms\", buffer = \"10000 packets\" }\n\
                [host]\ntcp = \"newreno\"\n\
                [[flows]]\nname = \"flow\"\nfrom = \"src1\"\nto = \"dst1\"\n";
    let scenario = load(&Source::new("deep.toml", text), &[], None).unwrap_or_else(|e| panic!("{e}"));
    let report = bentpipe_sim::run(&scenario);
    largest(&report, "congestion_window");
    let queue = report.links[0].queue_packets.peak;
    assert_eq!(queue, 1000, "the sender finds the end of the queue, not of the window");
}
