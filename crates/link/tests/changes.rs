//! The timeline, scheduled capacity and mahimahi traces, to the nanosecond.

mod rig;

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Duration, Instant, Probability, Purpose, Size, World};
use bentpipe_link::{Capacity, CapacityTrace, Change, Channel, DirectionSpec, Dynamics, Errors, Fade};
use bentpipe_link::{Coding, FadeEffect, FadeSource, LossDraw, Recorded};
use rig::{Rig, base, chance, ms, rate};

fn steps(points: &[(Instant, Option<u64>)], repeat: Option<Duration>) -> Dynamics {
    let points = points.iter().map(|&(at, bps)| (at, bps.map(rate))).collect();
    Dynamics { capacity: Some(CapacityTrace::Steps { points, repeat }), ..Dynamics::default() }
}

fn timeline(changes: &[(Instant, Change)]) -> Dynamics {
    Dynamics { changes: changes.to_vec(), ..Dynamics::default() }
}

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

#[test]
fn a_link_on_which_nothing_happens_is_a_constant_link() {
    // an odd rate, losses and bit errors: the same nanoseconds and the same random draws
    let awkward = DirectionSpec { rate: rate(1_544_321), framing: Size(7), loss: chance(0.1), ..base() };
    let gaps = DirectionSpec { loss_draw: LossDraw::Gap, ..awkward.clone() };
    for base in [DirectionSpec { ber: chance(1e-5), ..awkward }, gaps] {
        let dynamics = timeline(&[(Instant(1), Change::default())]);
        let mut varying = Rig::with(&base, &dynamics, Capacity::Packets(20), "link", 3);
        let mut world = World::new(3);
        let errors = Errors { rng: world.open_rng("link", Purpose::Errors), loss: base.loss, ber: base.ber };
        let channel = Channel::new(base.rate, base.delay, base.framing, Some(errors));
        let channel = channel.with_loss_draw(base.loss_draw);
        let mut constant = Rig::around(world, channel, Capacity::Packets(20));
        for i in 0..3000_u64 {
            let at = Instant(i * 5_000_000 + i * i % 17 * 900_000);
            let size = 40 + (i * 37 % 1461) as u32;
            for rig in [&mut varying, &mut constant] {
                rig.send(at, i, size);
            }
            if i % 100 == 0 {
                assert_eq!(varying.inside(), constant.inside());
                assert_eq!(varying.served(), constant.served());
            }
        }
        let (a, b) = (varying.fates(ms(60_000)), constant.fates(ms(60_000)));
        assert!(a.dropped.len() > 250 && a.delivered.len() > 1000);
        assert_eq!(a, b);
    }
}

#[test]
fn a_rate_that_changes_in_mid_packet_is_integrated() {
    // 1000 bytes: 0.5 ms at 8 Mbit/s carry 500, 1 ms at 1 Mbit/s 125, nothing for 10 ms, 375 bytes at 4
    // Mbit/s take 750 us
    let dynamics =
        steps(&[(us(500), Some(1_000_000)), (us(1500), None), (us(11_500), Some(4_000_000))], None);
    let mut rig = Rig::new(&base(), &dynamics);
    rig.send(Instant::ZERO, 0, 1000);
    rig.send(Instant::ZERO, 1, 1000);
    let fates = rig.fates(ms(500));
    assert_eq!(fates.arrivals(), [us(112_250), us(114_250)]);
    assert_eq!(rig.served(), (2, 4_250_000), "waiting for a rate is not sending");
}

#[test]
fn packets_wait_through_a_time_without_a_rate() {
    let dynamics = steps(&[(ms(10), None), (ms(50), Some(8_000_000))], None);
    let mut rig = Rig::with(&base(), &dynamics, Capacity::Packets(2), "link", 1);
    for i in 0..3 {
        rig.send(ms(20 + i), i, 1000);
    }
    assert_eq!(rig.look(ms(30)).rate, None);
    assert_eq!(rig.inside(), (2, 0));
    let fates = rig.fates(ms(500));
    assert_eq!(fates.arrivals(), [ms(151), ms(152)]);
    assert_eq!(fates.dropped, [(2, DropCause::QueueFull)]);
}

