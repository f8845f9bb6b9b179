//! H-TCP.
//!
//! Source: Leith, Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004, and
//! draft-leith-tcp-htcp-06. The increase grows with the time D since the last loss; the decrease depends on
//! the queueing delay:
//!   alpha(D) = 1                                                for D <= D_L
//!   alpha(D) = 1 + 10 (D - D_L) + ((D - D_L) / 2)^2             for D >  D_L, in seconds
//!   avoidance: cwnd += 2 (1 - beta) alpha(D) / cwnd             per acknowledged segment
//!   loss: cwnd = beta cwnd, beta = RTTmin / RTTmax within [0.5, 0.8], which just empties the queue; 0.5 if
//!     the rate changed by more than a fifth since the previous loss (the path changed)
//! Deviations: the rate is the largest delivery-rate sample since the last loss. RTTmax moves towards RTTmin
//! by a twentieth per loss, as in Linux, so that an old queue is forgotten. Growth is never faster than in
//! slow start, one segment per acknowledged segment; alpha would exceed that after minutes. `rtt_scaling`
//! (off by default) multiplies alpha by RTT / 100 ms within [0.5, 10], as in the draft. Defaults: D_L 1 s,
//! adaptive backoff on, scaling off.

use super::law::{Algorithm, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Loss, LossCause, Path};
use crate::params;
use bentpipe_base::{Cx, Duration, Instant, Size};

/// Bounds of beta.
const BETA: (f64, f64) = (0.5, 0.8);
/// A relative rate change of more than this means another path.
const CHANGED: f64 = 0.2;
/// Share of the distance to RTTmin by which RTTmax falls per loss.
const FORGET: f64 = 0.05;
/// RTT in seconds at which alpha is not scaled, and bounds of the scaling factor.
const SCALE_RTT: f64 = 0.1;
const SCALE: (f64, f64) = (0.5, 10.0);

