//! The share of packets lost on the path, and whether it exceeds a threshold with certainty.
//!
//! Every packet sent is either delivered or found lost. share = lost / (lost + delivered) over the last
//! max(4096 packets, 4 round trips); the threshold t is exceeded if share > t + 5 sqrt(t (1 - t) / n), five
//! standard deviations of a random sample of n packets. At the beginning, before 4 round trips have passed,
//! the window contains all packets so far, and this test decides nothing before there are 4096.
//! A share far above the threshold needs fewer packets: it is also exceeded if the last four blocks, each of
//! max(128 packets, one round trip), all have share s > t with n D(s, t) >= 15 / 4, where D(s, t) =
//! s ln(s / t) + (1 - s) ln((1 - s) / (1 - t)). By Chernoff's bound (1952) a block of n packets, lost at
//! random with t, does so with a probability of at most exp(-n D), so the four have exp(-15) = 3e-7, as five
//! standard deviations have. All four must agree, so that a short outage is no proof.
//! Deviation: the window moves in steps of 128 packets, or more if a round trip has very many.

use crate::cc::Path;
use bentpipe_base::{Duration, Instant};
use std::collections::VecDeque;

/// Smallest window in packets.
pub(super) const PACKETS: u64 = 4096;
/// Smallest window in round trips.
pub(super) const ROUNDS: u64 = 4;
/// Standard deviations above the threshold.
const SURE: f64 = 5.0;
/// Blocks of which each must show a share far above the threshold.
const BLOCKS: u32 = 4;
/// Evidence of all blocks together: the negative logarithm of the chance of a false alarm.
const PROOF: f64 = 15.0;
/// Packets per step, as many as between two requests.
pub(super) const STEP: u64 = 128;
/// No sample of a round trip.
const UNKNOWN: Duration = Duration(u64::MAX);
/// Largest number of points stored; beyond it the step doubles.
const MOST_POINTS: usize = 1024;

/// Bytes delivered or lost (`answered`), and bytes lost, up to an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: Instant,
    pub(super) answered: u64,
    pub(super) lost: u64,
    /// Shortest round trip since the point before.
    rtt: Duration,
}

/// The evidence of a share of `packets` lost against the assumption that `threshold` is lost at random:
/// exp(-evidence) bounds the probability of so many losses.
pub(super) fn evidence(packets: f64, share: f64, threshold: f64) -> f64 {
    if share <= threshold {
        return 0.0;
    }
    let kept = 1.0 - share;
    let rest = if kept > 0.0 { kept * libm::log(kept / (1.0 - threshold)) } else { 0.0 };
    packets * (share * libm::log(share / threshold) + rest)
}

/// The loss meter.
#[derive(Clone, Debug)]
pub(super) struct LossMeter {
    mss: u64,
    points: VecDeque<Point>,
    /// Packets per step.
    step: u64,
    /// Bytes counted as lost only because of a timeout; they are subtracted.
    lost_by_timeouts: u64,
    /// Bytes lost when the last timeout occurred, until the next acknowledgment.
    lost_at_timeout: Option<u64>,
    /// Shortest round trip since the last point.
    rtt: Duration,
}

impl LossMeter {
    pub(super) const fn new(mss: u64) -> Self {
        Self {
            mss,
            points: VecDeque::new(),
            step: STEP,
            lost_by_timeouts: 0,
            lost_at_timeout: None,
            rtt: UNKNOWN,
        }
    }

    /// Restarts with the next acknowledgment.
    pub(super) fn forget(&mut self) {
        self.points.clear();
        self.step = STEP;
    }

    /// Handles a timeout, which marks everything lost that is not SACKed: losses up to the next
    /// acknowledgment are not counted.
    pub(super) fn timeout(&mut self, path: &Path) {
        self.lost_at_timeout.get_or_insert(path.lost);
    }

    /// What was delivered and lost up to now.
    pub(super) fn point(&self, now: Instant, path: &Path) -> Point {
        let lost = path.lost - self.lost_by_timeouts;
        Point { at: now, answered: path.delivered + lost, lost, rtt: self.rtt }
    }

