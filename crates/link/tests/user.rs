//! A user's changes of a running link: exact times around each change on every kind of link, and equality
//! with the same change in a timeline.

mod rig;

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Duration, Instant, Probability, Size};
use bentpipe_link::{
    Access, Acm, Capacity, CapacityTrace, Change, Dama, DirectionSpec, Dynamics, Fade, FadeEffect,
    FadeSource, IdleRelease, LossDraw, Orbit, Pass, UserChanges,
};
use rig::{Rig, base, chance, ms, rate};

const KEEP: Change = Change { rate: None, delay: None, buffer: None, loss: None, ber: None, up: None };

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn set_rate(bps: u64) -> Change {
    Change { rate: Some(rate(bps)), ..KEEP }
}

fn set_delay(ms: u64) -> Change {
    Change { delay: Some(Duration::from_millis(ms)), ..KEEP }
}

fn up(up: bool) -> Change {
    Change { up: Some(up), ..KEEP }
}

fn constant() -> Rig {
    Rig::constant(&base(), Capacity::Packets(1000), 1)
}

#[test]
fn a_constant_link_goes_on_where_it_was_and_the_packet_being_sent_keeps_its_promise() {
    let mut rig = constant();
    for i in 0..4 {
        rig.send(ms(0), i, 1000);
    }
    rig.change(us(1500), &set_rate(4_000_000));
    assert_eq!(rig.inside(), (2, 2));
    let fates = rig.fates(ms(500));
    // 1 ms each at 8 Mbit/s, also the second, in whose middle the change came; then 2 ms each
    assert_eq!(fates.arrivals(), [ms(101), ms(102), ms(104), ms(106)]);
    assert_eq!(rig.served(), (4, 6_000_000));
}

#[test]
fn a_change_at_the_instant_of_a_begin_holds_for_it() {
    let mut rig = constant();
    rig.send(ms(0), 0, 1000);
    rig.send(ms(0), 1, 1000);
    rig.change(ms(1), &set_rate(1_000_000));
    assert_eq!(rig.fates(ms(500)).arrivals(), [ms(101), ms(109)]);
}

#[test]
fn fractions_of_nanoseconds_are_carried_over_a_change_that_changes_nothing() {
    let awkward = DirectionSpec { rate: rate(1_544_321), framing: Size(7), loss: chance(0.1), ..base() };
    for draw in [LossDraw::Packet, LossDraw::Gap] {
        carried_over(&DirectionSpec { loss_draw: draw, ..awkward.clone() });
    }
}

fn carried_over(awkward: &DirectionSpec) {
    let mut changed = Rig::constant(awkward, Capacity::Packets(500), 3);
    let mut left_alone = Rig::constant(awkward, Capacity::Packets(500), 3);
    for i in 0..2000_u64 {
        let at = Instant(i * 4_500_000 + i * i % 17 * 250_000);
        let size = 40 + (i * 37 % 1461) as u32;
        for rig in [&mut changed, &mut left_alone] {
            rig.send(at, i, size);
        }
        if i % 50 == 7 {
            changed.change(at, &KEEP);
        }
        assert_eq!(changed.inside(), left_alone.inside());
        assert_eq!(changed.served(), left_alone.served());
    }
    let (a, b) = (changed.fates(ms(60_000)), left_alone.fates(ms(60_000)));
    assert!(a.dropped.len() > 100);
    assert_eq!(a, b);
}

#[test]
fn a_shorter_delay_lets_nothing_overtake() {
    let mut rig = constant();
    rig.send(ms(0), 0, 1000);
    rig.change(ms(5), &set_delay(10));
    rig.send(ms(6), 1, 1000);
    rig.send(ms(200), 2, 1000);
    rig.change(ms(300), &set_delay(400));
    rig.send(ms(300), 3, 1000);
    let fates = rig.fates(ms(1000));
    assert_eq!(fates.delivered, [(ms(101), 0), (ms(101), 1), (ms(211), 2), (ms(701), 3)]);
}

#[test]
fn an_outage_ends_exactly_on_time_however_late_the_link_is_called() {
    for touched in [false, true] {
        let mut rig = constant();
        for i in 0..10 {
            rig.send(ms(0), i, 1000);
        }
        rig.outage(us(2_500), Duration::from_micros(4_500));
        if touched {
            rig.touch(us(6_999));
            rig.touch(ms(7));
        }
        let fates = rig.fates(ms(500));
        // begun at 3, 4, 5 and 6 ms; that of 7 ms is the first after the outage
        let lost: Vec<_> = (3..7).map(|i| (i, DropCause::Outage)).collect();
        assert_eq!(fates.dropped, lost, "{touched}");
        assert_eq!(fates.arrivals(), [101, 102, 103, 108, 109, 110].map(ms));
    }
}

