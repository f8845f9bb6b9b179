//! Scheduled capacity: a rate over time, or a mahimahi trace.
//!
//! Mahimahi (Netravali et al., USENIX ATC 2015) records a link as the instants at which one packet of 1504
//! bytes (its MTU) could leave. An opportunity with nothing waiting is lost; the bytes that a small packet
//! leaves unused serve the next one if it waits already. The trace repeats when it ends. Mahimahi's packets
//! come from a TUN device with 4 bytes in front, which count towards the 1504: with a framing of 4 B a packet
//! of 1500 bytes takes one opportunity as it does there; without it 376 opportunities carry 377 packets.

use crate::state::SHORTEST_STEP;
use bentpipe_base::{Duration, Instant, Rate, Size};
use std::sync::Arc;

/// How much the link can carry, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapacityTrace {
    /// A rate that holds from an instant until the next one; before the first, the link's own rate. `None`
    /// carries nothing: packets wait.
    Steps {
        /// Instants in order, and the rate from there on.
        points: Arc<[(Instant, Option<Rate>)]>,
        /// Repeat after this time, which is later than the last point.
        repeat: Option<Duration>,
    },
    /// Instants at which `size` bytes may leave.
    Opportunities {
        /// In order, at least one; equal instants are several opportunities.
        at: Arc<[Duration]>,
        /// Length of the trace, after which it repeats. Not less than the last instant, more than zero.
        period: Duration,
        /// Bytes of each opportunity.
        size: Size,
    },
}

impl CapacityTrace {
    /// Mean rate of a trace of opportunities, which replaces the link's own rate. `None` for steps.
    pub fn mean_rate(&self) -> Option<Rate> {
        match self {
            Self::Opportunities { at, period, size } => mean_rate(at.len(), *period, *size),
            Self::Steps { .. } => None,
        }
    }
}

/// State of a mahimahi trace: the next opportunity.
#[derive(Debug)]
pub(crate) struct Opportunities {
    at: Arc<[Duration]>,
    period: Duration,
    pub size: Size,
    /// Beginning of the current repetition.
    begin: Instant,
    index: usize,
    /// The previous opportunity, to compute the time since then.
    before: Instant,
}

impl Opportunities {
    pub(crate) fn new(at: &Arc<[Duration]>, period: Duration, size: Size) -> Self {
        let last = at.last().copied().unwrap_or_default();
        let period = period.max(last).max(SHORTEST_STEP);
        Self { at: Arc::clone(at), period, size, begin: Instant::ZERO, index: 0, before: Instant::ZERO }
    }

    /// Time of the next opportunity; never if there are none.
    pub(crate) fn next(&self) -> Instant {
        self.at.get(self.index).map_or(Instant::NEVER, |&at| self.begin + at)
    }

    /// Takes the next opportunity; returns the time since the previous one.
    pub(crate) fn take(&mut self) -> Duration {
        let at = self.next();
        self.index += 1;
        if self.index >= self.at.len() {
            self.index = 0;
            self.begin += self.period;
        }
        let gap = at.since(self.before);
        self.before = at;
        gap
    }

    /// Skips all opportunities up to and including `now`.
    pub(crate) fn lose_until(&mut self, now: Instant) {
        if self.next() > now {
            return;
        }
        self.begin += self.period * (now.since(self.begin).0 / self.period.0);
        let within = now.since(self.begin);
        self.index = self.at.partition_point(|&at| at <= within);
        if let Some(&last) = self.index.checked_sub(1).and_then(|i| self.at.get(i)) {
            self.before = self.begin + last;
        } else if let Some(&last) = self.at.last() {
            self.before = Instant((self.begin + last).0.saturating_sub(self.period.0));
        }
        if self.index >= self.at.len() {
            self.index = 0;
            self.begin += self.period;
        }
    }

    pub(crate) fn mean_rate(&self) -> Option<Rate> {
        mean_rate(self.at.len(), self.period, self.size)
    }
}

fn mean_rate(opportunities: usize, period: Duration, size: Size) -> Option<Rate> {
    let bits = u128::from(size.bits()) * opportunities as u128;
    let bps = bits * 1_000_000_000 / u128::from(period.0.max(1));
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}
