//! The physics of one direction: rate, one-way delay and errors belong together.
//!
//! Errors: a packet is lost with probability `loss`; if it survives that, it is lost with probability
//! 1-(1-BER)^(8 L), L its bytes on the wire (independent bit errors; satellite fact: a residual error anywhere kills the packet).

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Probability, Rate, RngSlot, Size};

/// Loss processes of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Errors {
    /// The stream the errors are drawn from.
    pub rng: RngSlot,
    /// Loss probability per packet.
    pub loss: Probability,
    /// Bit error rate.
    pub ber: Probability,
}

/// A constant channel.
#[derive(Clone, Debug)]
pub struct Channel {
    rate: Rate,
    /// Fraction of a nanosecond, in units of 1/rate ns, that the last packet left over: the long-run rate is exact.
    carry: u64,
    one_way: Duration,
    framing: Size,
    /// Boxed: most links have none.
    errors: Option<Box<ErrorState>>,
    /// Of the last size: bits, whole nanoseconds, and what is left over in units of 1/rate ns. Packets of a direction mostly have one size, and
    /// a division costs as much as the rest of a hop.
    last: (u64, u64, u64),
}

#[derive(Clone, Debug)]
struct ErrorState {
    errors: Errors,
    /// Packet error probability of the last size asked for.
    sep_cache: (u64, f64),
}

impl Channel {
    /// A channel that serialises IP bytes plus `framing` at `rate` and delivers `one_way` later.
    pub fn new(rate: Rate, one_way: Duration, framing: Size, errors: Option<Errors>) -> Self {
        let errors = errors.map(|errors| Box::new(ErrorState { errors, sep_cache: (0, 0.0) }));
        Self { rate, carry: 0, one_way, framing, errors, last: (0, 0, 0) }
    }

    /// One-way propagation delay.
    pub const fn one_way(&self) -> Duration {
        self.one_way
    }

    /// End of the transmission of `size` bytes that begins at `start`. `fresh` says that the channel was idle before.
    #[inline]
    pub fn serialise(&mut self, start: Instant, size: Size, fresh: bool) -> Instant {
        if fresh {
            self.carry = 0;
        }
        let bits = (size + self.framing).bits();
        let bps = self.rate.bps();
        if self.last.0 != bits {
            // bits * 1e9 fits for packets up to 2 GB
            let work = bits * 1_000_000_000;
            self.last = (bits, work / bps, work % bps);
        }
        let (_, whole, rest) = self.last;
        self.carry += rest;
        let over = self.carry >= bps;
        if over {
            self.carry -= bps;
        }
        start + Duration(whole + u64::from(over))
    }

    /// Whether a packet of `size` bytes gets through, or why not.
    #[inline]
    pub fn fate(&mut self, cx: &mut Cx<'_>, size: Size) -> Option<DropCause> {
        let state = self.errors.as_mut()?;
        let errors = state.errors;
        if !errors.loss.is_zero() && cx.rng(errors.rng).chance(errors.loss) {
            return Some(DropCause::PacketLoss);
        }
        if !errors.ber.is_zero() {
            let p = state.packet_error(errors.ber, size + self.framing);
            if cx.rng(errors.rng).unit() < p {
                return Some(DropCause::BitError);
            }
        }
        None
    }
}

impl ErrorState {
    fn packet_error(&mut self, ber: Probability, size: Size) -> f64 {
        if self.sep_cache.0 != size.0 {
            self.sep_cache = (size.0, segment_error(ber, size));
        }
        self.sep_cache.1
    }
}

/// Probability that at least one of the bits of `size` bytes is wrong.
pub fn segment_error(ber: Probability, size: Size) -> f64 {
    -libm::expm1(size.bits() as f64 * libm::log1p(-ber.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_run_rate_is_exact() {
        // 1040 B at 1.544 Mbit/s take 5 388 601.036... ns: after 193 packets the fractions make whole nanoseconds
        let rate = Rate::from_bps(1_544_000).unwrap();
        let mut c = Channel::new(rate, Duration::ZERO, Size::ZERO, None);
        let mut t = Instant::ZERO;
        for i in 0..193_000 {
            t = c.serialise(t, Size(1040), i == 0);
        }
        assert_eq!(t.0, 193_000 * 8320 * 1_000_000 / 1544);
    }

    #[test]
    fn segment_error_of_the_ka_band_sheet() {
        // 1500 B on the wire: 1.2e-3 at 1e-7, 1.2e-2 at 1e-6, 0.113 at 1e-5 [kaband]
        for (ber, expected) in [(1e-7, 1.199e-3), (1e-6, 1.193e-2), (1e-5, 0.1131)] {
            let p = segment_error(Probability::new(ber).unwrap(), Size(1500));
            assert!((p / expected - 1.0).abs() < 1e-3, "{ber}: {p}");
        }
        assert!((segment_error(Probability::new(1.0).unwrap(), Size(1)) - 1.0).abs() < 1e-12);
    }
}
