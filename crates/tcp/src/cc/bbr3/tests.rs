//! BBR version 3 with one bottleneck: 8 Mbit/s and 100 ms are 1000 segments per second and a BDP of 100
//! segments.

use super::super::line::Line;
use super::*;
use crate::cc::law::{Growth, Value};

fn line() -> Line {
    Line::new(Growth::of(&ALGORITHM), 8, Duration::from_millis(100))
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// The phases of the pace during `time`: start in seconds and gain.
fn phases(l: &mut Line, time: Duration) -> Vec<(f64, f64)> {
    let mut phases: Vec<(f64, f64)> = Vec::new();
    l.run(time, |l| {
        let gain = libm::round(l.gain() / 0.99 * 20.0) / 20.0;
        if phases.last().is_none_or(|(_, last)| (last - gain).abs() > 0.01) {
            phases.push((l.now.0 as f64 / 1e9, gain));
        }
    });
    phases
}

/// A probe 2 to 3 s after the last one: UP at 1.25, DOWN at 0.9, otherwise the measured rate minus 1 %.
/// `ProbeRTT`, which would restart the wait, is disabled.
#[test]
fn the_cycle_of_gains() {
    let mut growth = Growth::of(&ALGORITHM);
    assert!(growth.set("probe_rtt_interval", Value::Time(seconds(3600))));
    let mut l = Line::new(growth, 8, Duration::from_millis(100));
    l.run(seconds(4), |_| ());
    let seen = phases(&mut l, seconds(20));
    let ups: Vec<f64> = seen.iter().filter(|p| (p.1 - 1.25).abs() < 0.01).map(|p| p.0).collect();
    assert!((6..=11).contains(&ups.len()), "{seen:?}");
    for pair in ups.windows(2) {
        assert!((2.0..3.8).contains(&(pair[1] - pair[0])), "{ups:?}");
    }
    for (i, (_, gain)) in seen.iter().enumerate() {
        assert!([0.9, 1.0, 1.25].iter().any(|g| (g - gain).abs() < 0.01), "{seen:?}");
        if (gain - 1.25).abs() < 0.01 && i + 1 < seen.len() {
            assert!((seen[i + 1].1 - 0.9).abs() < 0.01, "after UP comes DOWN: {seen:?}");
        }
    }
}

#[test]
fn startup_fills_and_drain_empties() {
    let mut l = line();
    l.run(seconds(2), |_| ());
    assert!(l.delivered() > 1_200_000, "{}", l.delivered());
    assert!(l.queue() <= Duration::from_millis(40) && l.in_flight() <= 150, "{}", l.queue());
    let before = l.delivered();
    l.run(seconds(20), |_| ());
    let share = (l.delivered() - before) as f64 / 20e6;
    assert!(share > 0.93, "ProbeRTT and the margin cost little: {share}");
}

/// Half a BDP every 5 s, for 200 ms and a round.
#[test]
fn probe_rtt_comes_every_five_seconds() {
    let mut l = line();
    l.run(seconds(4), |_| ());
    let mut low: Vec<(f64, f64)> = Vec::new();
    l.run(seconds(21), |l| {
        let now = l.now.0 as f64 / 1e9;
        if (20..=55).contains(&l.in_flight()) {
            match low.last_mut() {
                Some((_, end)) if now - *end < 0.5 => *end = now,
                _ => low.push((now, now)),
            }
        }
    });
    assert!((3..=4).contains(&low.len()), "{low:?}");
    for (from, to) in &low {
        assert!((0.2..0.5).contains(&(to - from)), "{low:?}");
    }
}

/// Losses below 2 % cost little; above it the flow slows down, unlike version 1.
#[test]
fn losses_above_two_percent_count() {
    let share = |lose_one_in: u64| {
        let mut l = line();
        l.lose_one_in = lose_one_in;
        l.run(seconds(10), |_| ());
        let before = l.delivered();
        l.run(seconds(30), |_| ());
        (l.delivered() - before) as f64 / 30e6
    };
    let (clean, few, many) = (share(0), share(200), share(15));
    assert!(few > 0.85 * clean, "0.5 %: {few} of {clean}");
    assert!(many < 0.75 * clean, "6.7 %: {many} of {clean}");
}

/// A buffer of a fifth of a BDP: the flow finds the long-term bound and stays below it, where version 1 loses
/// in every cycle.
#[test]
fn a_shallow_buffer_bounds_what_is_in_flight() {
    let mut l = line();
    l.buffer = 20;
    l.run(seconds(10), |_| ());
    let (before, mut most) = (l.delivered(), 0);
    l.run(seconds(20), |l| most = most.max(l.in_flight()));
    assert!(most <= 135, "{most}");
    assert!(l.delivered() - before > 17_000_000, "{}", l.delivered() - before);
}
