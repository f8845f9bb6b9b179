//! Moving satellites: delays over a pass, slots, handovers, and reordering.

mod rig;

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Duration, Instant};
use bentpipe_link::{Capacity, Change, DirectionSpec, Dynamics, Handover, Orbit, Pass, Slots};
use rig::{Rig, base, chance, ms, rate};

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn slots() -> Slots {
    Slots {
        period: millis(15_000),
        offset: millis(12_000),
        delay: (millis(12), millis(28)),
        pair: "cell".to_owned(),
        jitter: Duration::ZERO,
        jitter_step: millis(20),
        rate: None,
        handover: Handover::Seamless,
        reorder: false,
    }
}

fn with(slots: Slots) -> Dynamics {
    Dynamics { orbit: Some(Orbit::Slots(slots)), ..Dynamics::default() }
}

fn delays(rig: &mut Rig, at: impl Iterator<Item = u64>) -> Vec<Duration> {
    at.map(|at| rig.look(ms(at)).one_way).collect()
}

#[test]
fn a_meo_pass_goes_from_the_lowest_elevation_over_the_zenith_and_back() {
    let pass = Pass { altitude_km: 8062.0, min_elevation_deg: 30.0, every: millis(1000), pace: 1.0 };
    let ground = DirectionSpec { delay: millis(3), ..base() };
    let mut rig = Rig::new(&ground, &Dynamics { orbit: Some(Orbit::Pass(pass)), ..Dynamics::default() });
    let found = delays(&mut rig, (0..20_000).map(|s| s * 1000));
    let (low, high) = (found.iter().min().unwrap(), found.iter().max().unwrap());
    // 8062 and 10 153 km, twice, at the speed of light, and 3 ms on the ground
    assert!(
        (low.as_millis_f64() - 56.78).abs() < 0.01 && (high.as_millis_f64() - 70.73).abs() < 0.01,
        "{low} {high}"
    );
    assert!((found[0].as_millis_f64() - 70.73).abs() < 0.01, "rises at the start");
    let step = found.windows(2).map(|d| d[0].0.abs_diff(d[1].0)).max().unwrap();
    assert!(step < 20_000, "continuous, also from one satellite to the next: {step} ns");
    // the zenith: sqrt(mu/a^3) - 7.292e-5 = 2.909e-4 rad/s over acos(6378/14440 cos 30) - 30 = 37.5 degrees
    // either side: 2250 s
    let lowest: Vec<usize> =
        (1..found.len() - 1).filter(|&i| found[i] < found[i - 1] && found[i] <= found[i + 1]).collect();
    assert!(lowest[0].abs_diff(2250) < 3 && (lowest[1] - lowest[0]).abs_diff(4501) < 3, "{lowest:?}");
}

#[test]
fn each_slot_has_a_delay_of_its_own_that_a_pair_shares() {
    let other = Slots { delay: (millis(22), millis(54)), ..slots() };
    let mut down = Rig::with(&base(), &with(slots()), Capacity::Packets(10), "down", 5);
    let mut up = Rig::with(&base(), &with(other), Capacity::Packets(10), "up", 5);
    let times = || [0, 11_999, 12_000, 26_999, 27_000, 41_999, 42_000].into_iter();
    let (a, b) = (delays(&mut down, times()), delays(&mut up, times()));
    assert!(a[0] == a[1] && a[2] == a[3] && a[4] == a[5], "{a:?}");
    assert!(a[1] != a[2] && a[3] != a[4] && a[5] != a[6], "{a:?}");
    for (down, up) in a.iter().zip(&b) {
        assert!((millis(12)..=millis(28)).contains(down), "{down}");
        // the same relative position in a range that is twice as wide
        let (down, up) = (down.as_millis_f64() - 12.0, up.as_millis_f64() - 22.0);
        assert!((2.0 * down - up).abs() < 1e-5, "{down} {up}");
    }
}

#[test]
fn jitter_is_laplace_around_the_slots_delay_and_never_below_the_shortest() {
    let jittered = Slots { jitter: millis(5), period: millis(10_000_000), offset: Duration::ZERO, ..slots() };
    let mut rig = Rig::new(&base(), &with(Slots { delay: (millis(500), millis(500)), ..jittered.clone() }));
    let found = delays(&mut rig, (0..20_000).map(|i| i * 20));
    assert_eq!(found.iter().min(), Some(&millis(500)));
    let above: Vec<f64> = found.iter().map(|d| d.as_millis_f64() - 500.0).filter(|&d| d > 0.0).collect();
    let mean = above.iter().sum::<f64>() / above.len() as f64;
    // half of the values are above, exponential with mean 5 ms: 4 sigma are 0.2 ms and 283 values
    assert!((mean - 5.0).abs() < 0.2 && above.len().abs_diff(10_000) < 283, "{mean} {}", above.len());
    // held for a step: sampled twice as often there are as many values
    let mut rig = Rig::new(&base(), &with(jittered));
    let found = delays(&mut rig, (0..200).map(|i| i * 10));
    assert!(found.chunks(2).all(|d| d[0] == d[1]));
}