params! {
    /// Parameters of H-TCP.
    pub struct HtcpParams {
        /// Time after a loss during which growth is as in RFC 5681.
        delta_l: Duration = Duration::from_secs(1), from Duration::ZERO, to Duration::from_secs(60);
        /// A loss multiplies the window by RTTmin / RTTmax; off: by a half.
        adaptive_backoff: bool = true;
        /// Growth per round trip is proportional to the RTT.
        rtt_scaling: bool = false;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm::of::<HtcpParams>("htcp", |start, values| {
    Box::new(Htcp::new(start.window(), HtcpParams::of(values)))
});

/// The H-TCP controller.
#[derive(Clone, Debug)]
pub struct Htcp {
    params: HtcpParams,
    window: Window,
    /// Time of the last loss; `None` before the first.
    lost_at: Option<Instant>,
    beta: f64,
    rtt_max: Duration,
    /// Largest delivery rate in bytes per second since the last loss, and between the two losses before.
    rate: (f64, f64),
    before: (Option<Instant>, f64),
}

impl Htcp {
    /// Starts from the given window.
    pub const fn new(window: Window, params: HtcpParams) -> Self {
        Self {
            params,
            window,
            lost_at: None,
            beta: BETA.0,
            rtt_max: Duration::ZERO,
            rate: (0.0, 0.0),
            before: (None, BETA.0),
        }
    }

    /// Returns the increase in segments per round trip, at time `since` after the last loss.
    fn alpha(&self, since: Duration, path: &Path) -> f64 {
        let d = since.saturating_sub(self.params.delta_l).as_secs_f64();
        let alpha = 1.0 + 10.0 * d + (d / 2.0) * (d / 2.0);
        let scale = if self.params.rtt_scaling {
            (path.rtt_min.as_secs_f64() / SCALE_RTT).clamp(SCALE.0, SCALE.1)
        } else {
            1.0
        };
        (2.0 * (1.0 - self.beta) * alpha * scale).max(1.0)
    }

    /// Returns the factor by which this loss multiplies the window.
    fn backoff(&self, path: &Path) -> f64 {
        let (now, last) = self.rate;
        let changed = last <= 0.0 || (now - last).abs() > CHANGED * last;
        if !self.params.adaptive_backoff || changed || self.rtt_max.is_zero() {
            return BETA.0;
        }
        (path.rtt_min.as_secs_f64() / self.rtt_max.as_secs_f64()).clamp(BETA.0, BETA.1)
    }
}

impl CongestionControl for Htcp {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_max = self.rtt_max.max(rtt);
        }
        if let Some(sample) = ack.rate {
            let rate = sample.delivered.0 as f64 / sample.interval.as_secs_f64();
            self.rate.0 = self.rate.0.max(rate);
        }
        if !ack.may_grow() {
            return;
        }
        if self.window.in_slow_start() {
            self.window.slow_start(ack.acked, self.window.mss());
            return;
        }
        let since = cx.now.since(*self.lost_at.get_or_insert(cx.now));
        let acked = ack.acked.0 as f64 / self.window.mss() as f64;
        let alpha = self.alpha(since, path);
        self.window.add(acked * (alpha / self.window.segments()).min(1.0));
    }

    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        if loss.cause != LossCause::RepeatedTimeout {
            self.before = (self.lost_at, self.beta);
            self.beta = self.backoff(path);
            self.rate = (0.0, self.rate.0);
            let above = self.rtt_max.saturating_sub(path.rtt_min).as_secs_f64();
            self.rtt_max = self.rtt_max.saturating_sub(Duration((above * FORGET * 1e9) as u64));
        }
        self.lost_at = Some(cx.now);
        self.window.reduce_from(self.window.used(path), loss.cause, self.beta);
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.window.undo();
        (self.lost_at, self.beta) = self.before;
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, _path: &Path, window: Size) {
        self.window.restart(window);
        self.lost_at = Some(cx.now); // after an idle time the path may have changed
    }

    delegate_to_window!(on_jump, plan, ssthresh);
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::cc::law::Growth;

    fn bench(iw: u32) -> Bench {
        Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(100), iw, Some(2000))
    }

    /// The first second after a loss is RFC 5681's: ten round trips of 100 ms, ten segments.
    #[test]
    fn a_second_of_reno() {
        let mut b = bench(400);
        b.lose();
        assert!((b.segments() - 200.0).abs() < 1e-9, "the first loss halves");
        let from = b.round(); // the acknowledgment that starts avoidance
        for _ in 0..8 {
            b.round();
        }
        assert!((b.segments() - from - 8.0).abs() < 0.2, "{}", b.segments() - from);
    }

    /// The integral of alpha: after T seconds the window has grown by (1/RTT) (T + 5 x^2 + x^3/12), x = T -
    /// 1, while beta is a half.
    #[test]
    fn the_window_follows_the_integral_of_alpha() {
        let mut b = bench(2000);
        b.lose();
        let (from, began) = (b.segments(), b.seconds());
        for _ in 0..60 {
            b.round();
            let t = b.seconds() - began;
            let x = (t - 1.0).max(0.0);
            let want = (t + 5.0 * x * x + x * x * x / 12.0) / 0.1;
            let got = b.segments() - from;
            // the window grows during a round, so its acknowledgments add slightly less than alpha
            assert!(got <= want + 1.0 && got >= 0.93 * want - 2.0, "at {t} s: {got} against {want}");
        }
    }

    /// beta is RTTmin / RTTmax within its bounds once the rate is steady, and a half if the rate changed.
    #[test]
    fn the_decrease_follows_the_queue() {
        for (queued, beta) in [(0, 0.8), (50, 100.0 / 150.0), (300, 0.5)] {
            let mut b = bench(400);
            b.round();
            b.rtt = Duration::from_millis(100 + queued);
            let mut shares = Vec::new();
            for _ in 0..4 {
                while b.segments() < 400.0 {
                    b.round();
                }
                let before = b.segments();
                b.lose();
                shares.push(b.segments() / before);
            }
            assert!((shares[0] - 0.5).abs() < 1e-3, "nothing to compare with: {shares:?}");
            assert!((shares[3] - beta).abs() < 0.02, "{queued} ms: {shares:?} against {beta}");
        }
    }
}
