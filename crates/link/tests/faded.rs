//! Bursts, outages, rain and adaptive coding, as packets see them.

mod rig;

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_link::normal::q;
use bentpipe_link::{
    Acm, Capacity, Coding, DirectionSpec, Drift, Dynamics, Fade, FadeEffect, FadeSource, GilbertElliott,
    Outages, Pointing, Rain,
};
use rig::{Fates, Rig, base, chance, ms, rate};

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A packet every `gap` for `time`.
fn stream(dynamics: &Dynamics, gap: Duration, time: Duration) -> Fates {
    let mut rig = Rig::new(&DirectionSpec { rate: rate(1_000_000_000), ..base() }, dynamics);
    for i in 0..time.0 / gap.0 {
        rig.send(Instant(i * gap.0), i, 100);
    }
    rig.fates(Instant::ZERO + time + Duration::from_secs(1))
}

fn bursts(loss_good: f64, loss_bad: f64) -> Dynamics {
    let (loss_good, loss_bad) = (chance(loss_good), chance(loss_bad));
    let bursts = GilbertElliott { good: millis(950), bad: millis(50), loss_good, loss_bad };
    Dynamics { bursts: Some(bursts), ..Dynamics::default() }
}

#[test]
fn bursts_are_as_long_for_a_slow_flow_as_for_a_fast_one() {
    let time = Duration::from_secs(4000);
    let fast = stream(&bursts(0.0, 1.0), millis(1), time);
    let slow = stream(&bursts(0.0, 1.0), millis(20), time);
    assert!(fast.dropped.iter().all(|d| d.1 == DropCause::Burst));
    // 4000 bad periods of 50 ms in 4000 s: a share of 0.05, whose deviation is sqrt(2 / 4000) 0.95 of it; 4
    // sigma
    for (fates, packets) in [(&fast, 4_000_000.0), (&slow, 200_000.0)] {
        let loss = fates.dropped.len() as f64 / packets;
        assert!((loss / 0.05 - 1.0).abs() < 0.085, "{loss}");
    }
    // the bad periods are the same: what the slow flow lost, the fast one lost at the same time
    let lost: std::collections::BTreeSet<u64> = fast.dropped.iter().map(|d| d.0).collect();
    assert!(slow.dropped.iter().all(|d| lost.contains(&(d.0 * 20))));
    // mean length of a run of lost packets, seen every 1 ms: 50 ms, 0.5 ms on either side; 4 sigma are 6.3 %
    let runs = 1 + fast.dropped.windows(2).filter(|d| d[1].0 != d[0].0 + 1).count();
    let mean = fast.dropped.len() as f64 / runs as f64;
    assert!((mean / 50.5 - 1.0).abs() < 0.07, "{mean} ms");
}

#[test]
fn losses_in_good_and_bad_spells_add_up() {
    let fates = stream(&bursts(0.01, 0.5), millis(2), Duration::from_secs(4000));
    // 0.95 x 0.01 + 0.05 x 0.5
    let loss = fates.dropped.len() as f64 / 2_000_000.0;
    assert!((loss / 0.0345 - 1.0).abs() < 0.07, "{loss}");
}

#[test]
fn outages_come_with_their_spacing_and_last_as_long_as_they_should() {
    let outages = |random, shortest, longest| Dynamics {
        outages: Some(Outages {
            every: millis(900),
            random,
            shortest: millis(shortest),
            longest: millis(longest),
        }),
        ..Dynamics::default()
    };
    let fixed = stream(&outages(false, 100, 100), millis(10), Duration::from_secs(3));
    let expected: Vec<u64> = (90..100).chain(190..200).chain(290..300).collect();
    assert_eq!(fixed.dropped.iter().map(|d| d.0).collect::<Vec<_>>(), expected);
    assert!(fixed.dropped.iter().all(|d| d.1 == DropCause::Outage));

    let random = stream(&outages(true, 50, 150), millis(1), Duration::from_secs(2000));
    let lost: Vec<u64> = random.dropped.iter().map(|d| d.0).collect();
    let mut lengths = vec![1];
    for pair in lost.windows(2) {
        if pair[1] == pair[0] + 1 {
            *lengths.last_mut().unwrap() += 1;
        } else {
            lengths.push(1);
        }
    }
    // 2000 outages, uniform in 50 to 150 ms: 4 sigma of the mean are 2.6 ms, of the number 4 x 0.9 sqrt(2000)
    let mean = lost.len() as f64 / lengths.len() as f64;
    assert!((mean - 100.0).abs() < 3.0 && lengths.len().abs_diff(2000) < 165, "{mean} {}", lengths.len());
    // two outages less than a packet apart look like one longer outage; this is rare
    assert!(lengths.iter().filter(|&&l| !(49..=151).contains(&l)).count() < 12);
}

