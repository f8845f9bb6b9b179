//! When datagrams are sent: constant rate, Poisson, and on/off.
//!
//! Every departure is computed from the source's start, not from the last datagram, so nothing drifts. After
//! n datagrams of `size` at rate r:
//! - constant: t = n x 8 size / r, rounded up to the nanosecond;
//! - Poisson: t = the sum of n + 1 exponential gaps of mean 8 size / r, added up in 1/4096 ns;
//! - on/off: n x 8 size / r on a clock that runs only in on-periods, so the long-run rate is
//!   r x on / (on + off). An on-period continues where the last one stopped; the first begins at the start.

use super::DatagramStream;
use bentpipe_base::{Cx, Duration, Instant, Rate, Size};

/// When datagrams are sent. Rates count payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// At equal intervals.
    Constant(Rate),
    /// A Poisson process with this mean rate.
    Poisson(Rate),
    /// At equal intervals in exponential on-periods, silent in exponential off-periods between them.
    OnOff {
        /// Rate in an on-period.
        rate: Rate,
        /// Mean length of an on-period, more than zero.
        on: Duration,
        /// Mean length of an off-period.
        off: Duration,
    },
}

/// Fraction bits of Poisson's sum: rounding a mean gap to the nanosecond would shift the rate.
const FRACTION: u32 = 12;

/// Computes when the next datagram is due.
#[derive(Clone, Debug)]
pub struct Departures {
    pub(super) stream: DatagramStream,
    /// Poisson: time since the start in 1/4096 ns.
    elapsed: u128,
    on_period: OnPeriod,
}

/// On/off: the current on-period.
#[derive(Clone, Copy, Debug, Default)]
struct OnPeriod {
    from: Instant,
    length: Duration,
    /// Total length of the on-periods before it.
    before: Duration,
}

impl Departures {
    /// The departures of `stream`, before its first datagram.
    pub fn new(cx: &mut Cx<'_>, stream: &DatagramStream) -> Self {
        let mut spell = OnPeriod { from: stream.start, ..OnPeriod::default() };
        if let Pattern::OnOff { on, .. } = stream.pattern {
            assert!(!on.is_zero(), "an on-period takes time");
            spell.length = cx.rng(stream.rng).exponential(on);
        }
        Self { stream: *stream, elapsed: 0, on_period: spell }
    }

    /// Returns when datagram `n` is due. Call once for each in turn.
    pub fn at(&mut self, cx: &mut Cx<'_>, n: u64) -> Instant {
        let DatagramStream { size, start, rng, pattern, .. } = self.stream;
        // exact time from the first datagram at a constant rate
        let due = |rate: Rate| rate.time_for(Size(size.0.saturating_mul(n)));
        match pattern {
            Pattern::Constant(rate) => start + due(rate),
            Pattern::Poisson(rate) => {
                let mean = ((u128::from(size.0) * 8_000_000_000) << FRACTION) / u128::from(rate.bps());
                let mean = Duration(u64::try_from(mean).unwrap_or(u64::MAX));
                self.elapsed += u128::from(cx.rng(rng).exponential(mean).0);
                start + Duration(u64::try_from(self.elapsed >> FRACTION).unwrap_or(u64::MAX))
            }
            Pattern::OnOff { rate, on, off } => {
                let due = due(rate);
                let period = &mut self.on_period;
                while due.saturating_sub(period.before) >= period.length {
                    period.before += period.length;
                    period.from = period.from + period.length + cx.rng(rng).exponential(off);
                    period.length = cx.rng(rng).exponential(on);
                    if period.from == Instant::NEVER {
                        return Instant::NEVER;
                    }
                }
                period.from + due.saturating_sub(period.before)
            }
        }
    }
}
