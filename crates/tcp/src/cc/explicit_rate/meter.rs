//! The share of packets that the path loses, and whether it is more than a threshold for sure.
//!
//! Every packet sent is answered once: it arrives, or is found lost. share = lost / (lost + delivered) over
//! the last max(4096 packets, 4 round trips); the threshold t is exceeded when share > t + 5 sqrt(t (1 - t) /
//! n), five standard deviations of what n packets show by chance. In the beginning the window is what there
//! is, from 4096 packets on. Deviation: the window moves in steps of 128 packets, and of more where a round
//! trip holds very many.

use crate::cc::Path;
use bentpipe_base::{Duration, Instant};
use std::collections::VecDeque;

/// Packets of the window, at least.
pub(super) const PACKETS: u64 = 4096;
/// Round trips of the window, at least.
const ROUNDS: u64 = 4;
/// Standard deviations.
const SURE: f64 = 5.0;
/// Packets of a step, as many as between two wishes.
pub(super) const STEP: u64 = 128;
/// Most points that are remembered; beyond them steps become longer.
const MOST_POINTS: usize = 1024;

/// Bytes answered and lost up to an instant.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Instant,
    answered: u64,
    lost: u64,
}

/// Packets answered in a window, and the share of them that were lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) packets: f64,
    pub(super) lost: f64,
}

/// The meter.
#[derive(Clone, Debug)]
pub(super) struct LossMeter {
    mss: u64,
    points: VecDeque<Point>,
    /// Packets of a step.
    step: u64,
    /// Bytes called lost that nobody saw lost: a timeout gives up everything.
    excused: u64,
    /// A timeout gave up what was not yet lost then.
    given_up: Option<u64>,
}

impl LossMeter {
    pub(super) const fn new(mss: u64) -> Self {
        Self { mss, points: VecDeque::new(), step: STEP, excused: 0, given_up: None }
    }

    /// Begins anew with the next acknowledgment.
    pub(super) fn forget(&mut self) {
        self.points.clear();
        self.step = STEP;
    }

    /// A timeout calls everything lost that is not SACKed: what comes until the next acknowledgment proves
    /// nothing.
    pub(super) fn timeout(&mut self, path: &Path) {
        self.given_up.get_or_insert(path.lost);
    }

    /// Takes an acknowledgment. True when a step ended.
    pub(super) fn take(&mut self, now: Instant, path: &Path) -> bool {
        if let Some(lost) = self.given_up.take() {
            self.excused += path.lost - lost;
        }
        let lost = path.lost - self.excused;
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
                left.is_multiple_of(2) // every second, and the last
            });
            self.step *= 2;
        }
        true
    }

    /// The share over the shortest window up to the last step of at least `packets` and `time`; `None` when
    /// there is not that much.
    pub(super) fn over(&self, packets: u64, time: Duration) -> Option<Share> {
        let last = self.points.back()?;
        let is_long =
            |p: &&Point| last.answered - p.answered >= packets * self.mss && last.at.since(p.at) >= time;
        self.points.iter().rev().find(is_long).map(|first| self.share(first, last))
    }

    fn share(&self, first: &Point, last: &Point) -> Share {
        let answered = (last.answered - first.answered).max(1) as f64;
        Share { packets: answered / self.mss as f64, lost: (last.lost - first.lost) as f64 / answered }
    }

    /// Is more than `threshold` lost, for sure?
    pub(super) fn exceeds(&self, threshold: f64) -> bool {
        let (Some(first), Some(last)) = (self.points.front(), self.points.back()) else { return false };
        let Share { packets, lost } = self.share(first, last);
        let doubt = SURE * libm::sqrt(threshold * (1.0 - threshold) / packets.max(1.0));
        packets >= PACKETS as f64 && lost > threshold + doubt
    }
}
