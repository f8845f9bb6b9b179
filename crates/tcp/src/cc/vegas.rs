//! TCP Vegas.
//!
//! Source: Brakmo, O'Malley, Peterson, "TCP Vegas: new techniques for congestion detection and avoidance",
//! SIGCOMM 1994, with ns-2's defaults. Once per round trip:
//!   expected = window / BaseRTT, actual = bytes sent in the round / its RTT, diff = (expected - actual) *
//!     BaseRTT
//! Avoidance: diff < alpha: +1 segment over the next round; diff > beta: -1 segment; else no change. Slow
//! start: doubles every other round; diff > gamma ends it and reduces the window by 1/8. Loss: window * 3/4
//! for a first retransmission, 1/2 for a repeated one, and only if the lost segment was sent after the last
//! reduction. Vegas' early retransmission belongs to loss detection: `recovery/vegas_retransmit.rs`.
//! Deviations: as in ns-2, a reduction ends slow start for good (ssthresh = 2 segments); a timeout leaves one
//! segment and ssthresh at half the FlightSize. Defaults alpha 1, beta 3, gamma 1 segment (ns-2); Linux has
//! 2, 4, 1.

use super::law::{Algorithm, ParamConflict, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Episode, Loss, LossCause, Path};
use crate::limits::Limit;
use crate::params;
use bentpipe_base::{Cx, Duration, Instant, Size};

/// Upper limit of the thresholds in segments.
const MOST_QUEUED: f64 = 1e6;

params! {
    /// Thresholds in segments; the defaults are ns-2's.
    pub struct VegasParams {
        /// Grow if fewer segments than this are queued.
        alpha: f64 = 1.0, from 0.0, to MOST_QUEUED;
        /// Shrink if more segments than this are queued.
        beta: f64 = 3.0, from 0.0, to MOST_QUEUED;
        /// Leave slow start if more segments than this are queued.
        gamma: f64 = 1.0, from 0.0, to MOST_QUEUED;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    params: VegasParams::LIST,
    check: |values| {
        let p = VegasParams::of(values);
        let conflict = ParamConflict { keys: ["alpha", "beta"], message: "`alpha` is more than `beta`" };
        if p.alpha > p.beta { Err(conflict) } else { Ok(()) }
    },
    ..Algorithm::new("vegas", |start, values| Box::new(Vegas::new(start.window(), VegasParams::of(values))))
};

/// How the window grows during the present round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundGrowth {
    /// One segment per ACK: slow start, in every other round.
    Double,
    /// One segment over the whole round.
    Creep,
    /// Not at all.
    Hold,
}

/// The Vegas controller.
#[derive(Clone, Debug)]
pub struct Vegas {
    params: VegasParams,
    window: Window,
    base_rtt: Duration,
    round: Round,
    round_growth: RoundGrowth,
    /// In slow start: true in every other round, in which the window doubles.
    doubling: bool,
    cut_at: Instant,
}

/// One round trip: it ends when `end` is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began: Instant,
    end: u64,
    rtt_sum: Duration,
    samples: u64,
}

impl Vegas {
    /// Starts from the given window.
    pub fn new(window: Window, params: VegasParams) -> Self {
        Self {
            params,
            window,
            base_rtt: Duration(u64::MAX),
            round: Round::default(),
            round_growth: RoundGrowth::Double,
            doubling: true,
            cut_at: Instant::ZERO,
        }
    }

    /// Once per round trip: compares expected and actual throughput and sets the growth in the next round.
    fn end_round(&mut self, now: Instant, path: &Path) {
        let mean = self.round.rtt_sum.0.checked_div(self.round.samples);
        let rtt = mean.map_or_else(|| now.since(self.round.began), Duration);
        let sent = path.next - self.round.end;
        self.round = Round { began: now, end: path.next, ..Round::default() };
        if rtt.is_zero() || self.base_rtt.is_zero() {
            return; // a path without delay: no queue to measure
        }
        if rtt < self.base_rtt || sent <= self.window.mss() {
            self.base_rtt = rtt;
        }
        // diff in segments: flight - sent * BaseRTT / RTT
        let base = self.base_rtt.as_secs_f64();
        let expected = path.flight.0 as f64 / base;
        let actual = sent as f64 / rtt.as_secs_f64();
        let diff = (expected - actual) * base / self.window.mss() as f64;
        self.set_round_growth(libm::floor(diff + 0.5));
    }

    fn set_round_growth(&mut self, diff: f64) {
        let mss = self.window.mss();
        self.round_growth = RoundGrowth::Hold;
        if self.window.in_slow_start() {
            self.doubling = !self.doubling;
            if self.doubling {
                self.round_growth = RoundGrowth::Double;
            }
            if diff > self.params.gamma {
                self.round_growth = RoundGrowth::Hold;
                self.window.set_ssthresh(2 * mss);
                self.window.set_cwnd((self.window.cwnd() / 8 * 7).max(2 * mss));
            }
        } else if diff > self.params.beta {
            self.window.set_cwnd((self.window.cwnd() - mss).max(2 * mss));
        } else if diff < self.params.alpha {
            self.round_growth = RoundGrowth::Creep;
        }
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.round.rtt_sum += rtt;
            self.round.samples += 1;
        }
        if ack.acked == Size::ZERO {
            return;
        }
        if path.una >= self.round.end {
            self.end_round(cx.now, path);
        }
        if ack.limited_by != Limit::CongestionWindow || ack.episode == Episode::Fast {
            return;
        }
        match self.round_growth {
            RoundGrowth::Double => self.window.slow_start(ack.acked, self.window.mss()),
            RoundGrowth::Creep => self.window.avoid(ack.acked),
            RoundGrowth::Hold => {}
        }
    }

    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        match loss.cause {
            LossCause::Timeout | LossCause::RepeatedTimeout => {
                self.window.reduce(path, loss.cause, 0.5);
                self.round_growth = RoundGrowth::Double;
                self.doubling = true;
            }
            LossCause::Mark => self.window.reduce(path, loss.cause, 0.5),
            LossCause::Fast if loss.last_sent >= self.cut_at => {
                let factor = if loss.resends == 0 { 0.75 } else { 0.5 };
                self.window.reduce(path, loss.cause, factor);
                self.window.set_ssthresh(2 * self.window.mss());
                self.round_growth = RoundGrowth::Hold;
                self.cut_at = cx.now;
            }
            LossCause::Fast => {}
        }
    }

    delegate_to_window!(no_rates, on_jump, on_undo, on_restart, plan, ssthresh);
}
