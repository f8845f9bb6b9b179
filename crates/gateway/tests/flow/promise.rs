//! TCP stays end to end: an ACK that the sender sees never acknowledges more than the receiver has
//! acknowledged.
//!
//! Cases found by `fuzz-gateway`.

use crate::table_rig::{ACK, RST, Rig, SYN, SYN_ACK, talk};
use bentpipe_base::Flags;
use bentpipe_gateway::{Config, LAN, SATELLITE};

/// ACK numbers that the LAN saw, relative to `isn`.
fn told(rig: &mut Rig, isn: u32) -> Vec<u32> {
    let out = rig.take().into_iter().filter(|(port, _)| *port == LAN);
    out.map(|(_, p)| p.tcp.ack.0.wrapping_sub(isn)).collect()
}

/// A forged FIN and SYN make it look like a new connection, whose SYN the receiver's next ACK does not
/// acknowledge.
#[test]
fn an_ack_below_the_syn_says_what_it_says() {
    let mut rig = Rig::new(Config::default());
    let t = talk(1);
    rig.open(t);
    rig.put(LAN, t.lan(ACK, 1, 1, 1000));
    rig.put(SATELLITE, t.sat(ACK, 1, 1001, 0));
    rig.put(LAN, t.lan(Flags(ACK.0 | Flags::FIN.0), 5000, 1, 0));
    rig.put(LAN, t.lan(SYN, 1001, 0, 0));
    rig.put(LAN, t.lan(SYN_ACK, 1001, 1, 0));
    rig.put(SATELLITE, t.sat(SYN_ACK, 0, 1002, 0));
    rig.take();
    rig.put(SATELLITE, t.sat(ACK, 1, 1001, 100));
    assert_eq!(told(&mut rig, t.isn[0]), [1001]);
}

/// Of a connection that was reset in its handshake only the scale is known.
#[test]
fn a_connection_that_never_opened_acknowledges_nothing() {
    let mut rig = Rig::new(Config::default());
    let t = talk(1);
    let mut syn = t.sat(SYN, 0, 0, 0);
    syn.tcp.window_scale = None;
    syn.seal();
    rig.put(SATELLITE, syn);
    rig.put(SATELLITE, t.sat(Flags(RST.0 | ACK.0), 1, 0, 0));
    rig.take();
    for ack in [0, 1] {
        let mut packet = t.sat(ACK, 1, 0, 0);
        packet.tcp.ack.0 = ack;
        rig.put(SATELLITE, packet);
        assert_eq!(told(&mut rig, 0), [ack]);
    }
}

/// The SYN/ACK is lost before the gateway; the SYN is retransmitted and answered by a bare ACK. The scale
/// shown in the SYN must not be forgotten.
#[test]
fn a_bare_ack_before_the_syn_ack_is_no_other_way() {
    let mut rig = Rig::new(Config::default());
    let t = talk(1);
    let mut syn = t.sat(SYN, 0, 0, 0);
    syn.tcp.window_scale = None;
    syn.seal();
    rig.put(SATELLITE, syn.clone());
    rig.put(SATELLITE, syn);
    let shown = rig.take()[1].1.tcp.window_scale;
    assert!(shown.is_some());
    rig.put(LAN, t.lan(ACK, 1, 1, 0));
    rig.put(LAN, t.lan(SYN_ACK, 0, 1, 0));
    let out = rig.take();
    assert_eq!(out[1].1.tcp.window_scale, None, "the receiver offered none");
    rig.put(SATELLITE, t.sat(ACK, 1, 1, 0));
    let mut packet = t.lan(ACK, 1, 1, 0);
    packet.tcp.window = 100;
    rig.put(LAN, packet);
    let out = rig.take();
    assert_eq!(out[1].1.tcp.window, 100 << 7, "the sender scales, the receiver does not");
    assert_eq!(rig.gateway.counters().accelerated, 1);
}
