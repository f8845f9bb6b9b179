//! TCP Westwood+.
//!
//! Source: Mascolo, Grieco, Ferorelli, Camarda, Piccoli, "Performance evaluation of Westwood+ TCP congestion
//! control", Performance Evaluation 55, 2004. The sender estimates its delivery rate once per round trip. A
//! loss sets ssthresh to what this rate needs, not to half the window:
//!   b_k = bytes delivered in the round / its length,   BWE = 0.9 BWE + 0.1 b_k
//!   three duplicate ACKs: ssthresh = max(BWE RTTmin, 2 segments), cwnd = min(cwnd, ssthresh)
//!   timeout: the same ssthresh, cwnd = 1 segment
//! Growth is RFC 5681's. A random loss on a path with an empty queue does not reduce the window, since
//! BWE RTTmin is the window then; a congestion loss removes the queued part. Deviations: a round is at least
//! 50 ms, as in Linux, since on short paths it would contain only an ACK or two. ECN marks count as losses.
//! RTTmin is the smallest RTT of the whole connection. Linux filters twice with 7/8 (`twice = true`,
//! `memory = 0.875`), which lags fourteen rounds behind a growing window, the paper's filter nine. It also
//! halves the window first and sets it to BWE RTTmin only after the losses are repaired (`late = true`), so
//! each recovery lowers the estimate by a round at half the rate; with a loss in every third round the
//! estimate falls. That is the Westwood of ns-2's Linux agents; at a loss rate of 1e-2 the default here gets
//! a quarter more than it. Default: weight 0.9 of the old estimate.

use super::law::{Algorithm, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Episode, Loss, LossCause, Path};
use crate::params;
use bentpipe_base::{Cx, Duration, Instant, Size};

/// Shortest interval of a rate sample.
const SHORTEST: Duration = Duration::from_millis(50);