#[test]
fn steps_start_over() {
    // 4 ms at 8 Mbit/s, 6 ms at 2 Mbit/s: 5.5 packets of 1000 bytes in 10 ms
    let dynamics =
        steps(&[(ms(0), Some(8_000_000)), (ms(4), Some(2_000_000))], Some(Duration::from_millis(10)));
    let mut rig = Rig::new(&base(), &dynamics);
    for i in 0..11 {
        rig.send(Instant::ZERO, i, 1000);
    }
    let arrivals = rig.fates(ms(500)).arrivals();
    assert_eq!(arrivals.last(), Some(&ms(120)));
    assert_eq!(arrivals[5], us(110_500), "half at 2 Mbit/s, half after the start over");
}

#[test]
fn the_timeline_sets_rate_delay_and_losses() {
    let change = |at, change| (ms(at), change);
    let dynamics = timeline(&[
        change(30, Change { up: Some(true), ..Change::default() }),
        change(
            10,
            Change {
                rate: Some(rate(1_000_000)),
                delay: Some(Duration::from_millis(5)),
                ..Change::default()
            },
        ),
        change(20, Change { up: Some(false), rate: Some(rate(8_000_000)), ..Change::default() }),
        change(40, Change { loss: Some(chance(1.0)), ..Change::default() }),
        change(50, Change { loss: Some(Probability::ZERO), ber: Some(chance(1.0)), ..Change::default() }),
    ]);
    let mut rig = Rig::new(&base(), &dynamics);
    for i in 0..6 {
        rig.send(ms(10 * i + 1), i, 1000);
    }
    let looks = [(61, 0.0, 1.0)];
    for (at, loss, ber) in looks {
        let look = rig.look(ms(at));
        assert!((look.packet_loss - loss).abs() < 1e-12 && (look.ber - ber).abs() < 1e-12, "{look:?}");
    }
    let fates = rig.fates(ms(500));
    // the second left at 11 ms and took 8; the delay dropped from 100 to 5 ms: it arrives with the first, not
    // before
    assert_eq!(fates.delivered, [(ms(102), 0), (ms(102), 1), (ms(102), 3)]);
    assert_eq!(fates.dropped, [(2, DropCause::Outage), (4, DropCause::PacketLoss), (5, DropCause::BitError)]);
}

#[test]
fn a_smaller_buffer_keeps_what_waits() {
    let buffer = |at, n| (ms(at), Change { buffer: Some(Capacity::Packets(n)), ..Change::default() });
    let mut rig =
        Rig::with(&base(), &timeline(&[buffer(2, 1), buffer(6, 4)]), Capacity::Packets(3), "link", 1);
    for i in 0..4 {
        rig.send(us(100), i, 1000); // one is sent, three wait
    }
    rig.send(ms(2), 4, 1000); // one left meanwhile, but now only one may wait
    rig.send(us(3_500), 5, 1000); // the last of the first four is being sent: this one may wait
    rig.send(us(4_000), 6, 1000);
    rig.send(us(6_000), 7, 1000);
    let fates = rig.fates(ms(500));
    assert_eq!(fates.numbers(), [0, 1, 2, 3, 5, 7]);
    assert_eq!(fates.dropped, [(4, DropCause::QueueFull), (6, DropCause::QueueFull)]);
}

fn opportunities(at: &[u64], period: u64) -> Dynamics {
    let at = at.iter().map(|&ms| Duration::from_millis(ms)).collect();
    let capacity =
        CapacityTrace::Opportunities { at, period: Duration::from_millis(period), size: Size(1504) };
    Dynamics { capacity: Some(capacity), ..Dynamics::default() }
}

#[test]
fn a_mahimahi_trace_releases_a_packet_at_each_opportunity_and_starts_over() {
    let mut rig = Rig::new(&base(), &opportunities(&[1, 5, 5, 10], 10));
    for i in 0..6 {
        rig.send(ms(0), i, 1500);
    }
    // 4 bytes of each opportunity go to the next packet and do not complete it
    assert_eq!(rig.fates(ms(500)).arrivals(), [101, 105, 105, 110, 111, 115].map(ms));
}

