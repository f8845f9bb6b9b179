//! The rate of new payload in steady state: from three round trips after the handshake until the last new
//! byte is sent.
//!
//! The start, in which a scheme may search for its rate, and the tail, in which only losses are repaired,
//! are left out. Time is counted from the sending of the first counted segment to the sending of the last,
//! and the payload of the last is not counted, so the rate is exact for a sender that sends at equal
//! intervals.

use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant};

/// Round trips after the handshake that do not count.
const ROUNDS: u64 = 3;

/// When new payload was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SteadyRate {
    /// The first segment that counts: when it was sent, and where in the stream it begins.
    from: Option<(Instant, u64)>,
    /// The last segment so far.
    last: (Instant, u64),
}

impl SteadyRate {
    /// Visits the state. Until the steady state begins, the time since the handshake counts.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { from, last: (at, start) } = self;
        walk.expect(from.is_some() || at.0 == 0, "the start of a flow");
        walk.same(from);
        walk.count(&mut at.0);
        walk.count(start);
    }

    /// Records that payload from position `start` is sent at `now`; the handshake ended at `established`.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, start: u64, established: Option<Instant>, rtt: Duration) {
        self.last = (now, start);
        if self.from.is_none()
            && let Some(since) = established
            && !rtt.is_zero()
            && now >= since + rtt * ROUNDS
        {
            self.from = Some(self.last);
        }
    }

    /// Returns bits per second; `None` if too little was sent.
    pub fn bps(&self) -> Option<f64> {
        let (since, start) = self.from?;
        let time = self.last.0.since(since);
        (!time.is_zero()).then(|| (self.last.1 - start) as f64 * 8.0 / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_does_not_count() {
        let (mut steady, rtt) = (SteadyRate::default(), Duration::from_millis(100));
        for i in 0..100 {
            // a segment of 1000 B each 10 ms, after an initial burst
            let (ms, start) = if i < 30 { (0, i * 5000) } else { (i * 10, 150_000 + (i - 30) * 1000) };
            steady.sent(Instant(ms * 1_000_000), start, Some(Instant::ZERO), rtt);
        }
        assert!((steady.bps().unwrap() - 800_000.0).abs() < 1e-6, "{:?}", steady.bps());
    }

    #[test]
    fn less_than_three_round_trips_tell_nothing() {
        let (mut steady, rtt) = (SteadyRate::default(), Duration::from_secs(1));
        for i in 0..100 {
            steady.sent(Instant(i * 10_000_000), i * 1000, Some(Instant::ZERO), rtt);
        }
        assert_eq!(steady.bps(), None);
    }
}
