//! What a flow without signalling can use.
//!
//! Own mechanism. Such a flow says nothing of the other links on its path, nor of an application that is
//! slower than its share. If it was a member without a limit, nobody would have what it leaves: granted rates
//! only fill what the division gives. So it takes part with a limit once it is known for long enough:
//!   limit = 1.25 times the highest mean over a second in the last 5 to 10 s
//! rounded up to three significant bits, so that it seldom changes. In its first 5 s it has no limit. A flow
//! that can use more grows: its limit follows within the packet in which it exceeds its former maximum, and
//! others are told at once. A quarter is more than the window of a TCP in congestion avoidance grows by in a
//! round trip, from four segments on. A flow that uses its share has a limit above it, which limits nothing.

use bentpipe_base::{Duration, Instant, Size};

/// Time over which a mean is taken.
const BIN: Duration = Duration::from_secs(1);
/// The maximum is that of this time and the one before.
const EPOCH: Duration = Duration::from_secs(5);

/// The use of one flow. Rates are in bit/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainUse {
    bin_from: Instant,
    /// Bits since then.
    bits: u64,
    epoch_from: Instant,
    highest: u64,
    /// The highest of the epoch before; `None` in the first.
    before: Option<u64>,
}

impl PlainUse {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { bin_from: now, bits: 0, epoch_from: now, highest: 0, before: None }
    }

    /// Counts a packet.
    pub(crate) fn add(&mut self, now: Instant, size: Size) {
        let time = now.since(self.bin_from);
        if time >= BIN {
            self.highest = self.highest.max(mean(self.bits, time));
            (self.bin_from, self.bits) = (now, 0);
        }
        if now.since(self.epoch_from) >= EPOCH {
            (self.before, self.highest) = (Some(self.highest), 0);
            self.epoch_from = now;
        }
        self.bits = self.bits.saturating_add(size.bits());
        self.highest = self.highest.max(mean(self.bits, BIN));
    }

    /// The most that it can use; `None` if that is not known yet.
    pub(crate) fn limit(&self) -> Option<u64> {
        let highest = self.before?.max(self.highest);
        Some(rounded_up(highest.saturating_add(highest / 4)))
    }
}

/// Bit/s of `bits` in `time`, which is not zero.
fn mean(bits: u64, time: Duration) -> u64 {
    let bps = u128::from(bits) * 1_000_000_000 / u128::from(time.0.max(1));
    u64::try_from(bps).unwrap_or(u64::MAX)
}

/// The next number with three significant bits.
const fn rounded_up(n: u64) -> u64 {
    let step = 1_u64 << (u64::BITS - n.leading_zeros()).saturating_sub(3);
    n.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1250 B at `kbps` from `from` to `to`, in seconds.
    fn send(plain: &mut PlainUse, kbps: u64, from: u64, to: u64) {
        let gap = 10_000_000_000 / kbps;
        for n in 0..(to - from) * 1_000_000_000 / gap {
            plain.add(Instant(from * 1_000_000_000 + n * gap), Size(1250));
        }
    }

    #[test]
    fn three_bits_are_left() {
        let pairs = [(0, 0), (1, 1), (7, 7), (8, 8), (9, 10), (1001, 1024), (896, 896), (u64::MAX, u64::MAX)];
        for (n, up) in pairs {
            assert_eq!(rounded_up(n), up, "{n}");
        }
    }

    #[test]
    fn the_limit_is_known_after_five_seconds_and_follows_growth_at_once() {
        let mut plain = PlainUse::new(Instant::ZERO);
        send(&mut plain, 1000, 0, 5);
        assert_eq!(plain.limit(), None);
        send(&mut plain, 1000, 5, 7);
        assert_eq!(plain.limit(), Some(rounded_up(1_250_000)));
        send(&mut plain, 4000, 7, 8);
        assert_eq!(plain.limit(), Some(rounded_up(5_000_000)), "within the second");
    }

    #[test]
    fn a_pause_is_forgotten_later_than_five_seconds_and_not_later_than_ten() {
        let mut plain = PlainUse::new(Instant::ZERO);
        send(&mut plain, 4000, 0, 6);
        send(&mut plain, 1000, 6, 10);
        assert_eq!(plain.limit(), Some(rounded_up(5_000_000)));
        send(&mut plain, 1000, 10, 16);
        assert_eq!(plain.limit(), Some(rounded_up(1_250_000)));
    }
}