#[test]
fn an_opportunity_that_finds_nothing_waiting_is_lost() {
    let mut rig = Rig::new(&base(), &opportunities(&[1, 5, 5, 10], 10));
    rig.send(ms(2), 0, 1500); // 1 ms is over
    rig.send(ms(5), 1, 1500); // arrives at the instant of its opportunities, too late for them
    rig.send(ms(57), 2, 1500); // many are lost: the next is that of 60 ms
    rig.send(ms(60), 3, 1500);
    assert_eq!(rig.fates(ms(500)).arrivals(), [105, 110, 160, 161].map(ms));
}

#[test]
fn an_opportunity_carries_several_small_packets_and_parts_of_large_ones() {
    let mut rig = Rig::new(&base(), &opportunities(&[1, 2, 3, 4], 4));
    for (i, size) in [500, 500, 500, 1500, 3000, 40].into_iter().enumerate() {
        rig.send(ms(0), i as u64, size);
    }
    // 1: 500 500 500, 4 of the fourth. 2: its 1496, 8 of the fifth. 3: 1504. 4: 1488, 16 of the last. 5: 24
    assert_eq!(rig.fates(ms(500)).arrivals(), [101, 101, 101, 102, 104, 105].map(ms));
    // the part of an opportunity that small packets leave is lost when nothing waits at that instant
    rig.send(ms(600), 6, 40);
    rig.send(us(601_500), 7, 1504);
    assert_eq!(rig.fates(ms(900)).arrivals()[6..], [701, 702].map(ms));
    assert_eq!(rig.look(ms(900)).rate, Some(rate(12_032_000)));
}

#[test]
fn a_saturated_trace_counts_as_busy_all_the_time() {
    let mut rig = Rig::new(&base(), &opportunities(&[1, 5, 5, 10], 10));
    for i in 0..100 {
        rig.send(ms(0), i, 1504);
    }
    rig.run(ms(200));
    assert_eq!(rig.served(), (80, 200_000_000));
}

#[test]
fn a_fade_raises_the_bit_errors_step_by_step() {
    let source = FadeSource::Profile([(ms(0), 5.0), (ms(10_000), 0.0)].into());
    let effect = FadeEffect::Coding { coding: Coding::Uncoded, clear_db: 14.59, drift: None };
    let fade = Fade { source, effect, every: Duration::from_secs(1) };
    let mut rig = Rig::new(&base(), &Dynamics { fade: Some(fade), ..Dynamics::default() });
    for (at, db) in [(0, 5.0), (999, 5.0), (1000, 4.5), (5700, 2.5), (20_000, 0.0)] {
        let look = rig.look(ms(at));
        assert!((look.fade_db.unwrap() - db).abs() < 1e-9, "{look:?}");
        assert!((look.ber / Coding::Uncoded.ber(14.59 - db) - 1.0).abs() < 1e-9, "{look:?}");
    }
}

#[test]
fn a_recorded_delay_and_loss_are_those_of_their_interval() {
    let delays = [(0, 20), (10, 50), (20, 30)].map(|(at, delay)| (ms(at), Duration::from_millis(delay)));
    let delay = Recorded { points: delays.into(), repeat: Some(Duration::from_millis(30)) };
    let losses = [(ms(0), chance(0.0)), (ms(40), chance(1.0)), (ms(50), chance(0.0))];
    let loss = Recorded { points: losses.into(), repeat: None };
    let mut rig =
        Rig::new(&base(), &Dynamics { delay: Some(delay), loss: Some(loss), ..Dynamics::default() });
    // a packet of 1000 B takes 1 ms: its delay is that at the end of its transmission, its loss that at the
    // start
    for (i, at) in [0, 8, 10, 20, 31, 39, 40, 49, 50, 60].into_iter().enumerate() {
        rig.send(ms(at), i as u64, 1000);
    }
    let fates = rig.fates(ms(500));
    assert_eq!(fates.dropped, [(6, DropCause::PacketLoss), (7, DropCause::PacketLoss)]);
    let took: Vec<_> = fates.delivered.iter().map(|(at, i)| (*i, at.0 / 1_000_000)).collect();
    // the one sent at 20 ms would arrive at 51 ms, before the one of 10 ms: it arrives with it, at 61 ms
    assert_eq!(took, [(0, 21), (1, 29), (2, 61), (3, 61), (4, 61), (5, 61), (8, 81), (9, 81)]);
}
