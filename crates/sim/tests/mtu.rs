//! Links with an MTU under TCP: what fragments cost, and how a sender learns of a shorter path.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_base::trace::DropCause;
use bentpipe_report::Report;
use bentpipe_scenario::{Source, load};
use bentpipe_sim::run;

/// 100 kB in segments of 1728 B, as in the ns-2 study, over a GEO hop with this MTU.
fn transfer(mtu: &str, host: &str) -> Report {
    let text = format!(
        "schema = 1\ntitle = \"mtu\"\nduration = \"60 s\"\nstop = \"finished\"\n\
         [dumbbell]\nrtt = \"585 ms\"\nrate = \"1.544 Mbit/s\"\nbuffer = \"120 packets\"\n{mtu}\n\
         access = {{ rate = \"10 Mbit/s\", delay = \"1 ms\", buffer = \"100000 packets\" }}\n\
         [host]\ntcp = \"newreno\"\nsegment = \"1728 B\"\niw = 2\ntimestamps = false\n{host}\n\
         [[flows]]\nname = \"flow\"\nfrom = \"src1\"\nto = \"dst1\"\napp = {{ transfer = \"100 kB\" }}\n"
    );
    let scenario = load(&Source::new("mtu.toml", text), &[], Some(1)).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario)
}

/// Drops at the bottleneck because of the MTU, and those for other reasons.
fn refused(report: &Report) -> (u64, u64) {
    let drops = &report.links[0].drops;
    let too_big = drops.get(DropCause::TooBig.key()).copied().unwrap_or(0);
    (too_big, drops.values().sum::<u64>() - too_big)
}

#[test]
fn a_sender_that_is_told_of_the_mtu_sends_shorter_segments() {
    for (mtu, ip, segment) in [(1500, 4, 1460), (576, 4, 536), (1500, 6, 1440)] {
        let report = transfer(&format!("mtu = \"{mtu} B\""), &format!("ip = {ip}"));
        let flow = report.flows[0].tcp().unwrap();
        assert!(flow.finished_s.is_some(), "{mtu}");
        // the initial window only; the messages arrive long before the first timeout
        assert_eq!((refused(&report), flow.timeouts), ((2, 0), 0), "{mtu} {ip}");
        // the pieces of the initial window are shorter
        let whole = 100_000_u64.div_ceil(segment);
        assert!((whole + 2..whole + 10).contains(&flow.segments_sent), "{mtu} {ip}: {}", flow.segments_sent);
    }
}

/// Every full segment, 1768 B with headers, is sent as 1500 and 288 B: 1.1 % more bytes, and no message.
#[test]
fn a_link_that_cuts_packets_delays_them_and_tells_nobody() {
    let [whole, cut] =
        ["", "mtu = { size = \"1500 B\", longer = \"fragment\" }"].map(|mtu| transfer(mtu, ""));
    let (before, after) = (whole.flows[0].tcp().unwrap(), cut.flows[0].tcp().unwrap());
    assert_eq!((refused(&cut), before.segments_sent), ((0, 0), after.segments_sent));
    let more = after.finished_s.unwrap() - before.finished_s.unwrap();
    // less than a header of each of 58 segments, since most time is the round trips'
    assert!(more > 0.0 && more < 58.0 * 20.0 * 8.0 / 1.544e6, "{more} s");
}
