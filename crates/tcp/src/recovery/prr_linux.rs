//! The window reduction in fast recovery as Linux does it.
//!
//! Source: RFC 6937 with the conservative reduction bound of RFC 9937, as Linux 6.x computes it
//! (`tcp_cwnd_reduction`): in whole segments, and with the congestion window before the loss in place of
//! RecoverFS, so that limited transmit and an unused window count as in flight.
//!   in flight > ssthresh: sndcnt = ceil(delivered * ssthresh / window before) - sent
//!   else: sndcnt = max(delivered - sent, what this acknowledgment delivered), one more when `una` advanced
//!         and nothing more was lost, at most ssthresh - in flight.
//! The first acknowledgment sends at least one segment. One that delivers nothing changes nothing.

/// The window during recovery. All counts are segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinuxPrr {
    before: u64,
    delivered: u64,
    out: u64,
    window: u64,
}

/// Converts bytes to whole segments.
const fn segments(bytes: u64, mss: u64) -> u64 {
    bytes.div_ceil(mss)
}

impl LinuxPrr {
    /// Begins a reduction; `window` bytes were planned before the loss.
    pub(super) const fn begin(&mut self, window: u64, mss: u64) {
        *self = Self { before: segments(window, mss), delivered: 0, out: 0, window: segments(window, mss) };
    }

    /// Takes one acknowledgment, in bytes; `safe` when `una` advanced and nothing more was found lost.
    pub(super) fn on_ack(&mut self, delivered: u64, in_flight: u64, ssthresh: u64, mss: u64, safe: bool) {
        let (delivered, in_flight, ssthresh) =
            (segments(delivered, mss), segments(in_flight, mss), segments(ssthresh, mss));
        if delivered == 0 || self.before == 0 {
            return;
        }
        self.delivered += delivered;
        let count = if in_flight > ssthresh {
            (ssthresh * self.delivered).div_ceil(self.before).saturating_sub(self.out)
        } else {
            let room = self.delivered.saturating_sub(self.out).max(delivered);
            (room + u64::from(safe)).min(ssthresh - in_flight)
        };
        self.window = in_flight + count.max(u64::from(self.out == 0));
    }

    /// Counts a segment that was sent.
    pub(super) const fn sent(&mut self) {
        self.out += 1;
    }

    /// Returns the window in bytes.
    pub(super) const fn window(&self, mss: u64) -> u64 {
        self.window * mss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 in flight, threshold 14, one lost and three SACKed: seven sent for ten delivered, rounded up.
    #[test]
    fn the_share_is_rounded_up_to_segments() {
        let mut p = LinuxPrr::default();
        p.begin(20_000, 1000);
        let mut in_flight = 16; // 20 - 3 SACKed - 1 lost
        let mut sent = Vec::new();
        for _ in 0..5 {
            p.on_ack(1000, in_flight * 1000, 14_000, 1000, false);
            let mut n = 0;
            while in_flight < p.window(1000) / 1000 {
                in_flight += 1;
                n += 1;
                p.sent();
            }
            sent.push(n);
            in_flight -= 1;
        }
        assert_eq!(sent, [1, 1, 1, 0, 1]); // ceil(0.7), ceil(1.4), ceil(2.1), ceil(2.8), ceil(3.5)
    }

    #[test]
    fn an_acknowledgment_that_delivers_nothing_changes_nothing() {
        let mut p = LinuxPrr::default();
        p.begin(10_000, 1000);
        p.on_ack(1000, 6000, 7000, 1000, false);
        let window = p.window(1000);
        p.on_ack(0, 3000, 7000, 1000, false);
        assert_eq!(p.window(1000), window);
    }
}
