//! CUBIC.
//!
//! Source: RFC 9438. After a loss the window follows
//!   W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)   (section 4.2, figures 1 and 2)
//! and per ACK cwnd += (target - cwnd) / cwnd, target = clamp(W_cubic(t + RTT), cwnd, 1.5 cwnd) (section
//! 4.2). Reno-friendly region: W_est += alpha * acked / cwnd, alpha = 3 (1-beta)/(1+beta), 1 once W_est
//! reaches the window before the loss; it is used while larger (section 4.3). Loss: ssthresh = max(2, beta *
//! flight), fast convergence (4.6, 4.7). The clock t stops while the window is not the limit (section 4.2);
//! after a timeout K = 0 (section 4.8). Slow start, while cwnd <= ssthresh (section 4.10): standard, ended by
//! HyStart++ (RFC 9406) or by loss. Deviation: the reduction starts from cwnd if it is fully used, where
//! section 4.6 has flight_size, but allows cwnd if there are measures against an unused window: here growth
//! stops while the window is not the limit, and an unused window is reduced from the flight. The flight is
//! whole segments, so reducing from it would cost half a segment more per loss. Windows are kept in segments
//! as f64, as in the RFC's equations; only +, -, *, / and libm's cbrt are used, so results do not depend on
//! the platform. Defaults: beta 0.7, C 0.4 segments/s^3, HyStart++ on.

use super::hystart::{CSS_GROWTH_DIVISOR, Hystart, L_UNPACED, Phase};
use super::law::{Algorithm, Params as _};
use super::linux::LinuxCubic;
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Episode, Loss, LossCause, Path};
use crate::limits::Limit;
use crate::params;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Cx, Instant, Size};

params! {
    /// Parameters of RFC 9438 and RFC 9406.
    pub struct CubicParams {
        /// Factor by which a loss multiplies the window. 0.7 in RFC 9438, 0.8 in the Linux of 2008.
        beta: f64 = 0.7, from 0.1, to 0.95;
        /// Aggressiveness C in segments/s^3.
        c: f64 = 0.4, from 1e-3, to 100.0;
        /// Fast convergence (RFC 9438, section 4.7).
        fast_convergence: bool = true;
        /// HyStart++ (RFC 9406) ends slow start.
        hystart: bool = true;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    params: CubicParams::LIST,
    linux: Some(|start, values| {
        Box::new(LinuxCubic::new(start.segments(), CubicParams::of(values), start.config.pacing))
    }),
    ..Algorithm::new("cubic", |start, values| Box::new(Cubic::new(start.window(), CubicParams::of(values))))
};

/// State of congestion avoidance since the last loss.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start; moves forward by the time in which the window was not the limit.
    began: Instant,
    /// Last acknowledgment in this epoch that let the window grow.
    seen: Instant,
    /// The window was not the limit since then.
    paused: bool,
    /// Seconds from the start to the plateau.
    k: f64,
    /// The window Reno would have, in segments.
    w_est: f64,
}

/// The CUBIC controller.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: CubicParams,
    window: Window,
    hystart: Option<Hystart>,
    /// Window before the last loss in segments, after fast convergence.
    w_max: f64,
    /// Window before the last loss in segments.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// Growth of less than a byte.
    credit: f64,
    undo: (f64, f64, Option<Epoch>),
}

impl Cubic {
    /// Starts from the given window.
    pub fn new(window: Window, params: CubicParams) -> Self {
        let hystart = params.hystart.then(Hystart::default);
        Self {
            params,
            window,
            hystart,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            credit: 0.0,
            undo: (0.0, 0.0, None),
        }
    }

    fn slow_start(&mut self, ack: &Ack) {
        let mss = self.window.mss();
        let phase = match &mut self.hystart {
            Some(h) => h.on_ack(ack.rtt, ack.round_ended),
            None => return self.window.slow_start(ack.acked, mss),
        };
        match phase {
            Phase::SlowStart => self.window.slow_start(ack.acked, L_UNPACED * mss),
            Phase::Conservative => {
                let grown = ack.acked.0.min(L_UNPACED * mss) / CSS_GROWTH_DIVISOR;
                self.window.slow_start(Size(grown), L_UNPACED * mss);
            }
            Phase::Done => {
                self.window.set_ssthresh(self.window.cwnd());
                self.hystart = None;
            }
        }
    }

