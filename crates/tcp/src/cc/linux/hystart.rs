//! HyStart as in Linux.
//!
//! Source: Ha, Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011, with the
//! values of Linux 6.x. From 16 segments on, slow start ends for good if, within one round,
//! - a train of acknowledgments, each within 2 ms of the one before, has lasted half of the smallest RTT (the
//!   whole of it with pacing), or
//! - the smallest of more than eight RTT samples exceeds the smallest RTT ever by an eighth of it, at least
//!   4 ms and at most 16 ms.
//!
//! The train's bound is extended by the sending time of four bursts of 64 KiB at twice the rate, at most
//! 1 ms. RFC 9406 (HyStart++) compares with the last round, slows down first, and ignores trains: see
//! `cc/hystart.rs`.

use crate::told::{Distance, Part, Place, visit};
use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant, Size};

/// Window in segments below which slow start always continues.
const LOW_WINDOW: u32 = 16;
/// Largest gap between acknowledgments of a train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// RTT samples that a round needs before it is compared.
const SAMPLES: u8 = 8;
/// Bounds of the RTT rise that ends slow start.
const RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// Largest extension of the train's bound.
const CUSHION: Duration = Duration::from_millis(1);
/// Four bursts of the largest size.
const PIECES: Size = Size(4 * 65_536);
/// Most acknowledgments written down.
const MOST_SEEN: usize = 1 << 15;
/// Windows sent per round trip in slow start.
const SLOW_START_GAIN: u64 = 2;

/// Input of the detector: one acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckInput {
    pub now: Instant,
    pub rtt: Duration,
    pub cwnd: u32,
    pub window: Size,
    pub srtt: Duration,
    pub una: u64,
    pub next: u64,
}

/// The HyStart detector.
#[derive(Clone, Debug, Default)]
pub(super) struct Hystart {
    /// Smallest RTT since the start or the last timeout.
    delay_min: Option<Duration>,
    found: bool,
    round_began: Instant,
    last_ack: Instant,
    end: u64,
    round_min: Duration,
    samples: u8,
    paced: bool,
    /// What it was told in a repetition, while that is written down for fast-forward.
    seen: Option<Vec<AckInput>>,
}

impl Hystart {
    pub(super) fn new(paced: bool) -> Self {
        Self { round_min: Duration(u64::MAX), paced, ..Self::default() }
    }

    /// Returns the smallest RTT; zero before the first sample.
    pub(super) fn delay_min(&self) -> Duration {
        self.delay_min.unwrap_or_default()
    }

    /// Takes an RTT sample for the minimum.
    pub(super) fn sample(&mut self, rtt: Duration) {
        self.delay_min = Some(self.delay_min.map_or(rtt, |m| m.min(rtt)));
    }

    /// Starts anew after a timeout, without the minimum.
    pub(super) const fn reset(&mut self, now: Instant, next: u64) {
        self.delay_min = None;
        self.found = false;
        self.begin_round(now, next);
    }

    const fn begin_round(&mut self, now: Instant, next: u64) {
        self.round_began = now;
        self.last_ack = now;
        self.end = next;
        self.round_min = Duration(u64::MAX);
        self.samples = 0;
    }

    /// Processes an acknowledgment in slow start; true if slow start ends here.
    pub(super) fn ends(&mut self, seen: &AckInput) -> bool {
        if let Some(all) = &mut self.seen {
            all.push(*seen);
            if all.len() >= MOST_SEEN {
                self.seen = None;
            }
        }
        self.ends_here(seen)
    }

    fn ends_here(&mut self, seen: &AckInput) -> bool {
        if self.found {
            return false;
        }
        if seen.una > self.end {
            self.begin_round(seen.now, seen.next);
        }
        if seen.cwnd < LOW_WINDOW {
            return false;
        }
        let (train, delay) = (self.train(seen), self.delay(seen.rtt));
        self.found = train || delay;
        self.found
    }

    fn train(&mut self, seen: &AckInput) -> bool {
        if seen.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = seen.now;
        let per_round = seen.window.0 * SLOW_START_GAIN;
        let cushion = (PIECES.0 * seen.srtt.0).checked_div(per_round).map_or(CUSHION, Duration).min(CUSHION);
        let bound = self.delay_min() + cushion;
        let bound = if self.paced { bound } else { bound / 2 };
        seen.now.since(self.round_began) > bound
    }

    fn delay(&mut self, rtt: Duration) -> bool {
        self.round_min = self.round_min.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let least = self.delay_min();
        self.round_min > least + (least / 8).clamp(RISE.0, RISE.1)
    }
}

impl Hystart {
    /// Visits the state, but for the smallest RTT, at a sender of `stream`. While slow start goes on, but not
    /// because the window is the limit, it is only told what happens: its rounds have a period of their own.
    /// If it is not asked, or has found the end before, it rests.
    pub(super) fn shift(&mut self, walk: &mut Walk<'_>, (stream, una): (usize, u64), is_asked: bool) {
        let mut seen = self.seen.take();
        let is_told = is_asked && !self.found;
        let values = |it: &mut Self, walk: &mut Walk<'_>| {
            let Self {
                delay_min: _,
                found,
                round_began,
                last_ack,
                end,
                round_min,
                samples,
                paced: _,
                seen: _,
            } = it;
            walk.same(&(*found, *samples, *round_min));
            if is_told {
                walk.position(stream, end);
                walk.time(round_began);
                walk.time(last_ack);
            } else {
                walk.mark(stream, end);
                walk.past(round_began);
                walk.past(last_ack);
            }
        };
        let place = Place { una, now: walk.now() };
        let replay = |it: &mut Self, seen: &Vec<AckInput>, step, n| it.replay(seen, place, step, n);
        visit(walk, stream, (self, &mut seen), (6, values), replay);
        self.seen = seen;
    }
}

