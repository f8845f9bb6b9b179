//! CUBIC as in Linux.
//!
//! Source: Ha, Rhee, Xu, "CUBIC: a new TCP-friendly high-speed TCP variant", ACM SIGOPS OSR 42(5), 2008, as
//! Linux 6.x computes it: time in 1/1024 s, the window in whole segments, a new growth rate at most once in a
//! millisecond and, while the window does not change, once in 1/32 s.
//! - target = W_max + C (t + delay_min - K)^3; a segment is added for every cwnd / (target - cwnd) delivered,
//!   at least 2, and for every 100 windows if the target is not above the window.
//! - Before the first loss, and after a timeout, which resets W_max, a segment is added at least for every 20
//!   delivered.
//! - The Reno window grows by a segment for every 8/3 (1+beta)/(1-beta) / 8 windows delivered, and is used
//!   while it is larger.
//! - A loss multiplies cwnd by beta; W_max is cwnd (1 + beta) / 2 if cwnd was below the last W_max, else
//!   cwnd.
//!
//! RFC 9438 differs (`cc/cubic.rs`): it limits the target to 1.5 windows, grows the Reno window by one
//! segment per round trip once it is back at W_max, has no rule of 20, and reduces from FlightSize. Here only
//! idle time stops the clock t, not all time in which the window was not the limit. The jiffy is one
//! millisecond, whatever the kernel was built with.

use super::LinuxWindow;
use super::hystart::{AckInput, Hystart};
use crate::cc::cubic::CubicParams;
use crate::cc::standard::delegate_to_window;
use crate::cc::{Ack, CongestionControl, Loss, LossCause, Path, SentSegment};
use bentpipe_base::shift::Walk;
use bentpipe_base::{Cx, Duration, Instant, Size};

/// Scale of the fixed-point values of beta and C.
const SCALE: f64 = 1024.0;
/// Segments delivered per segment of growth, at most, while W_max is unknown.
const UNKNOWN: u32 = 20;
/// Windows delivered per segment of growth if the target is not above the window.
const STANDSTILL: u32 = 100;
/// Smallest number of segments delivered per segment of growth.
const FASTEST: u32 = 2;
/// Milliseconds between computations of the growth rate while the window does not change.
const STANDING: u64 = 1000 / 32;
/// Milliseconds after the start of an epoch in which RTT samples are ignored.
const SETTLING: u64 = 1000;

/// State of congestion avoidance since the last loss.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start in milliseconds; idle time moves it forward.
    began: u64,
    /// The plateau W_max in segments.
    origin: u32,
    /// Time from the start to the plateau, in 1/1024 s.
    k: u64,
    /// The window Reno would have, in segments, and segments delivered since it last grew.
    reno: u32,
    delivered: u32,
}

/// The CUBIC controller of Linux.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    window: LinuxWindow,
    /// beta in 1/1024, C in 1/10240.
    beta: u64,
    c: u64,
    fast_convergence: bool,
    /// Also keeps the smallest RTT, which is needed even if HyStart is off.
    hystart: Hystart,
    may_end: bool,
    /// Window before the last loss in segments; 0 if unknown.
    w_max: u32,
    epoch: Option<Epoch>,
    /// Segments delivered per segment of growth; and the window and time for which it was computed.
    rate: u32,
    computed: (u32, u64),
    last_sent: Instant,
    /// How often the clock stood still.
    pauses: u64,
}

impl LinuxCubic {
    /// Starts from the given window; `paced` if the host paces its segments.
    pub fn new(window: LinuxWindow, params: CubicParams, paced: bool) -> Self {
        Self {
            window,
            beta: libm::round(params.beta * SCALE) as u64,
            c: (libm::round(params.c * SCALE / 10.0) as u64).max(1) * 10,
            fast_convergence: params.fast_convergence,
            hystart: Hystart::new(paced),
            may_end: params.hystart,
            w_max: 0,
            epoch: None,
            rate: 0,
            computed: (0, 0),
            last_sent: Instant::ZERO,
            pauses: 0,
        }
    }

    /// True while the queue from before the loss may still be there.
    fn is_settling(&self, now: Instant) -> bool {
        self.epoch.is_some_and(|e| millis(now).saturating_sub(e.began) < SETTLING)
    }

    /// Takes an RTT sample for the minimum and for HyStart.
    fn sample(&mut self, now: Instant, path: &Path, rtt: Duration) {
        if self.is_settling(now) {
            return;
        }
        self.hystart.sample(rtt);
        let (cwnd, window) = (self.window.cwnd(), self.window.size());
        let seen = AckInput { now, rtt, cwnd, window, srtt: path.srtt, una: path.una, next: path.next };
        if self.may_end && self.window.in_slow_start() && self.hystart.ends(&seen) {
            self.window.end_slow_start();
        }
    }

    /// Updates the growth rate for the present window and time.
    fn update(&mut self, now: u64, acked: u32) {
        let cwnd = self.window.cwnd();
        if let Some(epoch) = &mut self.epoch {
            epoch.delivered = epoch.delivered.saturating_add(acked);
        }
        let (of, at) = self.computed;
        if of == cwnd && now - at <= STANDING && self.rate > 0 {
            return;
        }
        let epoch = self.epoch.unwrap_or_else(|| self.begin(now, cwnd, acked));
        if self.epoch.is_none() || now != at {
            self.computed = (cwnd, now);
            self.rate = self.cubic_rate(&epoch, now, cwnd);
        }
        self.epoch = Some(self.reno_rate(epoch, cwnd));
        self.rate = self.rate.max(FASTEST);
    }

