//! Paths that rewrite code points or strip structures: nothing is misread, and flows go on.

use super::net::{ASK, Net, host, lower, mbps, ms, strip};
use super::{V4, outcome};
use bentpipe_base::{Dscp, Flags, Packet};
use bentpipe_tcp::RateState;

/// A path that rewrites the DSCP from some time on: no packet that may be misread counts, and the flow goes
/// on.
#[test]
fn where_the_path_rewrites_the_code_point_nothing_is_misread() {
    for rewritten in [[true, false], [false, true], [true, true]] {
        let mut late = 0;
        let mut net = Net::new(host(ASK, V4), host(ASK, V4), |now, side, packet| {
            lower(packet, mbps(8));
            if now > ms(500) && rewritten[side] {
                packet.dscp = Dscp::DEFAULT;
                late += u32::from(packet.signal.is_some());
            }
            true
        });
        net.backlog = 2_000_000;
        net.with(0, |c| c.write(2_000_000));
        net.run(ms(5000));
        let received = [0, 1].map(|side| net.end(side).received());
        assert_eq!(received, [2_000_000, 2_000_000], "{rewritten:?}");
        let changes = [0, 1].map(|side| outcome(&net, side).2);
        drop(net);
        assert!(late > 3, "{late}");
        // who asks for more has no answer: the request or the response is dropped
        for changes in changes {
            assert!(changes.iter().all(|(at, ..)| *at <= 600), "{changes:?}");
        }
    }
}

/// An end whose SYN/ACK arrived without its DSCP puts no structure into a packet: the peer would take it for
/// data.
#[test]
fn who_does_not_know_of_the_agreement_gets_no_structures() {
    let mut net = Net::new(host(ASK, V4), host(ASK, V4), |_, side, packet| {
        if side == 1 && packet.tcp.flags.has(Flags::SYN) {
            packet.dscp = Dscp::DEFAULT;
        }
        true
    });
    net.backlog = 300_000;
    net.with(0, |c| c.write(300_000));
    net.run(ms(20_000));
    assert_eq!([0, 1].map(|side| net.end(side).received()), [300_000, 300_000]);
    assert_eq!(outcome(&net, 0), (RateState::Plain, None, Vec::new()));
    let later = |packet: &Packet| !packet.tcp.flags.has(Flags::SYN) && packet.signal.is_some();
    assert!(net.sent.iter().all(|(_, _, packet)| !later(packet)));
}

/// Data that says it has a structure and has none: it is not known where it ends.
#[test]
fn data_without_the_structure_that_it_announces_comes_again() {
    let mut stripped = 0;
    let mut net = Net::new(host(ASK, V4), host(None, V4), |_, side, packet| {
        lower(packet, mbps(8));
        if side == 0 && packet.body.len > 0 && packet.signal.is_some() {
            strip(packet);
            stripped += 1;
        }
        true
    });
    net.with(0, |c| c.write(1_000_000));
    net.run(ms(5000));
    assert_eq!(net.end(1).received(), 1_000_000);
    assert!(net.end(0).stats().retransmits > 0);
    drop(net);
    assert!(stripped > 0);
}