#[test]
fn outages_do_not_shorten_each_other_and_up_ends_them() {
    let mut rig = constant();
    rig.outage(ms(10), Duration::from_millis(100));
    rig.outage(ms(20), Duration::from_millis(10));
    assert_eq!(rig.by_user(), UserChanges { change: KEEP, outage_until: Some(ms(110)) });
    rig.send(ms(50), 0, 1000);
    assert!(rig.look(ms(51)).dark);
    rig.change(ms(60), &up(true));
    rig.send(ms(60), 1, 1000);
    rig.change(ms(70), &up(false));
    rig.outage(ms(70), Duration::from_millis(5));
    rig.send(ms(80), 2, 1000); // the outage is over, but the link is down
    rig.reset(ms(90));
    assert_eq!(rig.by_user(), UserChanges { change: KEEP, outage_until: None });
    rig.send(ms(90), 3, 1000);
    let fates = rig.fates(ms(500));
    assert_eq!(fates.numbers(), [1, 3]);
    assert_eq!(fates.dropped, [(0, DropCause::Outage), (2, DropCause::Outage)]);
}

#[test]
fn an_outage_is_over_by_itself_for_those_who_look() {
    let mut rig = constant();
    rig.outage(ms(10), Duration::from_millis(10));
    assert!(rig.look(us(19_999)).dark);
    assert!(!rig.look(ms(20)).dark);
    assert_eq!(rig.by_user().outage_until, None);
}

#[test]
fn the_queue_changes_at_once_and_keeps_what_waits() {
    let mut rig = Rig::constant(&base(), Capacity::Packets(3), 1);
    for i in 0..4 {
        rig.send(us(100), i, 1000);
    }
    rig.change(us(200), &Change { buffer: Some(Capacity::Packets(1)), ..KEEP });
    assert_eq!(rig.look(us(300)).queue_limit, Capacity::Packets(1));
    assert_eq!(rig.inside(), (3, 1));
    rig.send(us(400), 4, 1000);
    rig.reset(us(1200));
    rig.send(us(1300), 5, 1000);
    rig.send(us(1400), 6, 1000);
    let fates = rig.fates(ms(500));
    assert_eq!(fates.numbers(), [0, 1, 2, 3, 5]);
    assert_eq!(fates.dropped, [(4, DropCause::QueueFull), (6, DropCause::QueueFull)]);
}

#[test]
fn a_users_values_stand_above_the_timeline_until_they_are_given_back() {
    let all = Change {
        rate: Some(rate(1_000_000)),
        delay: Some(Duration::from_millis(5)),
        buffer: Some(Capacity::Packets(7)),
        loss: Some(chance(0.5)),
        ber: Some(chance(1e-3)),
        up: Some(false),
    };
    let dynamics = Dynamics { changes: vec![(ms(50), all)], ..Dynamics::default() };
    let mut rig = Rig::with(&base(), &dynamics, Capacity::Packets(4), "link", 1);
    let mine = Change {
        rate: Some(rate(2_000_000)),
        delay: Some(Duration::from_millis(9)),
        buffer: Some(Capacity::Packets(3)),
        loss: Some(chance(0.25)),
        ber: Some(Probability::ZERO),
        up: Some(true),
    };
    rig.change(ms(10), &mine);
    for at in [20, 60] {
        let look = rig.look(ms(at));
        assert_eq!((look.rate, look.one_way), (mine.rate, Duration::from_millis(9)), "{at}");
        assert_eq!(look.queue_limit, Capacity::Packets(3));
        assert!((look.packet_loss - 0.25).abs() < 1e-12 && look.ber.abs() < 1e-12, "{look:?}");
    }
    assert_eq!(rig.by_user().change, mine);
    rig.reset(ms(70));
    let look = rig.look(ms(70));
    assert_eq!((look.rate, look.queue_limit), (all.rate, Capacity::Packets(7)));
    assert!(look.dark, "the timeline has it down");
}

#[test]
fn a_users_rate_ends_the_wait_for_a_trace_that_carries_nothing() {
    let points = [(ms(10), None), (ms(5000), Some(rate(8_000_000)))].into();
    let steps = CapacityTrace::Steps { points, repeat: None };
    let mut rig = Rig::new(&base(), &Dynamics { capacity: Some(steps), ..Dynamics::default() });
    for i in 0..3 {
        rig.send(us(9_500), i, 1000); // half of the first is sent when the rate changes
    }
    rig.change(ms(100), &set_rate(4_000_000));
    rig.reset(us(101_500)); // the second, begun at 4 Mbit/s, still ends at 103 ms
    let fates = rig.fates(ms(6000));
    assert_eq!(fates.arrivals(), [ms(201), ms(203), ms(5101)]);
}

