//! Probe segments: when copies are sent, and of which segments.

use crate::script::OURS;
use crate::script::{Dialogue, acks, fin, nth, plain_with, position, sacks};
use bentpipe_base::{Dscp, Packet, Size};
use bentpipe_tcp::Config;

/// Established at 100 ms; a start from one segment to 64 of 1000 B, with a copy every 100/64 ms.
fn starting(scheme: &str) -> Dialogue {
    let mut config = Config { initial_ssthresh: Some(Size(64_000)), initial_window: 1, ..plain_with(scheme) };
    config.options.sack = true;
    let mut d = Dialogue::established(config);
    d.write(20_000).sends_first(0);
    d
}

/// The copies in `packets`, as segment numbers.
fn copies(packets: &[Packet]) -> Vec<u64> {
    let copies = packets.iter().filter(|p| p.dscp == Dscp::LE);
    copies.map(|p| (position(OURS, p.tcp.seq) - 1) / 1000).collect()
}

/// A separate FIN is not data: copies of the data before it continue, whatever the scheme copies.
#[test]
fn a_fin_alone_stops_no_copies() {
    for scheme in ["swift-faithful", "peach", "peach-plus"] {
        let mut config =
            Config { initial_ssthresh: Some(Size(64_000)), initial_window: 1, ..plain_with(scheme) };
        config.options.sack = true;
        let mut d = Dialogue::established(config);
        d.write(1000).sends_first(0);
        d.at(130);
        assert_eq!(copies(&d.drain()), [0; 19], "{scheme}");
        d.close().sends(fin(nth(1)));
        d.at(199);
        assert_eq!(copies(&d.drain()), [0; 44], "{scheme}: 63 in all");
    }
}

/// While there is nothing to copy, copies are skipped, and not sent later.
#[test]
fn what_was_left_out_is_not_caught_up_with() {
    let mut d = starting("swift-faithful");
    d.at(110);
    assert_eq!(copies(&d.drain()), [0; 6]);
    d.gets(sacks(0, &[(0, 1)])).at(150).silent(); // an odd receiver SACKs it first
    d.gets(acks(1));
    let sent = d.drain();
    assert_eq!((sent.len(), copies(&sent)), (1, vec![]));
    d.at(154);
    assert_eq!(copies(&d.drain()).len(), 2);
}
