//! The standard congestion window of RFC 5681, used by every loss-based scheme.
//!
//! Source: RFC 5681. Slow start: cwnd += min(acked, SMSS) per ACK. Congestion avoidance: cwnd +=
//! SMSS*SMSS/cwnd per ACK, computed exactly by counting acknowledged bytes up to a full window. Loss:
//! ssthresh = max(FlightSize * factor, 2 SMSS). Timeout: cwnd = 1 SMSS; a repeated timeout keeps ssthresh. An
//! undo restores the values. Deviation: a timeout reduces from min(FlightSize, cwnd). Within fast recovery
//! FlightSize is still the window before the first loss, so FlightSize alone would let the timeout change
//! nothing; RFC 5681, equation 4 is an upper bound, and BSD and ns-2 use the current window. Defaults:
//! initial window and ssthresh come from the host's configuration.

use super::{Ack, LossCause, Path};
use bentpipe_base::{Size, shift_fields};

/// Methods of [`CongestionControl`](super::CongestionControl) in which a scheme only passes on to its field
/// `window`; a loss halves it.
macro_rules! delegate_to_window {
    ($($method:ident),+) => { $( delegate_to_window!(@ $method); )+ };
    (@ on_loss) => {
        fn on_loss(&mut self, _: &mut $crate::cc::Cx<'_>, path: &$crate::cc::Path, loss: &$crate::cc::Loss) {
            self.window.reduce(path, loss.cause, 0.5);
        }
    };
    (@ on_undo) => {
        fn on_undo(&mut self, _: &mut $crate::cc::Cx<'_>, _: &$crate::cc::Path) {
            self.window.undo();
        }
    };
    (@ on_jump) => {
        fn on_jump(
            &mut self,
            _: &mut $crate::cc::Cx<'_>,
            _: &$crate::cc::Path,
            window: $crate::cc::Size,
            ssthresh: $crate::cc::Size,
        ) {
            self.window.jump(window, ssthresh);
        }
    };
    (@ on_restart) => {
        fn on_restart(&mut self, _: &mut $crate::cc::Cx<'_>, _: &$crate::cc::Path, window: $crate::cc::Size) {
            self.window.restart(window);
        }
    };
    (@ no_rates) => {
        fn uses_rates(&self) -> bool {
            false
        }
    };
    (@ plan) => {
        delegate_to_window!(@ plan_only);
        #[inline]
        fn window_only(&self) -> Option<$crate::cc::Size> {
            Some(self.window.size())
        }
    };
    (@ plan_only) => {
        #[inline]
        fn plan(&self, _: &$crate::cc::Path) -> $crate::cc::Plan {
            $crate::cc::Plan::window(self.window.size())
        }
    };
    (@ ssthresh) => {
        fn ssthresh(&self) -> Option<$crate::cc::Size> {
            self.window.threshold()
        }
    };
}
pub(crate) use delegate_to_window;

/// cwnd, ssthresh and the state to undo a change.
#[derive(Clone, Debug)]
pub struct Window {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    initial: u64,
    /// Acknowledged bytes not yet used for growth in congestion avoidance.
    credit: u64,
    /// Growth of less than a byte.
    fraction: f64,
    before: (u64, u64),
}

shift_fields!(Window {
    same: mss, cwnd, ssthresh, initial, credit, fraction, before;
});

impl Window {
    /// Creates the window of a new connection with `segments` segments; `ssthresh` is unlimited if `None`.
    pub fn new(mss: Size, segments: u32, ssthresh: Option<Size>) -> Self {
        let cwnd = u64::from(segments) * mss.0;
        let ssthresh = ssthresh.map_or(u64::MAX, |s| s.0.max(2 * mss.0));
        Self { mss: mss.0, cwnd, ssthresh, initial: cwnd, credit: 0, fraction: 0.0, before: (cwnd, ssthresh) }
    }