#[test]
fn a_users_rate_takes_the_place_of_opportunities_and_gives_it_back() {
    let at = [1, 5, 5, 10].map(Duration::from_millis).into();
    let trace = CapacityTrace::Opportunities { at, period: Duration::from_millis(10), size: Size(1000) };
    let mut rig = Rig::new(&base(), &Dynamics { capacity: Some(trace), ..Dynamics::default() });
    for i in 0..8 {
        rig.send(ms(0), i, 1000);
    }
    // three leave at 1, 5 and 5 ms by the trace; from 6 ms on each takes 4 ms, also the one begun before the
    // trace is back
    rig.change(ms(6), &set_rate(2_000_000));
    assert_eq!(rig.look(ms(7)).rate, Some(rate(2_000_000)));
    rig.reset(ms(12));
    assert_eq!(rig.look(ms(12)).rate, Some(rate(3_200_000)));
    let fates = rig.fates(ms(500));
    assert_eq!(fates.arrivals(), [101, 105, 105, 110, 114, 115, 115, 120].map(ms));
    // the same on an idle link
    rig.change(ms(600), &set_rate(8_000_000));
    rig.reset(ms(601));
    rig.send(ms(602), 8, 1000);
    assert_eq!(rig.fates(ms(900)).arrivals().last(), Some(&ms(705)));
}

#[test]
fn a_users_delay_stands_above_a_satellite_that_moves() {
    let pass =
        Pass { altitude_km: 8062.0, min_elevation_deg: 30.0, every: Duration::from_secs(1), pace: 1.0 };
    let dynamics = Dynamics { orbit: Some(Orbit::Pass(pass)), ..Dynamics::default() };
    let mut rig = Rig::new(&base(), &dynamics);
    let moving = rig.look(ms(0)).one_way;
    rig.change(ms(10), &set_delay(30));
    rig.send(ms(2500), 0, 1000);
    assert_eq!(rig.look(ms(2500)).one_way, Duration::from_millis(30));
    rig.reset(ms(2600));
    assert!(rig.look(ms(2600)).one_way > Duration::from_millis(150) && moving > Duration::from_millis(150));
    assert_eq!(rig.fates(ms(3000)).arrivals(), [ms(2531)]);
}

#[test]
fn a_fade_acts_on_the_rate_that_a_user_sets() {
    // 5.5 dB are left: QPSK 3/4 instead of 16APSK 9/10, 1.487 instead of 3.567 bits
    let source = FadeSource::Profile([(ms(0), 8.0)].into());
    let acm = Acm { clear_db: 13.5, hysteresis_db: 0.5, margin_db: Some(0.0), delay: Duration::ZERO };
    let fade = Fade { source, effect: FadeEffect::Acm(acm), every: Duration::from_secs(1) };
    let mut rig = Rig::new(&base(), &Dynamics { fade: Some(fade), ..Dynamics::default() });
    rig.change(ms(10), &set_rate(35_670_000));
    assert_eq!(rig.look(ms(11)).rate, Some(rate(14_870_000)));
}

#[test]
fn grants_serve_a_users_rate_in_whole_frames() {
    let dama = Dama { frame: Duration::from_millis(10), latency: Duration::from_millis(20), free: None };
    let dynamics = Dynamics { access: Some(Access::Dama(dama)), ..Dynamics::default() };
    let mut rig = Rig::new(&base(), &dynamics);
    for i in 0..4 {
        rig.send(ms(5), i, 1000);
    }
    // requested at 10 ms, granted from 30 ms on: a frame now carries one of them
    rig.change(ms(15), &set_rate(800_000));
    rig.change(us(45_000), &set_rate(8_000_000)); // in the middle of the second, which is not affected
    let fates = rig.fates(ms(500));
    assert_eq!(fates.arrivals(), [ms(140), ms(150), ms(151), ms(152)]);
}

#[test]
fn a_channel_being_set_up_is_not_set_up_faster_by_a_change() {
    let release = IdleRelease { idle: Duration::from_millis(50), setup: Duration::from_millis(300) };
    let dynamics = Dynamics { access: Some(Access::IdleRelease(release)), ..Dynamics::default() };
    let mut rig = Rig::new(&base(), &dynamics);
    rig.send(ms(10), 0, 1000);
    rig.change(ms(100), &set_rate(4_000_000));
    rig.change(ms(200), &KEEP);
    assert_eq!(rig.fates(ms(900)).arrivals(), [ms(412)]);
}

#[test]
fn losses_of_a_link_that_had_none_come_from_its_own_stream() {
    let lossy = DirectionSpec { loss: chance(0.3), ..base() };
    let mut from_the_start = Rig::constant(&lossy, Capacity::Packets(1000), 9);
    let mut changed = Rig::constant(&base(), Capacity::Packets(1000), 9);
    changed.change(ms(0), &Change { loss: Some(chance(0.3)), ..KEEP });
    for i in 0..200 {
        from_the_start.send(ms(i), i, 500);
        changed.send(ms(i), i, 500);
    }
    let fates = changed.fates(ms(900));
    assert!((30..90).contains(&fates.dropped.len()), "{}", fates.dropped.len());
    assert_eq!(fates, from_the_start.fates(ms(900)));
}

#[test]
fn resetting_what_nobody_changed_leaves_a_constant_link_constant() {
    let mut rig = constant();
    rig.reset(ms(1));
    assert_eq!(rig.by_user(), UserChanges { change: KEEP, outage_until: None });
    rig.send(ms(2), 0, 1000);
    assert_eq!(rig.fates(ms(500)).arrivals(), [ms(103)]);
}