impl Part for Hystart {
    type Calls = [AckInput];

    fn tell(&mut self, calls: &[AckInput], (bytes, time): Distance, _: Instant) -> bool {
        calls.iter().all(|seen| {
            let (now, una, next) = (seen.now + time, seen.una + bytes, seen.next + bytes);
            !self.ends_here(&AckInput { now, una, next, ..*seen })
        })
    }

    fn is_like(&self, here: Place, other: &Self, there: Place, _: &[AckInput]) -> bool {
        let state = |it: &Self, Place { una, now }: Place| {
            let ago = |at: Instant| now.0.wrapping_sub(at.0);
            let rounds = (it.end.wrapping_sub(una), ago(it.round_began), ago(it.last_ack));
            (it.found, it.samples, it.round_min, rounds)
        };
        state(self, here) == state(other, there)
    }

    fn come_round(&mut self, _: &Self, _: u64, (bytes, time): Distance) {
        self.end += bytes;
        self.round_began += time;
        self.last_ack += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(v: u64) -> Duration {
        Duration::from_millis(v)
    }

    /// One acknowledgment at `at` with an RTT of `rtt`; every round ends beyond 1000.
    fn ends(h: &mut Hystart, at: u64, rtt: u64, cwnd: u32) -> bool {
        h.sample(ms(rtt));
        let now = Instant::ZERO + ms(at);
        h.ends(&AckInput { now, rtt: ms(rtt), cwnd, window: Size(64_000), srtt: ms(rtt), una: 1, next: 1000 })
    }

    fn begun() -> Hystart {
        let mut h = Hystart::new(false);
        assert!(!ends(&mut h, 0, 100, 20));
        h
    }

    #[test]
    fn a_rise_by_an_eighth_ends_slow_start_after_eight_samples() {
        let mut h = begun();
        h.begin_round(Instant::ZERO + ms(100), 1000);
        for i in 0..8 {
            assert!(!ends(&mut h, 110 + 10 * i, 113, 20));
        }
        assert!(ends(&mut h, 200, 113, 20)); // 100 / 8 = 12.5
        assert!(!ends(&mut h, 210, 113, 20), "it is found once");
    }

    #[test]
    fn one_short_round_trip_saves_the_round() {
        let mut h = begun();
        h.begin_round(Instant::ZERO + ms(100), 1000);
        assert!(!ends(&mut h, 105, 112, 20));
        for i in 0..20 {
            assert!(!ends(&mut h, 110 + 10 * i, 140, 20));
        }
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let mut h = begun();
        h.begin_round(Instant::ZERO + ms(100), 1000);
        let ended = (0..60).find(|i| ends(&mut h, 100 + i, 100, 20));
        assert_eq!(ended, Some(51)); // more than (100 + 1) / 2
        let mut h = begun();
        h.begin_round(Instant::ZERO + ms(100), 1000);
        assert!((0..60).all(|i| !ends(&mut h, 100 + 3 * i, 100, 20)), "3 ms apart is no train");
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut h = begun();
        assert!((0..60).all(|i| !ends(&mut h, 100 + i, 200, 15)));
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

        /// Told n repetitions at once, it is as if told one by one, up to the one in which slow start ends.
        #[test]
        fn many_repetitions_at_once_are_those_one_by_one(
            acks in proptest::collection::vec((0u64..4, 290u64..330, 1u64..3), 1..40),
            (window, rest, cwnd) in (1u64..60, 0u64..20, 10u32..20),
            n in 0u64..200,
        ) {
            let mss = 1000;
            let mut place = Place { una: 1, now: Instant::ZERO + ms(100) };
            let first = place;
            let mut calls = Vec::new();
            for (gap, rtt, segments) in acks {
                place.now += ms(gap);
                let next = place.una + window * mss;
                place.una += segments * mss;
                let size = Size(u64::from(cwnd) * mss);
                calls.push(AckInput { now: place.now, rtt: ms(rtt), cwnd, window: size, srtt: ms(300), una: place.una, next });
            }
            place.now += ms(rest + 1);
            let step = (place.una - first.una, place.now.since(first.now));
            let mut at_once = Hystart { delay_min: Some(ms(290)), end: first.una + 500, ..Hystart::new(false) };
            at_once.round_began = first.now;
            let mut plain = at_once.clone();
            // the first is none that is skipped
            let ends = |it: &mut Hystart, k: u64| {
                calls.iter().any(|seen| {
                    let (now, bytes) = (seen.now + step.1 * k, step.0 * k);
                    it.ends(&AckInput { now, una: seen.una + bytes, next: seen.next + bytes, ..*seen })
                })
            };
            if ends(&mut plain, 0) {
                return Ok(());
            }
            at_once.clone_from(&plain);
            let done = at_once.replay(&calls, place, step, n);
            for k in 1..=done {
                proptest::prop_assert!(!ends(&mut plain, k));
            }
            proptest::prop_assert_eq!(format!("{at_once:?}"), format!("{plain:?}"));
            proptest::prop_assert!(done == n || ends(&mut plain, done + 1));
        }
    }
}