    /// Returns the congestion window in bytes.
    #[inline]
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }
    /// Returns the same as schemes plan it.
    #[inline]
    pub const fn size(&self) -> Size {
        Size(self.cwnd)
    }
    /// Returns the slow-start threshold in bytes; `u64::MAX` is unlimited.
    #[inline]
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
    /// Returns the SMSS in bytes.
    #[inline]
    pub const fn mss(&self) -> u64 {
        self.mss
    }
    /// Returns the initial window in bytes.
    pub const fn initial(&self) -> u64 {
        self.initial
    }
    /// True while below the threshold.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// Sets the window, at least one segment.
    pub fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(self.mss);
    }
    /// Sets the threshold, at least two segments.
    pub fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(2 * self.mss);
    }

    /// Grows the window as in RFC 5681, by slow start or congestion avoidance, if it may grow.
    #[inline]
    pub fn grow(&mut self, ack: &Ack) {
        if ack.may_grow() {
            self.grow_by(ack.acked);
        }
    }

    /// Grows the window for `acked` bytes of an acknowledgment under which it may.
    #[inline]
    pub(crate) fn grow_by(&mut self, acked: Size) {
        if self.in_slow_start() {
            self.slow_start(acked, self.mss);
        } else {
            self.avoid(acked);
        }
    }

    /// Grows the window in slow start, by at most `limit` bytes per ACK (RFC 5681: one SMSS).
    #[inline]
    pub fn slow_start(&mut self, acked: Size, limit: u64) {
        self.cwnd = self.cwnd.saturating_add(acked.0.min(limit));
    }

    /// Grows the window in congestion avoidance, by one SMSS for each window of acknowledged bytes.
    #[inline]
    pub fn avoid(&mut self, acked: Size) {
        self.credit += acked.0.min(self.mss);
        if self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    /// Returns the window in segments.
    #[inline]
    pub fn segments(&self) -> f64 {
        self.cwnd as f64 / self.mss as f64
    }

    /// Adds `segments`, which may be fractional or negative; a fraction of a byte is carried over.
    pub fn add(&mut self, segments: f64) {
        let wished = self.cwnd as f64 + self.fraction + segments * self.mss as f64;
        let cwnd = wished.max(self.mss as f64).min(u64::MAX as f64 / 2.0);
        self.cwnd = cwnd as u64;
        self.fraction = cwnd - self.cwnd as f64;
    }

    /// Returns the slow-start threshold; `None` if unlimited.
    pub fn threshold(&self) -> Option<Size> {
        (self.ssthresh != u64::MAX).then_some(Size(self.ssthresh))
    }

    /// Returns the base of a reduction in schemes that reduce "the window": cwnd if it was used except for
    /// less than a segment, else FlightSize.
    pub const fn used(&self, path: &Path) -> Size {
        if path.flight.0 + self.mss > self.cwnd { Size(self.cwnd) } else { path.flight }
    }

    /// Reacts to a loss: ssthresh = max(FlightSize * factor, 2 SMSS), cwnd = ssthresh. A timeout reduces from
    /// min(FlightSize, cwnd) and sets cwnd to one segment.
    pub fn reduce(&mut self, path: &Path, cause: LossCause, factor: f64) {
        let base = match cause {
            LossCause::Timeout => Size(path.flight.0.min(self.cwnd)),
            _ => path.flight,
        };
        self.reduce_from(base, cause, factor);
    }

    /// Like [`Self::reduce`], but from `base` instead of FlightSize.
    pub fn reduce_from(&mut self, base: Size, cause: LossCause, factor: f64) {
        self.credit = 0;
        self.fraction = 0.0;
        if cause != LossCause::RepeatedTimeout {
            self.before = (self.cwnd, self.ssthresh);
            self.set_ssthresh((base.0 as f64 * factor) as u64);
        }
        self.cwnd = match cause {
            LossCause::Fast | LossCause::Mark => self.ssthresh,
            LossCause::Timeout | LossCause::RepeatedTimeout => self.mss,
        };
    }

    /// Restores what the last `reduce` changed.
    pub fn undo(&mut self) {
        self.cwnd = self.cwnd.max(self.before.0);
        self.ssthresh = self.ssthresh.max(self.before.1);
    }

    /// Sets cwnd and ssthresh to what another mechanism has found out.
    pub fn jump(&mut self, window: Size, ssthresh: Size) {
        self.set_cwnd(window.0);
        self.set_ssthresh(ssthresh.0);
        self.credit = 0;
        self.fraction = 0.0;
    }

    /// Reduces cwnd to `window` after an idle time; ssthresh keeps three quarters of the old cwnd (RFC 7661,
    /// section 4.4.3).
    pub fn restart(&mut self, window: Size) {
        if window.0 < self.cwnd {
            self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
            self.set_cwnd(window.0);
            self.credit = 0;
        }
    }
}

/// Hashes `x`: the finisher of `SplitMix64` (Steele, Lea, Flood, 2014). For schemes that need to
/// desynchronise flows but have no random stream.
pub(crate) const fn splitmix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
