//! The share of packets lost on the path, and whether it exceeds a threshold with certainty.
//!
//! Every packet sent is either delivered or found lost. share = lost / (lost + delivered) over the last
//! max(4096 packets, 4 round trips); the threshold t is exceeded if share > t + 5 sqrt(t (1 - t) / n), five
//! standard deviations of a random sample of n packets. At the beginning, before 4 round trips have passed,
//! the window contains all packets so far, and nothing is decided before there are 4096. Deviation: the
//! window moves in steps of 128 packets, or more if a round trip has very many.

use crate::cc::Path;
use bentpipe_base::{Duration, Instant};
use std::collections::VecDeque;

/// Smallest window in packets.
pub(super) const PACKETS: u64 = 4096;
/// Smallest window in round trips.
const ROUNDS: u64 = 4;
/// Standard deviations above the threshold.
const SURE: f64 = 5.0;
/// Packets per step, as many as between two requests.
pub(super) const STEP: u64 = 128;
/// Largest number of points stored; beyond it the step doubles.
const MOST_POINTS: usize = 1024;

/// Bytes delivered or lost (`answered`), and bytes lost, up to an instant.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Instant,
    answered: u64,
    lost: u64,
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
}

impl LossMeter {
    pub(super) const fn new(mss: u64) -> Self {
        Self { mss, points: VecDeque::new(), step: STEP, lost_by_timeouts: 0, lost_at_timeout: None }
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

    /// Processes an acknowledgment. True if a step ended.
    pub(super) fn take(&mut self, now: Instant, path: &Path) -> bool {
        if let Some(lost) = self.lost_at_timeout.take() {
            self.lost_by_timeouts += path.lost - lost;
        }
        let lost = path.lost - self.lost_by_timeouts;
        let point = Point { at: now, answered: path.delivered + lost, lost };
        let ends = self.points.back().is_none_or(|p| point.answered - p.answered >= self.step * self.mss);
        if !ends {
            return false;
        }
        self.points.push_back(point);
        let (span, long) = (PACKETS * self.mss, path.srtt * ROUNDS);
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

    /// True if more than `threshold` is lost, by at least five standard deviations.
    pub(super) fn exceeds(&self, threshold: f64) -> bool {
        let (Some(first), Some(last)) = (self.points.front(), self.points.back()) else { return false };
        let (packets, lost) = self.share(first, last);
        let doubt = SURE * libm::sqrt(threshold * (1.0 - threshold) / packets.max(1.0));
        packets >= PACKETS as f64 && lost > threshold + doubt
    }
}
