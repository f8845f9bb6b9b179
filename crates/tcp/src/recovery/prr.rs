//! Proportional Rate Reduction.
//!
//! Source: RFC 9937. Per ACK with DeliveredData, prr_delivered += DeliveredData;
//!   inflight > ssthresh: sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out
//!   else: sndcnt = max(prr_delivered - prr_out, DeliveredData), one SMSS more on a safe ACK (una advanced,
//!         nothing more lost), at most ssthresh - inflight.
//! The first ACK sends at least one segment; cwnd = inflight + sndcnt.
//! Deviation: none.

/// The window during recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    recover_fs: u64,
    delivered: u64,
    out: u64,
    window: u64,
}

impl Prr {
    /// Begins a reduction; `recover_fs` is RecoverFS: what was in flight as recovery began.
    pub(super) const fn begin(&mut self, recover_fs: u64) {
        *self = Self { recover_fs, delivered: 0, out: 0, window: recover_fs };
    }

    /// Takes one acknowledgment; `safe` when `una` advanced and nothing more was found lost.
    pub(super) fn on_ack(&mut self, delivered: u64, inflight: u64, ssthresh: u64, mss: u64, safe: bool) {
        self.delivered += delivered;
        let mut count = if inflight > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let due = share.div_ceil(u128::from(self.recover_fs.max(1)));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            let mut room = self.delivered.saturating_sub(self.out).max(delivered);
            if safe {
                room += mss;
            }
            room.min(ssthresh - inflight)
        };
        if self.out == 0 {
            count = count.max(mss);
        }
        self.window = inflight + count;
    }

    pub(super) const fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    pub(super) const fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 9937's proportional part: 20 in flight, ssthresh 10, one lost: one sent per two
    /// delivered.
    #[test]
    fn proportional_part_sends_one_for_two() {
        let mut p = Prr::default();
        p.begin(19);
        let mut inflight = 19;
        let mut sent = 0;
        for _ in 0..19 {
            inflight -= 1;
            p.on_ack(1, inflight, 10, 1, false);
            while inflight < p.window() {
                inflight += 1;
                sent += 1;
                p.sent(1);
            }
        }
        assert_eq!((sent, inflight), (10, 10));
    }

    #[test]
    fn slow_start_part_rebuilds_up_to_ssthresh_only_on_safe_acks() {
        let mut p = Prr::default();
        p.begin(4);
        p.sent(1);
        p.on_ack(1, 3, 10, 1, false);
        assert_eq!(p.window(), 4); // conservation: one delivered, one sent
        p.sent(1);
        p.on_ack(1, 3, 10, 1, true);
        assert_eq!(p.window(), 5); // one more on a safe ACK
    }
}
