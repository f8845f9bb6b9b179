//! Probes recognised by timestamps: with a Linux receiver, with one that follows RFC 7323, and after losses.

use super::{MSS, Path, RTT, host, is_data, is_probe, scheme};
use bentpipe_base::{Packet, Size};
use bentpipe_tcp::cc::ProbeSignal;
use bentpipe_tcp::probes::Probes;
use bentpipe_tcp::{Config, Options, Stack};
use std::sync::Arc;

/// A start from `iw` segments to 64 with timestamps, but without the probe option and SACK.
fn by_timestamps(name: &str, receiver: Stack, iw: u32) -> Path {
    let mut config = Config { initial_ssthresh: Some(Size(64 * MSS)), ..host(scheme(name, &[]), false, iw) };
    config.mss += 12;
    config.options = Options { sack: false, timestamps: true, ..config.options };
    let mut path = Path::open(config);
    Arc::make_mut(&mut path.answer).stack = receiver;
    path
}

/// A Linux receiver echoes the timestamp of a copy of its newest segment: the start takes two round trips, as
/// with the other signals. ACKs of copies, or a copy that is lost, never count as a sign of loss.
#[test]
fn timestamps_tell_of_a_start() {
    for (name, iw) in [("swift-sat", 1), ("swift-faithful", 10), ("peach", 2), ("peach-plus", 1)] {
        let mut path = by_timestamps(name, Stack::Linux, iw);
        assert!(path.run(&mut |_| false, &mut |c| c.cwnd().0 >= 64 * MSS), "{name}");
        let c = path.sender();
        let stats = c.stats();
        assert_eq!((stats.retransmits, stats.timeouts), (0, 0), "{name}");
        let counts = c.probes().map(|p| (p.signal(), p.sent(), p.lost()));
        assert_eq!(counts, Some((ProbeSignal::Timestamps, 64 - u64::from(iw), 0)), "{name}");
        let trips =
            path.now.since(stats.established_at.expect("it is open")).as_secs_f64() / RTT.as_secs_f64();
        assert!((1.9..=2.1).contains(&trips), "{name}: {trips}");
        let stamps: Vec<_> =
            path.sent.iter().filter(|(_, p)| is_probe(p)).map(|(_, p)| p.tcp.timestamps).collect();
        assert!(stamps.windows(2).all(|s| s[0] != s[1]), "{name}: each its own");
    }
    let mut path = by_timestamps("swift-sat", Stack::Linux, 1);
    let mut count = 0;
    let mut lost = |p: &Packet| {
        count += u32::from(is_probe(p));
        is_probe(p) && count == 20
    };
    assert!(path.run(&mut lost, &mut |c| c.scoreboard().una() > 500 * MSS));
    let c = path.sender();
    assert_eq!(c.probes().map(|p| (p.acknowledged(), p.lost())), Some((62, 1)));
    assert_eq!((c.stats().retransmits, c.stats().timeouts), (0, 0));
}

/// A loss right after such a start is detected by duplicate ACKs, though they echo the last copy's timestamp;
/// no probe is sent during the repair, as none could be recognised.
#[test]
fn after_a_start_by_timestamps_a_loss_is_found() {
    let mut path = by_timestamps("swift-faithful", Stack::Linux, 1);
    let mut hits = 0;
    let mut lost = |p: &Packet| {
        let hit = is_data(p) && p.body.off == 40 * MSS && hits == 0;
        hits += u32::from(hit);
        hit
    };
    assert!(path.run(&mut lost, &mut |c| c.scoreboard().una() > 300 * MSS));
    let c = path.sender();
    assert_eq!((c.stats().retransmits, c.stats().timeouts), (1, 0));
    assert_eq!(c.probes().map(Probes::sent), Some(63));
}

/// A receiver that follows RFC 7323, section 5.3, identifies no copy: the sender continues in slow start, and
/// 63 duplicate ACKs cause no retransmission.
#[test]
fn a_strict_receiver_leads_to_slow_start() {
    for name in ["swift-sat", "peach"] {
        for iw in [1, 10] {
            let mut path = by_timestamps(name, Stack::Rfc, iw);
            assert!(path.run(&mut |_| false, &mut |c| c.cwnd().0 >= 64 * MSS), "{name}");
            let c = path.sender();
            assert_eq!((c.stats().retransmits, c.stats().timeouts), (0, 0), "{name} {iw}");
            assert_eq!(c.probes().map(|p| (p.sent(), p.acknowledged())), Some((64 - u64::from(iw), 0)));
            let took = path.now.since(c.stats().established_at.expect("it is open"));
            assert!(took <= RTT * 8, "{name} {iw}: {took}");
        }
    }
}
