//! BIC-TCP.
//!
//! Source: Xu, Harfoush, Rhee, "Binary increase congestion control (BIC) for fast long-distance networks",
//! INFOCOM 2004, section III. After a loss at Wmax the best window lies between the reduced window and Wmax,
//! and is found like in a binary search: per round trip
//!   inc = (Wmax - W) / 2, at most Smax, at least Smin;      per acknowledged segment  W += inc / W
//! Beyond Wmax it probes for a new maximum, slowly at first: by 1, 2, 4 .. segments per round trip, up to
//! Smax. Loss: Wmax = W, or halfway between W and the reduced window if W was below the last Wmax (fast
//! convergence); W = beta W. Below `low_window`: RFC 5681. As inc shrinks with every acknowledgment, the
//! search is W(n) = Wmax - (Wmax - W0) e^(-n/2) after n round trips, once Wmax - W <= 2 Smax; before that W
//! grows by Smax per round trip. Deviations: a timeout does not reset Wmax; slow start runs up to
//! ssthresh = beta W. Linux divides the distance by 4, not by 2, has Smax 16 and leaves 819/1024 at a loss.
//! Defaults: Smax 32, Smin 0.01 segments, beta 0.875, low_window 14 segments.

use super::law::{Algorithm, ParamConflict, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Loss, LossCause, Path};
use crate::params;
use bentpipe_base::Cx;

params! {
    /// Parameters of BIC.
    pub struct BicParams {
        /// Largest growth in segments per round trip.
        smax: f64 = 32.0, from 0.01, to 10000.0;
        /// Smallest growth in segments per round trip.
        smin: f64 = 0.01, from 0.001, to 10000.0;
        /// Factor by which a loss multiplies the window.
        beta: f64 = 0.875, from 0.1, to 0.95;
        /// Window in segments below which BIC is RFC 5681.
        low_window: f64 = 14.0, from 0.0, to 1e6;
        /// A loss below the last maximum lowers the maximum further.
        fast_convergence: bool = true;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    params: BicParams::LIST,
    check: |values| {
        let p = BicParams::of(values);
        let conflict = ParamConflict { keys: ["smin", "smax"], message: "`smin` is more than `smax`" };
        if p.smin > p.smax { Err(conflict) } else { Ok(()) }
    },
    ..Algorithm::new("bic", |start, values| Box::new(Bic::new(start.window(), BicParams::of(values))))
};

/// What the window searches for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Search {
    /// The best window below the maximum, in segments.
    Binary { max: f64 },
    /// A new maximum: grows by `step` segments per round trip until the window is `until`.
    Probe { step: f64, until: f64 },
    /// A new maximum: grows by Smax per round trip.
    Linear,
}

/// The BIC controller.
#[derive(Clone, Debug)]
pub struct Bic {
    params: BicParams,
    window: Window,
    /// Window before the last loss in segments, after fast convergence; 0 before the first loss.
    max: f64,
    search: Search,
    before: (f64, Search),
}

impl Bic {
    /// Starts from the given window.
    pub const fn new(window: Window, params: BicParams) -> Self {
        Self { params, window, max: 0.0, search: Search::Linear, before: (0.0, Search::Linear) }
    }

    /// Returns the growth in segments per round trip at a window of `w` segments.
    fn increment(&mut self, w: f64) -> f64 {
        let p = self.params;
        if let Search::Binary { max } = self.search {
            if w < max {
                return ((max - w) / 2.0).clamp(p.smin, p.smax);
            }
            self.search = Search::Probe { step: 1.0, until: w + 1.0 };
        }
        if let Search::Probe { step, until } = self.search
            && w >= until
        {
            self.search = Search::Probe { step: 2.0 * step, until: w + 2.0 * step };
        }
        match self.search {
            Search::Probe { step, .. } if step < p.smax => step.max(p.smin),
            _ => {
                self.search = Search::Linear;
                p.smax
            }
        }
    }
}

