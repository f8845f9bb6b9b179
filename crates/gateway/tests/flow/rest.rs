//! Sleeping, waking, and continuing after the gateway was killed: windows stay translated, and acceleration
//! resumes.

use crate::table_rig::{ACK, Rig, SYN, SYN_ACK, Talk, talk};
use bentpipe_base::{Duration, Packet, Rate};
use bentpipe_gateway::{Config, Gateway, LAN, Record, SATELLITE};

const SENDERS_SHIFT: u8 = 5;

fn config() -> Config {
    Config { rate: Rate::from_bps(24_000_000), ..Config::default() }
}

fn data(t: Talk, seq: u32) -> Packet {
    let mut p = t.lan(ACK, seq, 1, 1000);
    p.tcp.window = 500;
    p
}

fn ack(t: Talk, ack: u32) -> Packet {
    t.sat(ACK, 1, ack, 0)
}

/// An old receiver opens, as in the paper: its SYN has no window scale. Returns the shift shown to the
/// sender.
fn open(rig: &mut Rig, t: Talk) -> u8 {
    let mut syn = t.sat(SYN, 0, 0, 0);
    syn.tcp.window_scale = None;
    syn.seal();
    rig.put(SATELLITE, syn);
    rig.wait(Duration::from_millis(1));
    let mut answer = t.lan(SYN_ACK, 0, 1, 0);
    answer.tcp.window_scale = Some(SENDERS_SHIFT);
    rig.put(LAN, answer);
    rig.wait(Duration::from_millis(500));
    rig.put(SATELLITE, ack(t, 1));
    let out = rig.take();
    let shift = out[0].1.tcp.window_scale.expect("inserted towards the sender");
    assert_eq!(out[1].1.tcp.window_scale, None, "and taken away towards the receiver");
    shift
}

/// The windows of one packet in each direction: the receiver's as the sender reads it, the sender's as the
/// receiver reads it.
fn windows(rig: &mut Rig, t: Talk, next: u32, shift: u8) -> (u64, u16) {
    rig.take();
    rig.put(SATELLITE, ack(t, next));
    rig.put(LAN, data(t, next));
    rig.wait(Duration::from_millis(50));
    let out = rig.take();
    let shown =
        out.iter().find(|(port, _)| *port == LAN).map_or(0, |(_, p)| u64::from(p.tcp.window) << shift);
    let told =
        out.iter().find(|(port, p)| *port == SATELLITE && p.body.len > 0).map_or(0, |(_, p)| p.tcp.window);
    (shown, told)
}

fn transfer(rig: &mut Rig, t: Talk, from: u32) -> u32 {
    let mut next = from;
    for _ in 0..30 {
        for i in 0..5 {
            rig.put(LAN, data(t, next + i * 1000));
        }
        next += 5000;
        rig.wait(Duration::from_millis(500));
        rig.put(SATELLITE, ack(t, next));
        rig.wait(Duration::from_millis(5));
    }
    next
}

#[test]
fn a_connection_that_slept_goes_on_as_it_was() {
    let (mut rig, t) = (Rig::new(config()), talk(1));
    let shift = open(&mut rig, t);
    let next = transfer(&mut rig, t, 1);
    let before = windows(&mut rig, t, next, shift);
    rig.put(SATELLITE, ack(t, next + 1000));
    assert_eq!(before.1, 500 << SENDERS_SHIFT);
    assert!(before.0 > 1_000_000, "a window of {} is virtual", before.0);
    rig.wait(Duration::from_secs(20));
    assert_eq!(rig.gateway.report().awake, 0, "it sleeps");
    let after = windows(&mut rig, t, next + 1000, shift);
    assert_eq!(after.1, before.1);
    assert!(after.0 * 10 > before.0 * 9, "{} after {}", after.0, before.0);
    // sent data is held until it is acknowledged: the connection is accelerated
    let flow = &rig.gateway.flows(0, 1).0[0];
    assert_eq!((flow.pass_reason, flow.held.0), (None, 1000));
}

/// The gateway is killed with `on_the_way` segments in flight; for a second packets bypass it.
fn killed(on_the_way: u32) {
    let (mut rig, t) = (Rig::new(config()), talk(1));
    let shift = open(&mut rig, t);
    rig.gateway.keep_journal();
    let record = core::iter::from_fn(|| rig.gateway.take_changed())
        .last()
        .expect("written at the end of the handshake")
        .1;
    assert!(matches!(Record::from_bytes(&record), Ok(Some(_))));
    let mut next = transfer(&mut rig, t, 1);
    for i in 0..on_the_way {
        rig.put(LAN, data(t, next + i * 1000));
    }
    // killed, and restarted with an old record
    let lost = rig.missing(rig.out.len() as u64);
    rig.gateway = Gateway::new(config());
    rig.act(|g, cx| g.restore(cx, &record));
    rig.take();
    rig.put(SATELLITE, ack(t, next));
    rig.put(LAN, data(t, next + on_the_way * 1000));
    let out = rig.take();
    assert!(
        out[0].1.tcp.window > 0 && u64::from(out[0].1.tcp.window) << shift <= 65_535 + 128,
        "{}",
        out[0].1.tcp.window
    );
    assert_eq!(out[1].1.tcp.window, 500 << SENDERS_SHIFT, "the receiver knows no scale");
    next += (on_the_way + 1) * 1000;
    // the receiver catches up: the sender has retransmitted what was lost
    rig.put(SATELLITE, ack(t, next));
    let next = transfer(&mut rig, t, next);
    let after = windows(&mut rig, t, next, shift);
    assert!(after.0 > 1_000_000 && after.1 == 500 << SENDERS_SHIFT, "{after:?}");
    let flow = &rig.gateway.flows(0, 1).0[0];
    assert_eq!((flow.pass_reason, flow.held.0), (None, 1000), "accelerated again");
    assert!(lost >= 0);
}

#[test]
fn a_connection_survives_its_gateway() {
    killed(0);
}

#[test]
fn a_connection_survives_its_gateway_with_data_on_the_way() {
    killed(40);
}
