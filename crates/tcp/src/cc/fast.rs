//! FAST TCP.
//!
//! Source: Jin, Wei, Low, "FAST TCP: motivation, architecture, algorithms, performance", INFOCOM 2004,
//! section IV. Delay-based: each flow keeps alpha segments in the queue. Once per round trip, equation (4):
//!   w = min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha))
//! In equilibrium w (1 - baseRTT / RTT) = alpha for any RTT: rate = alpha / (RTT - baseRTT). The distance to
//! the equilibrium falls by e^-1 in about 1/gamma round trips. RTT is an average, weight min(3 / w, 1/4) of
//! each sample, equation (5). A loss halves the window. Deviations: the new window is reached at once if
//! smaller, and over the next round trip if larger. The paper does not define the start: here it is RFC
//! 5681's slow start until the flow's own queue, w (1 - baseRTT / RTT), reaches alpha. Default gamma 0.5.
//! alpha: the paper had 200 segments per flow at 1 Gbit/s; here 8, for links of a few Mbit/s with shorter
//! queues.

use super::law::{Algorithm, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Loss, Path};
use crate::params;
use bentpipe_base::{Cx, Duration, Size};

params! {
    /// Parameters of FAST.
    pub struct FastParams {
        /// Segments that the flow keeps in the queue.
        alpha: f64 = 8.0, from 0.1, to 1e6;
        /// Share of the distance to the new window that is covered per round trip, above 0.
        gamma: f64 = 0.5, from 0.01, to 1.0;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm::of::<FastParams>("fast", |start, values| {
    Box::new(Fast::new(start.window(), FastParams::of(values)))
});

/// Equation (4): returns the next window in segments.
pub fn next_window(w: f64, base_rtt: f64, rtt: f64, params: FastParams) -> f64 {
    let FastParams { alpha, gamma } = params;
    (2.0 * w).min((1.0 - gamma) * w + gamma * (base_rtt / rtt * w + alpha))
}

/// The FAST controller.
#[derive(Clone, Debug)]
pub struct Fast {
    params: FastParams,
    window: Window,
    base_rtt: Duration,
    /// Average RTT in seconds; 0 before the first sample.
    rtt: f64,
    /// Growth in segments per acknowledged segment in this round.
    slope: f64,
}

impl Fast {
    /// Starts from the given window.
    pub const fn new(window: Window, params: FastParams) -> Self {
        Self { params, window, base_rtt: Duration(u64::MAX), rtt: 0.0, slope: 0.0 }
    }

    /// Equation (5): updates the average RTT.
    fn sample(&mut self, rtt: Duration) {
        self.base_rtt = self.base_rtt.min(rtt);
        let weight = if self.rtt > 0.0 { (3.0 / self.window.segments()).min(0.25) } else { 1.0 };
        self.rtt += weight * (rtt.as_secs_f64() - self.rtt);
    }

    fn end_round(&mut self) {
        let w = self.window.segments();
        let next = next_window(w, self.base_rtt.as_secs_f64(), self.rtt, self.params);
        self.slope = 0.0;
        if next > w {
            self.slope = (next - w) / w;
        } else {
            self.window.add(next - w);
        }
    }

    /// Returns the segments of this flow in the queue.
    fn queued(&self) -> f64 {
        self.window.segments() * (1.0 - self.base_rtt.as_secs_f64() / self.rtt)
    }
}

impl CongestionControl for Fast {
    fn on_ack(&mut self, _cx: &mut Cx<'_>, _path: &Path, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        if self.rtt <= 0.0 || self.base_rtt.is_zero() {
            return; // a path without delay: no queue to measure
        }
        if self.window.in_slow_start() {
            if self.queued() >= self.params.alpha {
                self.window.set_ssthresh(self.window.cwnd());
            } else if ack.may_grow() {
                self.window.slow_start(ack.acked, self.window.mss());
            }
            return;
        }
        if ack.round_ended {
            self.end_round();
        }
        if ack.may_grow() {
            self.window.add(self.slope * ack.acked.0 as f64 / self.window.mss() as f64);
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        self.slope = 0.0;
        self.window.reduce(path, loss.cause, 0.5);
    }

    fn on_restart(&mut self, _cx: &mut Cx<'_>, _path: &Path, window: Size) {
        self.slope = 0.0;
        self.window.restart(window);
    }

    delegate_to_window!(no_rates, on_jump, on_undo, plan, ssthresh);
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::cc::law::Growth;

    /// Equation (4) by hand: w 100, RTT 5/4 of baseRTT, alpha 8, gamma 1/2: 50 + (80 + 8) / 2 = 94.
    #[test]
    fn the_law_by_hand() {
        let p = FastParams::default();
        assert!((next_window(100.0, 0.1, 0.125, p) - 94.0).abs() < 1e-9);
        assert!((next_window(2.0, 0.1, 0.1, p) - 4.0).abs() < 1e-9, "at most twice");
        assert!((next_window(40.0, 0.1, 0.125, p) - 40.0).abs() < 1e-9, "8 of 40 are queued: at rest");
    }

    /// At 1000 segments/s and 100 ms the window converges to the BDP plus alpha, 108, from below and from
    /// above.
    #[test]
    fn it_keeps_alpha_segments_in_the_queue() {
        for start in [20, 300] {
            let mut b = Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(100), start, Some(2000));
            b.ack(1); // while the queue is empty: this is baseRTT
            for _ in 0..60 {
                b.rtt = Duration((b.segments() * 1e6) as u64).max(Duration::from_millis(100));
                b.round();
            }
            assert!((b.segments() - 108.0).abs() < 1.5, "from {start}: {}", b.segments());
        }
    }

    /// Far from equilibrium, without a queue, the window grows by alpha gamma per round.
    #[test]
    fn without_a_queue_it_gains_gamma_alpha_per_round() {
        let mut b = Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(100), 50, Some(2000));
        b.round();
        let from = b.segments();
        for _ in 0..5 {
            b.round();
        }
        assert!((b.segments() - from - 20.0).abs() < 1.5, "{}", b.segments() - from);
    }

    #[test]
    fn slow_start_ends_with_alpha_in_the_queue() {
        let mut b = Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(100), 4, None);
        for _ in 0..8 {
            b.rtt = Duration((b.segments() * 1e6) as u64).max(Duration::from_millis(100));
            b.round();
        }
        assert!(b.segments() < 260.0, "it left slow start: {}", b.segments());
        b.lose();
        assert!(b.segments() < 130.0);
    }
}