fn rain(station: &str, scale: f64) -> Rain {
    Rain {
        m: -1.0,
        sigma: 1.65,
        p0: 0.9,
        beta: 2e-4,
        step: Duration::from_secs(1),
        scintillation_db: 0.0,
        station: station.to_owned(),
        scale,
    }
}

fn rainy(station: &str, scale: f64) -> Dynamics {
    let effect = FadeEffect::Coding { coding: Coding::Viterbi, clear_db: 9.2, drift: None };
    let fade =
        Fade { source: FadeSource::Rain(rain(station, scale)), effect, every: Duration::from_secs(10) };
    Dynamics { fade: Some(fade), ..Dynamics::default() }
}

#[test]
fn both_directions_of_a_station_see_the_same_rain_scaled() {
    let rig =
        |station, scale, name| Rig::with(&base(), &rainy(station, scale), Capacity::Packets(1), name, 9);
    let (mut down, mut up, mut other) =
        (rig("here", 1.0, "down"), rig("here", 1.9, "up"), rig("there", 1.0, "x"));
    let (mut wet, mut apart) = (0, 0);
    for i in 0..500 {
        // one of them is observed more often
        up.look(ms(30_000 * i));
        let at = ms(30_000 * i + 20_000);
        let [a, b, c] = [&mut down, &mut up, &mut other].map(|rig| rig.look(at).fade_db.unwrap());
        assert!((1.9 * a - b).abs() < 1e-9, "{a} {b}");
        wet += u32::from(a > 0.0);
        apart += u32::from((a - c).abs() > 0.01);
    }
    assert!(wet > 50 && apart > 50, "{wet} {apart}");
}

#[test]
fn a_drift_changes_the_errors_and_not_the_recorded_fade() {
    let second = |s| Instant::ZERO + Duration::from_secs(s);
    let drift = Drift { amplitude_db: 1.0, period: Duration::from_secs(400), start: Instant::ZERO };
    let source = FadeSource::Profile([(Instant::ZERO, 3.0)].into());
    let effect = FadeEffect::Coding { coding: Coding::Uncoded, clear_db: 13.0, drift: Some(drift) };
    let fade = Fade { source, effect, every: Duration::from_secs(1) };
    let mut rig = Rig::new(&base(), &Dynamics { fade: Some(fade), ..Dynamics::default() });
    for (at, ebn0_db) in [(0, 10.0), (100, 9.0), (200, 10.0), (300, 11.0)] {
        let seen = rig.look(second(at));
        assert_eq!(seen.fade_db, Some(3.0));
        assert!((seen.ber / Coding::Uncoded.ber(ebn0_db) - 1.0).abs() < 1e-9, "{at} s: {}", seen.ber);
    }
}

#[test]
fn a_dish_that_does_not_track_fades_the_link() {
    let effect = FadeEffect::Coding { coding: Coding::Uncoded, clear_db: 14.59, drift: None };
    let source = FadeSource::Pointing(Pointing::default());
    let fade = Fade { source, effect, every: Duration::from_secs(15) };
    let mut rig = Rig::new(&base(), &Dynamics { fade: Some(fade), ..Dynamics::default() });
    let seen: Vec<_> = [0, 3600, 7200].map(|s| rig.look(Instant::ZERO + Duration::from_secs(s))).into();
    let ber: Vec<_> = seen.iter().map(|s| s.ber).collect();
    assert!((0.5..2.0).contains(&(ber[0] / 1e-5)) && ber[1] < 1e-8 && ber[2] < 1e-11, "{ber:?}");
    assert!(seen[2].fade_db.is_some_and(|db| db.abs() < 1e-9), "{seen:?}");
}

#[test]
fn bit_errors_of_a_faded_code_lose_as_many_packets_as_its_error_events_say() {
    let coding = Coding::Viterbi;
    let source = FadeSource::Profile([(Instant::ZERO, 5.0)].into());
    let effect = FadeEffect::Coding { coding, clear_db: 9.2, drift: None };
    let fade = Fade { source, effect, every: Duration::from_secs(1) };
    let dynamics = Dynamics { fade: Some(fade), ..Dynamics::default() };
    let mut rig = Rig::new(&DirectionSpec { rate: rate(1_000_000_000), ..base() }, &dynamics);
    for i in 0..100_000 {
        rig.send(ms(i), i, 1500);
    }
    let fates = rig.fates(ms(200_000));
    assert!(fates.dropped.iter().all(|d| d.1 == DropCause::BitError));
    // 4.2 dB are left; distances and numbers of paths of the code
    let spectrum: [(f64, f64); 6] =
        [(10.0, 11.0), (12.0, 38.0), (14.0, 193.0), (16.0, 1331.0), (18.0, 7275.0), (20.0, 40_406.0)];
    let event: f64 = spectrum.iter().map(|(d, paths)| paths * q(libm::sqrt(d * libm::exp10(0.42)))).sum();
    let expected = -libm::expm1(12_000.0 * libm::log1p(-event));
    let found = fates.dropped.len() as f64 / 1e5;
    // 4 sigma
    assert!((found - expected).abs() < 4.0 * libm::sqrt(expected / 1e5), "{found} for {expected}");
    assert!((1.0 / 6.0..1.0 / 3.2).contains(&(found / (1e-5 * 12_000.0))), "{found}");
}

