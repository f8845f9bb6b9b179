//! Demand assignment and release after idle.

mod rig;

use bentpipe_base::{Duration, Instant, Rate, Size};
use bentpipe_link::{Access, Capacity, CapacityTrace, Dama, DirectionSpec, Dynamics, IdleRelease};
use rig::{Rig, base, ms, rate};

fn dama(latency_ms: u64, free: Option<Rate>) -> Dynamics {
    let dama = Dama { frame: Duration::from_millis(20), latency: Duration::from_millis(latency_ms), free };
    Dynamics { access: Some(Access::Dama(dama)), ..Dynamics::default() }
}

fn release(idle_ms: u64, setup_ms: u64) -> Dynamics {
    let (idle, setup) = (Duration::from_millis(idle_ms), Duration::from_millis(setup_ms));
    Dynamics { access: Some(Access::IdleRelease(IdleRelease { idle, setup })), ..Dynamics::default() }
}

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

#[test]
fn the_first_packet_waits_for_its_frame_and_its_grant() {
    let mut rig = Rig::new(&base(), &dama(600, None));
    rig.send(ms(5), 0, 1000); // requested at 20, served from 620, arrives 101 ms later
    rig.send(ms(20), 1, 1000); // just too late for that request: requested at 40
    let arrivals = rig.fates(ms(2000)).arrivals();
    assert_eq!(arrivals, [ms(721), ms(741)]);
    // whole frames: the grant of 2040 + 590 is served from 2640
    let mut rig = Rig::new(&base(), &dama(590, None));
    rig.send(ms(2021), 0, 1000);
    assert_eq!(rig.fates(ms(3000)).arrivals(), [ms(2741)]);
}

#[test]
fn what_waits_is_asked_for_once() {
    let mut rig = Rig::new(&base(), &dama(600, None));
    rig.send(ms(5), 0, 1000);
    rig.send(ms(630), 1, 1000); // the first was served at 620: nothing is left over
    assert_eq!(rig.fates(ms(3000)).arrivals(), [ms(721), ms(1341)]);
}

#[test]
fn with_much_waiting_every_frame_is_full() {
    let mut rig = Rig::with(&base(), &dama(600, None), Capacity::Packets(10_000), "link", 1);
    for i in 0..5000 {
        rig.send(ms(1), i, 1000);
    }
    let arrivals = rig.fates(ms(9000)).arrivals();
    // a packet each millisecond without a gap
    assert_eq!(arrivals[0], ms(721));
    assert_eq!(arrivals[4999], ms(5720));
    assert_eq!(rig.served(), (5000, 5_000_000_000));
}

#[test]
fn a_packet_larger_than_a_frame_goes_on_in_the_next() {
    // 400 bytes a frame; 1000 bytes take 2.5 frames
    let slow = DirectionSpec { rate: rate(160_000), ..base() };
    let mut rig = Rig::new(&slow, &dama(100, None));
    rig.send(ms(10), 0, 1000);
    rig.send(ms(11), 1, 200);
    assert_eq!(rig.fates(ms(2000)).arrivals(), [ms(270), ms(280)]);
}

#[test]
fn the_free_share_goes_at_once_and_what_is_not_used_is_lost() {
    // 1 Mbit/s of 8: 2500 bytes in a frame
    let mut rig = Rig::new(&base(), &dama(600, Some(rate(1_000_000))));
    for i in 0..6 {
        rig.send(ms(1005), i, 1000);
    }
    let arrivals = rig.fates(ms(3000)).arrivals();
    // two and a half packets in the frame from 1000, the next from 1020 on, the last from 1040
    let expected = [us(1_106_000), us(1_107_000), us(1_120_500), us(1_121_500), us(1_122_500), us(1_141_000)];
    assert_eq!(arrivals, expected);
}

#[test]
fn without_requests_the_free_share_is_the_rate() {
    let mut rig =
        Rig::with(&base(), &dama(1_000_000, Some(rate(1_000_000))), Capacity::Packets(10_000), "link", 1);
    for i in 0..1000 {
        rig.send(ms(0), i, 1000);
    }
    // 1 Mbyte at 1 Mbit/s are 8 s; the last frame's share goes at its beginning
    let last = rig.fates(ms(20_000)).arrivals()[999];
    assert_eq!(last, us(8_000_000 - 20_000 + 2500 + 100_000));
}

#[test]
fn the_winds_channel_is_released_after_300_ms_and_set_up_in_4750() {
    let mut rig = Rig::new(&base(), &release(300, 4750));
    rig.send(ms(0), 0, 1000); // never set up before
    rig.send(ms(2000), 1, 1000); // waits behind it
    rig.send(ms(5051), 2, 1000); // 299 ms after the last was sent
    rig.send(ms(5352), 3, 1000); // 300 ms after the last was sent
    rig.send(ms(5353), 4, 1000);
    let arrivals = rig.fates(ms(20_000)).arrivals();
    assert_eq!(arrivals, [ms(4851), ms(4852), ms(5152), ms(10_203), ms(10_204)]);
}

#[test]
fn a_released_channel_loses_the_opportunities_until_it_is_set_up() {
    let at = [Duration::from_millis(10)].into();
    let capacity = CapacityTrace::Opportunities { at, period: Duration::from_millis(10), size: Size(1504) };
    let mut rig = Rig::new(&base(), &Dynamics { capacity: Some(capacity), ..release(300, 1000) });
    for i in 0..2 {
        rig.send(ms(5), i, 1504); // wanted at 10, set up at 1010
    }
    rig.send(ms(1315), 2, 1504); // 300 ms after the last
    assert_eq!(rig.fates(ms(5000)).arrivals(), [ms(1110), ms(1120), ms(2420)]);
}

/// After the channel was set up, the next opportunity comes later than the idle release: the waiting packet
/// holds the channel until then.
#[test]
fn a_trace_with_long_gaps_still_carries_something() {
    let at = [Duration::from_secs(1)].into();
    let capacity = CapacityTrace::Opportunities { at, period: Duration::from_secs(1), size: Size(1504) };
    let mut rig = Rig::new(&base(), &Dynamics { capacity: Some(capacity), ..release(300, 500) });
    for i in 0..2 {
        rig.send(ms(5), i, 1504); // wanted at 1 s and 3 s, set up half a second later, sent at 2 s and 4 s
    }
    assert_eq!(rig.fates(ms(9000)).arrivals(), [ms(2100), ms(4100)]);
}

#[test]
fn a_keep_alive_holds_the_winds_channel() {
    let mut rig = Rig::new(&base(), &release(300, 4750));
    for i in 0..100 {
        rig.send(ms(150 * i), i, 100);
    }
    let fates = rig.fates(ms(30_000));
    let late =
        fates.delivered.iter().filter(|(at, i)| at.since(ms(150 * i)) > Duration::from_millis(101)).count();
    // only what came while the channel was set up for the first time
    assert_eq!(late, 32);
}