    /// RFC 9438, sections 4.2 to 4.5: grows the window in congestion avoidance.
    fn avoid(&mut self, now: Instant, path: &Path, acked: Size) {
        let cwnd = self.window.segments();
        let epoch = self.epoch.get_or_insert_with(|| {
            // no loss so far (HyStart++ or an idle restart): the plateau is the present window
            let k = if self.w_max > cwnd { libm::cbrt((self.w_max - cwnd) / self.params.c) } else { 0.0 };
            if self.w_max < cwnd {
                self.w_max = cwnd;
            }
            Epoch { began: now, seen: now, paused: false, k, w_est: cwnd }
        });
        if epoch.paused {
            epoch.began += now.since(epoch.seen);
            epoch.paused = false;
        }
        epoch.seen = now;
        let t = now.since(epoch.began).as_secs_f64();
        let beta = self.params.beta;
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        let acked = acked.0 as f64 / self.window.mss() as f64;
        epoch.w_est += alpha * acked / cwnd;
        let w_cubic = |t: f64| {
            let d = t - epoch.k;
            self.params.c * d * d * d + self.w_max
        };
        let grown = if w_cubic(t) < epoch.w_est {
            (epoch.w_est - cwnd).max(0.0)
        } else {
            let target = w_cubic(t + path.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            (target - cwnd) / cwnd * acked
        };
        self.credit += grown * self.window.mss() as f64;
        let whole = self.credit as u64;
        self.credit -= whole as f64;
        self.window.set_cwnd(self.window.cwnd() + whole);
    }
}

impl CongestionControl for Cubic {
    /// While the window is no limit, nothing changes and the clock does not run. While it is, it grows.
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { params: _, window, hystart, w_max, cwnd_prior, epoch, credit, undo } = self;
        walk.inner(window);
        walk.same(&hystart.is_some());
        walk.same(&[*w_max, *cwnd_prior, *credit, undo.0, undo.1]);
        walk.same(&(epoch.is_some(), undo.2.is_some()));
        for Epoch { began, seen, paused, k, w_est } in epoch.iter_mut().chain(&mut undo.2) {
            walk.same(&(*began, *seen, *paused));
            walk.same(&(*k, *w_est));
        }
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        let repairing = matches!(ack.episode, Episode::Fast | Episode::Ended);
        if ack.acked == Size::ZERO || repairing {
            return;
        }
        if ack.limited_by != Limit::CongestionWindow {
            if let Some(epoch) = &mut self.epoch {
                epoch.paused = true;
            }
            return;
        }
        if self.window.cwnd() <= self.window.ssthresh() {
            self.slow_start(ack);
        } else {
            self.avoid(cx.now, path, ack.acked);
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        if loss.cause != LossCause::RepeatedTimeout {
            self.undo = (self.w_max, self.cwnd_prior, self.epoch);
            let cwnd = self.window.segments();
            self.cwnd_prior = cwnd;
            let converge = self.params.fast_convergence && cwnd < self.w_max;
            self.w_max = match loss.cause {
                LossCause::Timeout => 0.0, // section 4.8: K = 0, the plateau is the window in avoidance
                _ if converge => cwnd * (1.0 + self.params.beta) / 2.0,
                _ => cwnd,
            };
        }
        self.window.reduce_from(self.window.used(path), loss.cause, self.params.beta);
        self.epoch = None;
        self.credit = 0.0;
        self.hystart = None; // section 4.3 of RFC 9406: only the first slow start
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.window.undo();
        (self.w_max, self.cwnd_prior, self.epoch) = self.undo;
    }

    fn on_restart(&mut self, _cx: &mut Cx<'_>, _path: &Path, window: Size) {
        self.window.restart(window);
        self.epoch = None; // RFC 9438, section 5.8: the clock stops while the window is not used
    }

    delegate_to_window!(no_rates, on_jump, plan, ssthresh);
}