    /// Processes an acknowledgment, perhaps with a sample of the round-trip time. True if a step ended. The
    /// window is at least `rounds` round trips.
    pub(super) fn take(&mut self, now: Instant, path: &Path, rtt: Option<Duration>, rounds: u64) -> bool {
        if let Some(lost) = self.lost_at_timeout.take() {
            self.lost_by_timeouts += path.lost - lost;
        }
        self.rtt = rtt.map_or(self.rtt, |rtt| rtt.min(self.rtt));
        let point = self.point(now, path);
        let ends = self.points.back().is_none_or(|p| point.answered - p.answered >= self.step * self.mss);
        if !ends {
            return false;
        }
        self.points.push_back(point);
        self.rtt = UNKNOWN;
        let (span, long) = (PACKETS * self.mss, path.srtt * rounds);
        while self
            .points
            .get(1)
            .is_some_and(|p| point.answered - p.answered >= span && now.since(p.at) >= long)
        {
            self.points.pop_front();
        }
        if self.points.len() > MOST_POINTS {
            let mut left = self.points.len();
            self.points.retain(|_| {
                left -= 1;
                left.is_multiple_of(2) // keeps every second point, and the last
            });
            self.step *= 2;
        }
        true
    }

    /// Returns the packets and the share of lost ones over the shortest window that ends at the last step and
    /// has at least `packets` and `time`; `None` if there is none.
    pub(super) fn over(&self, packets: u64, time: Duration) -> Option<(f64, f64)> {
        let last = self.points.back()?;
        let is_long =
            |p: &&Point| last.answered - p.answered >= packets * self.mss && last.at.since(p.at) >= time;
        self.points.iter().rev().find(is_long).map(|first| self.share(first, last))
    }

    /// Returns the packets delivered or lost between two points, and the share of lost ones.
    fn share(&self, first: &Point, last: &Point) -> (f64, f64) {
        let answered = (last.answered - first.answered).max(1) as f64;
        (answered / self.mss as f64, (last.lost - first.lost) as f64 / answered)
    }

    /// Packets in the window, and the share of lost ones.
    pub(super) fn all(&self) -> (f64, f64) {
        let (Some(first), Some(last)) = (self.points.front(), self.points.back()) else { return (0.0, 0.0) };
        self.share(first, last)
    }

    /// True if more than `threshold` is lost in each quarter of the window.
    pub(super) fn exceeds_throughout(&self, threshold: f64) -> bool {
        let Some(mut start) = self.points.front() else { return false };
        let quarter = self.points.back().map_or(0, |last| last.answered - start.answered) / 4;
        self.points.iter().skip(1).all(|end| {
            let is_whole = end.answered - start.answered >= quarter;
            let (_, lost) = self.share(start, end);
            start = if is_whole { end } else { start };
            !is_whole || lost > threshold
        })
    }

    /// The shortest round trip of the last `time` in the window; `None` without a sample.
    pub(super) fn shortest(&self, time: Duration) -> Option<Duration> {
        let since = self.points.back()?.at;
        // a point has the shortest since the one before, and the first is the start of the window
        let steps = self.points.iter().skip(1).rev().take_while(|p| since.since(p.at) < time);
        steps.map(|p| p.rtt).min().filter(|rtt| *rtt < UNKNOWN)
    }

    /// True if more than `threshold` is lost, with certainty.
    pub(super) fn exceeds(&self, threshold: f64, srtt: Duration) -> bool {
        let (packets, lost) = self.all();
        let doubt = SURE * libm::sqrt(threshold * (1.0 - threshold) / packets.max(1.0));
        packets >= PACKETS as f64 && lost > threshold + doubt || self.exceeds_by_far(threshold, srtt)
    }

    /// True if each of the last blocks shows it.
    fn exceeds_by_far(&self, threshold: f64, srtt: Duration) -> bool {
        let mut points = self.points.iter().rev();
        let Some(mut end) = points.next() else { return false };
        for _ in 0..BLOCKS {
            let is_whole =
                |p: &&Point| end.answered - p.answered >= STEP * self.mss && end.at.since(p.at) >= srtt;
            let Some(start) = points.find(is_whole) else { return false };
            let (packets, lost) = self.share(start, end);
            if evidence(packets, lost, threshold) < PROOF / f64::from(BLOCKS) {
                return false;
            }
            end = start;
        }
        true
    }
}