#[test]
fn nothing_gets_through_in_the_moment_between_two_slots() {
    let outage = Slots { handover: Handover::Outage(millis(100), millis(300)), ..slots() };
    let mut rig = Rig::new(&base(), &with(outage));
    for i in 0..4200 {
        rig.send(ms(i * 10), i, 500);
    }
    let fates = rig.fates(ms(60_000));
    assert!(fates.dropped.iter().all(|d| d.1 == DropCause::Handover));
    for boundary in [12_000, 27_000] {
        let lost: Vec<u64> =
            fates.dropped.iter().map(|d| d.0 * 10).filter(|at| at.abs_diff(boundary) < 1000).collect();
        assert_eq!(lost[0], boundary);
        assert!((10..=30).contains(&lost.len()) && lost.windows(2).all(|l| l[1] == l[0] + 10), "{lost:?}");
    }
    assert!(fates.dropped.iter().all(|d| d.0 >= 1200), "the run does not begin with a handover");

    let loss = Slots { handover: Handover::Loss(chance(0.5), millis(300)), ..slots() };
    let mut rig = Rig::new(&base(), &with(loss));
    for i in 0..40_000 {
        rig.send(ms(i), i, 500);
    }
    let fates = rig.fates(ms(60_000));
    assert!(fates.dropped.iter().all(|d| d.1 == DropCause::Handover && (d.0 - 12_000) % 15_000 < 300));
    // 600 chances of a half: 4 sigma are 49
    assert!(fates.dropped.len().abs_diff(300) < 49, "{}", fates.dropped.len());
}

#[test]
fn the_rate_changes_from_slot_to_slot() {
    let rates = Slots { rate: Some((rate(50_000_000), rate(250_000_000))), ..slots() };
    let mut rig = Rig::new(&base(), &with(rates));
    let found: Vec<u64> = (0..200).map(|i| rig.look(ms(12_000 + 15_000 * i)).rate.unwrap().bps()).collect();
    assert!(found.iter().all(|r| (50_000_000..=250_000_000).contains(r)));
    let mean = found.iter().sum::<u64>() as f64 / 200.0;
    // uniform, 57.7 Mbit/s deviation: 4 sigma are 16.3 Mbit/s
    assert!((mean / 1e6 - 150.0).abs() < 16.3, "{mean}");
}

/// Ten packets, 10 ms apart; after the fifth the delay drops from 100 to 20 ms.
fn across_a_drop(reorder: bool) -> (Vec<Instant>, Vec<u64>) {
    let fixed = Slots { period: millis(50), offset: Duration::ZERO, reorder, ..slots() };
    // seeds differ in the order of delays: look for one where the second slot is shorter by more than 40 ms
    for seed in 0.. {
        let dynamics = with(Slots { delay: (millis(20), millis(100)), ..fixed.clone() });
        let mut rig = Rig::with(&base(), &dynamics, Capacity::Packets(10), "link", seed);
        let found = delays(&mut rig, [0, 50].into_iter());
        if found[0] < found[1] + millis(40) {
            continue;
        }
        let mut rig = Rig::with(&base(), &dynamics, Capacity::Packets(10), "link", seed);
        for i in 0..10 {
            rig.send(ms(i * 10), i, 500);
        }
        let fates = rig.fates(ms(300));
        let sent = |i: u64| ms(i * 10) + Duration::from_micros(500);
        for (&at, &i) in fates.arrivals().iter().zip(&fates.numbers()) {
            let own = sent(i) + found[usize::from(i >= 5)];
            let last = sent(4) + found[0];
            assert_eq!(at, if reorder { own } else { own.max(last.min(at)) }, "packet {i}");
            assert!(reorder || i < 5 || at == own.max(last), "packet {i} waits for the fourth and no longer");
        }
        return (fates.arrivals(), fates.numbers());
    }
    unreachable!()
}

#[test]
fn packets_do_not_overtake_when_the_delay_drops() {
    let (at, numbers) = across_a_drop(false);
    assert!(at.is_sorted());
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn packets_overtake_when_they_may() {
    let (at, numbers) = across_a_drop(true);
    assert!(at.is_sorted());
    assert_ne!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let place = |n| numbers.iter().position(|&x| x == n).unwrap();
    assert!(place(5) < place(4) && place(5) < place(6) && place(0) < place(1));
}

#[test]
fn a_delay_that_the_timeline_lowers_does_not_reorder_either() {
    let lower = Change { delay: Some(millis(10)), ..Change::default() };
    let mut rig = Rig::new(&base(), &Dynamics { changes: vec![(ms(5), lower)], ..Dynamics::default() });
    rig.send(ms(1), 0, 1000);
    rig.send(ms(6), 1, 1000);
    rig.send(ms(96), 2, 1000);
    assert_eq!(rig.fates(ms(300)).delivered, [(ms(102), 0), (ms(102), 1), (ms(107), 2)]);
}
