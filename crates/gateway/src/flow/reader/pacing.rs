//! Pacing by token bucket, where the reader limits sending.

use super::Reader;
use bentpipe_base::{Duration, Instant};

/// Lowest pacing rate, bytes per second.
const LEAST_PACE: f64 = 1500.0;

impl Reader {
    /// True while no acknowledgment reports on data sent now.
    fn is_blind(&self, now: Instant) -> bool {
        self.drain.is_some() || now < self.blind
    }

    /// Position up to which may be sent regardless of pacing. After an overflow everything is paced: a whole
    /// window sent at once would find at most half of it read.
    pub(crate) fn at_once(&self, now: Instant, una: u64, edge: u64) -> u64 {
        if self.is_blind(now) && self.rate().is_some() { una } else { edge }
    }

    /// The pacing rate, if the reader limits sending.
    fn pace(&self, now: Instant) -> Option<f64> {
        let rate = self.rate()?;
        // where the edge clocks sending, pacing only spreads accumulated data, at slightly more than the rate
        // of the limit plus the whole window
        Some(if self.is_blind(now) { rate } else { self.spread }.max(LEAST_PACE))
    }

    /// When pacing allows the next byte; none: now.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        let pace = self.pace(now)?;
        let tokens = self.tokens + pace * now.since(self.filled).as_secs_f64();
        (tokens < 0.0).then(|| now + Duration::from_secs_f64(-tokens / pace))
    }

    /// Charges `bytes`, sent now, to pacing.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u64) {
        let Some(pace) = self.pace(now) else { return };
        let tokens = self.tokens + pace * now.since(self.filled).as_secs_f64();
        self.tokens = tokens.min(self.burst) - bytes as f64;
        self.filled = now;
    }
}