impl CongestionControl for Bic {
    fn on_ack(&mut self, _cx: &mut Cx<'_>, _path: &Path, ack: &Ack) {
        if !ack.may_grow() {
            return;
        }
        let w = self.window.segments();
        if self.window.in_slow_start() {
            self.window.slow_start(ack.acked, self.window.mss());
        } else if w < self.params.low_window {
            self.window.avoid(ack.acked);
        } else {
            let acked = ack.acked.0 as f64 / self.window.mss() as f64;
            let increment = self.increment(w);
            self.window.add(acked * increment / w);
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        let low = self.window.segments() < self.params.low_window;
        if loss.cause != LossCause::RepeatedTimeout {
            self.before = (self.max, self.search);
            let (w, last) = (self.window.segments(), self.max);
            let converge = self.params.fast_convergence && w < last;
            self.max = if converge { w * (1.0 + self.params.beta) / 2.0 } else { w };
            self.search = Search::Binary { max: self.max };
        }
        let factor = if low { 0.5 } else { self.params.beta };
        self.window.reduce_from(self.window.used(path), loss.cause, factor);
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.window.undo();
        (self.max, self.search) = self.before;
    }

    delegate_to_window!(no_rates, on_jump, on_restart, plan, ssthresh);
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::cc::law::Growth;
    use bentpipe_base::Duration;

    fn bench(iw: u32) -> Bench {
        Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(100), iw, Some(2000))
    }

    /// W(n) = Wmax - (Wmax - W0) e^(-n/2) in the search: 7/8 of 400 leaves a gap of 50, less than 2 Smax.
    #[test]
    fn the_search_follows_its_closed_form() {
        let mut b = bench(400);
        b.lose();
        assert!((b.segments() - 350.0).abs() < 1e-9);
        let mut acked = 0.0;
        for n in 1..=12 {
            // one round of the closed form acknowledges one window
            let mut left = b.segments();
            while left > 0.0 {
                b.ack(1);
                left -= 1.0;
                acked += 1.0 / b.segments();
            }
            let want = 400.0 - 50.0 * libm::exp(-acked / 2.0);
            assert!((b.segments() - want).abs() < 0.3, "round {n}: {} against {want}", b.segments());
        }
    }

    /// Far below the maximum the window grows by Smax per round trip: 7/8 of 4000 leaves a gap of 500, so the
    /// first 436 segments take 436/32 round trips.
    #[test]
    fn far_from_the_maximum_it_climbs_by_smax() {
        let mut b = bench(4000);
        b.lose();
        for n in 1..=13 {
            let w = b.round();
            let want = 3500.0 + 32.0 * f64::from(n);
            assert!((w - want).abs() < 0.02 * 32.0 * f64::from(n), "round {n}: {w} against {want}");
        }
    }

    /// Beyond the maximum: 1, 2, 4 .. segments per round trip.
    #[test]
    fn beyond_the_maximum_steps_double() {
        let mut b = bench(400);
        b.lose();
        while b.segments() < 400.0 {
            b.round();
        }
        let mut steps = Vec::new();
        let mut last = b.segments();
        for _ in 0..9 {
            let w = b.round();
            steps.push(w - last);
            last = w;
        }
        assert!(steps.windows(2).all(|s| s[1] >= s[0] * 0.99), "{steps:?}");
        assert!(steps[0] < 2.5 && (30.0..=32.5).contains(&steps[8]), "{steps:?}");
    }

    /// A loss at 350 after one at 400: the maximum is 328.125 with fast convergence, 350 without.
    #[test]
    fn fast_convergence() {
        for (fast, max) in [(true, 350.0 * 1.875 / 2.0), (false, 350.0)] {
            let mut growth = Growth::of(&ALGORITHM);
            assert!(growth.set("fast_convergence", crate::cc::law::Value::Switch(fast)));
            let mut b = Bench::new(growth, Duration::from_millis(100), 400, Some(2000));
            b.lose();
            b.lose();
            for _ in 0..14 {
                b.round();
            }
            assert!((b.segments() - max).abs() < 1.0, "{} against {max}", b.segments());
        }
    }

    #[test]
    fn small_windows_are_renos() {
        let mut b = bench(8);
        b.lose();
        assert!((b.segments() - 4.0).abs() < 1e-9);
        b.round();
        assert!((b.segments() - 5.0).abs() < 1e-9);
    }
}