params! {
    /// Parameters of Westwood+.
    pub struct WestwoodParams {
        /// Weight of the old rate estimate in the moving average.
        memory: f64 = 0.9, from 0.0, to 0.999;
        /// Apply the filter twice, as in Linux with a memory of 0.875.
        twice: bool = false;
        /// A loss halves the window; it is set to estimated rate times RTTmin after the losses are repaired,
        /// as in Linux.
        late: bool = false;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm::of::<WestwoodParams>("westwood", |start, values| {
    Box::new(Westwood::new(start.window(), WestwoodParams::of(values)))
});

/// The Westwood+ controller.
#[derive(Clone, Debug)]
pub struct Westwood {
    params: WestwoodParams,
    window: Window,
    /// Rate in bytes per second after one filter and after two; `None` before the end of the first round.
    filtered: Option<(f64, f64)>,
    /// Start of the present sample, and bytes delivered then.
    sample: Option<(Instant, u64)>,
    /// The window is halved until the losses are repaired.
    halved: bool,
}

impl Westwood {
    /// Starts from the given window.
    pub const fn new(window: Window, params: WestwoodParams) -> Self {
        Self { params, window, filtered: None, sample: None, halved: false }
    }

    /// Takes a rate sample if a round trip has passed.
    fn measure(&mut self, now: Instant, path: &Path, delivered: Size) {
        let (since, before) =
            *self.sample.get_or_insert((now, path.delivered - delivered.0.min(path.delivered)));
        let elapsed = now.since(since);
        if path.srtt.is_zero() || elapsed < path.srtt.max(SHORTEST) {
            return;
        }
        let rate = (path.delivered - before) as f64 / elapsed.as_secs_f64();
        let m = self.params.memory;
        self.filtered = Some(match self.filtered {
            Some((once, twice)) => {
                let once = m * once + (1.0 - m) * rate;
                (once, m * twice + (1.0 - m) * once)
            }
            None => (rate, rate),
        });
        self.sample = Some((now, path.delivered));
    }

    /// Returns the estimated rate times RTTmin, in bytes.
    fn estimated_bdp(&self, path: &Path) -> Option<u64> {
        let (once, twice) = self.filtered?;
        let estimate = if self.params.twice { twice } else { once };
        Some((estimate * path.rtt_min.as_secs_f64()) as u64)
    }
}

impl CongestionControl for Westwood {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        self.measure(cx.now, path, ack.delivered);
        if self.halved && matches!(ack.episode, Episode::Open | Episode::Ended) {
            self.halved = false;
            if let Some(fills) = self.estimated_bdp(path) {
                self.window.set_ssthresh(fills);
                self.window.set_cwnd(self.window.ssthresh());
            }
        }
        self.window.grow(ack);
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        let before = self.window.cwnd();
        self.window.reduce(path, loss.cause, 0.5);
        if self.params.late {
            self.halved = matches!(loss.cause, LossCause::Fast | LossCause::Mark);
            return;
        }
        // before the first sample the window is halved
        if let Some(fills) = self.estimated_bdp(path).filter(|_| loss.cause != LossCause::RepeatedTimeout) {
            self.window.set_ssthresh(fills);
            if matches!(loss.cause, LossCause::Fast | LossCause::Mark) {
                self.window.set_cwnd(before.min(self.window.ssthresh()));
            }
        }
    }

    delegate_to_window!(no_rates, on_jump, on_undo, on_restart, plan, ssthresh);
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::cc::law::Growth;

    fn bench(iw: u32, ssthresh: u64) -> Bench {
        Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(100), iw, Some(ssthresh))
    }

    /// Without a queue a random loss reduces the window only by the lag of the estimate.
    #[test]
    fn a_random_loss_takes_little() {
        let mut b = bench(40, 2);
        for _ in 0..100 {
            b.round();
        }
        // the window grows by a segment per round, and an average of weight 0.9 lags nine rounds behind
        let before = b.segments();
        b.lose();
        let lag = before - b.segments();
        assert!((8.0..=11.0).contains(&lag), "{before} {}", b.segments());
    }

    /// Linux's two filters of 7/8 lag seven rounds each.
    #[test]
    fn two_filters_lag_longer() {
        let params = WestwoodParams { memory: 0.875, twice: true, ..WestwoodParams::default() };
        let mut b = Bench::new(Growth::with(&ALGORITHM, params), Duration::from_millis(100), 40, Some(2));
        for _ in 0..100 {
            b.round();
        }
        let before = b.segments();
        b.lose();
        let lag = before - b.segments();
        assert!((13.0..=16.0).contains(&lag), "{before} {}", b.segments());
    }

    /// As in Linux: half the window while the losses are repaired, then estimated rate times RTTmin.
    #[test]
    fn late_halves_until_the_repair_is_over() {
        let params = WestwoodParams { late: true, ..WestwoodParams::default() };
        let mut b = Bench::new(Growth::with(&ALGORITHM, params), Duration::from_millis(100), 40, Some(2));
        for _ in 0..100 {
            b.round();
        }
        let before = b.segments();
        b.lose();
        assert!((b.segments() / before - 0.5).abs() < 0.01, "{before} {}", b.segments());
        b.ack(1);
        let lag = before - b.segments();
        assert!((8.0..=11.0).contains(&lag), "{before} {}", b.segments());
    }

    /// If half of the window is queued, a loss halves it: BWE RTTmin is the BDP.
    #[test]
    fn a_loss_takes_what_is_queued() {
        let mut b = bench(40, 2);
        b.round();
        let full = b.segments();
        b.rtt = Duration::from_millis(200); // the same window at twice the RTT: half of it is queued
        for _ in 0..80 {
            b.round();
        }
        let before = b.segments();
        b.lose();
        let share = b.segments() / before;
        assert!((0.45..0.5).contains(&share), "{full} {before} {}", b.segments());
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_same_threshold() {
        let mut b = bench(40, 2);
        for _ in 0..50 {
            b.round();
        }
        b.time_out();
        assert!((b.segments() - 1.0).abs() < 1e-9);
        // slow start ends at the estimate, not at half the window
        for _ in 0..8 {
            b.round();
        }
        assert!(b.segments() > 60.0, "{}", b.segments());
    }

    /// Before any rate sample a loss halves the window, as in RFC 5681.
    #[test]
    fn without_an_estimate_a_loss_halves() {
        let mut b = bench(40, 2);
        b.lose();
        assert!((b.segments() - 20.0).abs() < 1e-9);
    }
}