    fn begin(&self, now: u64, cwnd: u32, acked: u32) -> Epoch {
        let rise = u64::from(self.w_max.saturating_sub(cwnd));
        let k = cube_root((1 << 40) / self.c * rise);
        Epoch { began: now, origin: self.w_max.max(cwnd), k, reno: cwnd, delivered: acked }
    }

    fn cubic_rate(&self, epoch: &Epoch, now: u64, cwnd: u32) -> u32 {
        let ahead = now.saturating_sub(epoch.began) + self.hystart.delay_min().0.div_ceil(1_000_000);
        let t = ahead * 1024 / 1000;
        let off = u128::from(t.abs_diff(epoch.k));
        let delta = (u128::from(self.c) * off * off * off) >> 40;
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        let target =
            if t < epoch.k { epoch.origin.saturating_sub(delta) } else { epoch.origin.saturating_add(delta) };
        let rate = match target.checked_sub(cwnd) {
            Some(rise) if rise > 0 => cwnd / rise,
            _ => cwnd.saturating_mul(STANDSTILL),
        };
        if self.w_max == 0 { rate.min(UNKNOWN) } else { rate }
    }

    /// Updates the Reno window; the growth rate is Reno's if that window is larger.
    fn reno_rate(&mut self, mut epoch: Epoch, cwnd: u32) -> Epoch {
        let eighths = 8 * (1024 + self.beta) / 3 / (1024 - self.beta).max(1);
        let per_segment = ((u64::from(cwnd) * eighths) >> 3).max(1) as u32;
        if epoch.delivered > per_segment {
            let grown = (epoch.delivered - 1) / per_segment;
            epoch.delivered -= grown * per_segment;
            epoch.reno = epoch.reno.saturating_add(grown);
        }
        if epoch.reno > cwnd {
            self.rate = self.rate.min(cwnd / (epoch.reno - cwnd));
        }
        epoch
    }
}

impl CongestionControl for LinuxCubic {
    /// While the window is no limit nothing grows. The clock counts milliseconds, but is read only if the
    /// window may grow, which changes it or what it was computed for; and when it stood still, which is
    /// counted.
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let is_settling = self.is_settling(walk.now());
        walk.expect(!is_settling, "the first second after a loss");
        let Self { window, beta: _, c: _, fast_convergence: _, hystart, may_end, .. } = self;
        walk.inner(window);
        walk.same(&(*may_end, hystart.delay_min()));
        let Self { w_max, epoch, rate, computed, last_sent, pauses, .. } = self;
        walk.same(&(*w_max, *rate, *computed));
        walk.same(&(epoch.is_some(), *pauses));
        if let Some(Epoch { began, origin, k, reno, delivered }) = epoch {
            walk.same(&(*began, *k));
            walk.same(&[*origin, *reno, *delivered]);
        }
        walk.past(last_sent);
    }

    fn shift_told(&mut self, walk: &mut Walk<'_>, stream: usize, una: u64) {
        let is_asked = self.may_end && self.window.in_slow_start();
        self.hystart.shift(walk, (stream, una), is_asked);
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(cx.now, path, rtt);
        }
        let acked = self.window.take(ack);
        if acked > 0 {
            self.update(millis(cx.now), acked);
            self.window.avoid(self.rate, acked);
        }
    }

    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        let cwnd = self.window.cwnd();
        if loss.cause != LossCause::RepeatedTimeout {
            let behind = self.fast_convergence && cwnd < self.w_max;
            self.w_max = if behind { share(cwnd, 1024 + self.beta, 2048) } else { cwnd };
            self.epoch = None;
        }
        self.window.reduce(path, loss, share(cwnd, self.beta, 1024));
        self.rate = 0;
        if matches!(loss.cause, LossCause::Timeout | LossCause::RepeatedTimeout) {
            self.w_max = 0;
            self.epoch = None;
            self.hystart.reset(cx.now, path.next);
        }
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, path: &Path, _sent: &SentSegment) {
        if path.flight == Size::ZERO
            && let Some(epoch) = &mut self.epoch
        {
            // the sender was idle: the clock stood still
            self.pauses += 1;
            let idle = millis(cx.now).saturating_sub(millis(self.last_sent));
            epoch.began = (epoch.began + idle).min(millis(cx.now));
        }
        self.last_sent = cx.now;
    }

    delegate_to_window!(no_rates, on_jump, on_undo, on_restart, plan_only, ssthresh);
}

/// Returns `cwnd` times `parts` / `whole`, rounded down.
fn share(cwnd: u32, parts: u64, whole: u64) -> u32 {
    (u64::from(cwnd) * parts / whole) as u32
}

const fn millis(now: Instant) -> u64 {
    now.0 / 1_000_000
}

/// Returns the largest integer whose cube is at most `a`.
fn cube_root(a: u64) -> u64 {
    let mut root = libm::cbrt(a as f64) as u64;
    while u128::from(root).pow(3) > u128::from(a) {
        root -= 1;
    }
    while u128::from(root + 1).pow(3) <= u128::from(a) {
        root += 1;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_exact() {
        for (a, root) in [(0, 0), (7, 1), (8, 2), (26, 2), (27, 3), (999_999, 99), (1_000_000, 100)] {
            assert_eq!(cube_root(a), root);
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }
}
