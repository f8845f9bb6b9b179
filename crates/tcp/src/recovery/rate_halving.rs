//! Rate halving.
//!
//! Source: Mathis, Semke, Mahdavi, "The rate-halving algorithm for TCP congestion control", Internet draft,
//! 1999. During recovery one segment is sent for every two that are delivered, so the ACK clock never stops
//! and the window ends at half of what was in flight, not below the scheme's window. The window is also kept
//! within one segment of what is in flight, so that a burst of losses cannot cause a burst of segments.
//! Superseded by PRR; kept because the Ka-band experiment used it.

/// The window during recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateHalving {
    /// Twice the window, to halve without rounding.
    double: u64,
    capped: u64,
}

impl RateHalving {
    /// Begins a reduction: `flight` bytes were outstanding; `delivered` of them had left the network before
    /// this acknowledgment began recovery, so half of them is deducted too.
    pub(super) const fn begin(&mut self, flight: u64, delivered: u64) {
        self.double = (flight * 2).saturating_sub(delivered);
        self.capped = self.double / 2;
    }

    pub(super) fn on_ack(&mut self, delivered: u64, in_flight: u64, target: u64, mss: u64) {
        self.double = self.double.saturating_sub(delivered).max(target * 2);
        self.capped = (self.double / 2).min(in_flight + mss);
    }

    pub(super) const fn window(&self) -> u64 {
        self.capped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_one_for_two_and_ends_at_half() {
        let mut h = RateHalving::default();
        h.begin(20, 0);
        let mut in_flight = 20;
        let mut sent = 0;
        for _ in 0..20 {
            in_flight -= 1;
            h.on_ack(1, in_flight, 10, 1);
            while in_flight < h.window() {
                in_flight += 1;
                sent += 1;
            }
        }
        assert_eq!((in_flight, sent), (10, 10));
    }
}
