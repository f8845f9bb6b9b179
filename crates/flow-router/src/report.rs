//! What a flow router reports.

use bentpipe_base::{Duration, Instant, Size};

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Flows that had state.
    pub(crate) flows: u64,
    /// Requests that passed.
    pub(crate) requests: u64,
    /// Refused requests for a guaranteed or maximum rate.
    pub(crate) refused: u64,
    /// Reservations that were withdrawn.
    pub(crate) preempted: u64,
    /// Reductions, without repetitions.
    pub(crate) reductions: u64,
    /// Packets dropped because their flow exceeded its rate for longer than allowed.
    pub(crate) policed: u64,
    /// SCONE packets whose signal was lowered.
    pub(crate) advised: u64,
}

/// Traffic forwarded into the managed direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    first: Option<Instant>,
    last: Instant,
    bits: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, now: Instant, size: Size) {
        self.first.get_or_insert(now);
        self.last = now;
        self.bits = self.bits.saturating_add(size.bits());
    }

    /// Mean rate in bit/s; 0 for a single instant.
    pub(crate) fn bps(&self) -> u64 {
        let time = self.first.map_or(Duration::ZERO, |first| self.last.since(first));
        let bps = (u128::from(self.bits) * 1_000_000_000).checked_div(u128::from(time.0));
        u64::try_from(bps.unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_used_is_that_between_the_first_packet_and_the_last() {
        let mut usage = Usage::default();
        assert_eq!(usage.bps(), 0);
        usage.add(Instant(1_000_000_000), Size(500));
        assert_eq!(usage.bps(), 0, "one instant has no rate");
        usage.add(Instant(3_000_000_000), Size(1500));
        assert_eq!(usage.bps(), 8000);
    }
}