#[test]
fn adaptive_coding_without_a_margin_is_blind_until_the_decision_comes() {
    // 13.5 dB: 16APSK 9/10; a step to 5.5 dB at 10 s: QPSK 3/4; to -4 dB at 20 s: nothing
    let points = [(0, 0.0), (10_000, 0.0), (10_000, 8.0), (20_000, 8.0), (20_000, 17.5)];
    let source = FadeSource::Profile(points.map(|(at, db)| (ms(at), db)).into());
    let effect =
        FadeEffect::Acm(Acm { clear_db: 13.5, hysteresis_db: 0.5, margin_db: Some(0.0), delay: millis(700) });
    let fade = Fade { source, effect, every: millis(100) };
    let mut rig = Rig::new(&base(), &Dynamics { fade: Some(fade), ..Dynamics::default() });
    for i in 0..300 {
        rig.send(ms(100 * i + 50), i, 1000);
    }
    let fates = rig.fates(ms(40_000));
    let lost: Vec<u64> = fates.dropped.iter().map(|d| d.0).collect();
    // too weak for the mode until the decision comes
    assert_eq!(lost, (100..107).chain(200..300).collect::<Vec<_>>());
    assert!(fates.dropped.iter().all(|d| d.1 == DropCause::Fade));
    let took = |i: u64| fates.delivered.iter().find(|d| d.1 == i).unwrap().0.since(ms(100 * i + 50));
    assert_eq!(took(99), millis(101));
    // 8 Mbit/s x 1.487 / 3.567 = 3.335 Mbit/s
    assert_eq!(took(107), Duration(100_000_000 + 8_000_000_000_000 / 3_335_015));
}

/// Packets lost in a fade that grows by `db` in `time` and decreases again, and the link's rates in it.
fn ramp(margin_db: Option<f64>, db: f64, time: u64) -> (usize, Vec<u64>) {
    let points =
        [(0, 0.0), (20_000, 0.0), (20_000 + time, db), (60_000 + time, db), (60_000 + 2 * time, 0.0)];
    let source = FadeSource::Profile(points.map(|(at, db)| (ms(at), db)).into());
    let effect = FadeEffect::Acm(Acm { clear_db: 16.5, hysteresis_db: 0.5, margin_db, delay: millis(1000) });
    let fade = Fade { source, effect, every: millis(100) };
    let mut rig = Rig::new(&base(), &Dynamics { fade: Some(fade), ..Dynamics::default() });
    let (end, mut rates) = (80_000 + 2 * time, Vec::new());
    for i in 0..end / 10 {
        rig.send(ms(10 * i), i, 100);
        rates.extend(rig.look(ms(10 * i)).rate.map(Rate::bps));
    }
    rates.dedup();
    let fates = rig.fates(ms(end + 1000));
    assert!(fates.dropped.iter().all(|d| d.1 == DropCause::Fade));
    (fates.dropped.len(), rates)
}

/// Real modems leave a mode before it fails: a fade of 0.2 dB/s, steep for Ka band, loses no packet.
#[test]
fn with_its_margin_adaptive_coding_loses_nothing_in_a_fade_that_goes_on_as_it_did() {
    for time in [20_000, 40_000, 200_000] {
        let (lost, rates) = ramp(None, 8.0, time);
        // with the margin 15.5 dB: 16APSK 9/10; at the end 7.5 dB: 8PSK 2/3
        let down: Vec<_> = [3.567, 2.967, 2.228, 1.980].map(|e| (e / 3.567 * 8e6 + 0.5) as u64).into();
        assert_eq!((lost, rates[0], rates.iter().min()), (0, 8_000_000, down.last()), "{time}: {rates:?}");
        assert_eq!(rates.last(), rates.first(), "back under clear sky");
        // down in steps that exist, and up again
        let lowest = rates.iter().position(|r| Some(r) == down.last()).unwrap();
        assert!(rates[..=lowest].is_sorted_by(|a, b| a > b) && rates[lowest..].is_sorted(), "{rates:?}");
        assert!(rates.iter().all(|r| down.contains(r)), "{rates:?}");
    }
}

#[test]
fn a_margin_of_one_decibel_is_not_enough_for_a_steep_fade_but_its_slope_is() {
    // 8 dB in 5 s are 1.6 dB within the delay
    let (without, fixed, following) =
        (ramp(Some(0.0), 8.0, 5000).0, ramp(Some(1.0), 8.0, 5000).0, ramp(None, 8.0, 5000).0);
    assert!(without > 100 && fixed > 0 && fixed < without, "{without} {fixed}");
    assert_eq!(following, 0);
}
