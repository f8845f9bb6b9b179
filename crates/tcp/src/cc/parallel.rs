//! One of several connections that carry one transfer and together are as aggressive as one.
//!
//! Source: Hacker, Noble, Athey, "Improving Throughput and Maintaining Fairness Using Parallel TCP", INFOCOM
//! 2004: N parallel connections take N shares of a bottleneck unless each of them grows as if it had a
//! longer, virtual RTT. AIMD with an increase of a segments per round trip and a reduction by half has, at a
//! loss rate p,
//!   rate = MSS / RTT sqrt(3 a / (2 p))
//! A virtual RTT of m RTT makes a = 1/m. N connections are together as aggressive as one if N sqrt(1/m) = 1:
//! m = N^2. Slow start is unchanged, so a transfer over N connections still opens N times as fast; and a
//! single loss still halves only one of them. Deviation: the paper mixes one standard connection with others
//! of long virtual RTT; here the scenario configures each flow. Default: one connection, which is RFC 5681.
//! Without the correction N connections are N flows with any other scheme (`connections = N`).

use super::law::{Algorithm, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Path};
use crate::params;
use bentpipe_base::Cx;

params! {
    /// Parameters of one of the connections.
    pub struct ParallelParams {
        /// Number of connections that are together as aggressive as one; the virtual RTT is the square of it
        /// times the RTT.
        parts: f64 = 1.0, from 1.0, to 1000.0;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm::of::<ParallelParams>("parallel", |start, values| {
    let parts = ParallelParams::of(values).parts;
    Box::new(Parallel { stretch: parts * parts, window: start.window() })
});

/// The controller of one of the connections.
#[derive(Clone, Debug)]
pub struct Parallel {
    /// Virtual RTT in RTTs.
    stretch: f64,
    window: Window,
}

impl CongestionControl for Parallel {
    fn on_ack(&mut self, _cx: &mut Cx<'_>, _path: &Path, ack: &Ack) {
        if !ack.may_grow() {
            return;
        }
        if self.window.in_slow_start() {
            self.window.slow_start(ack.acked, self.window.mss());
        } else {
            let acked = ack.acked.0.min(self.window.mss()) as f64 / self.window.mss() as f64;
            self.window.add(acked / self.window.segments() / self.stretch);
        }
    }

    delegate_to_window!(no_rates, on_jump, on_loss, on_undo, on_restart, plan, ssthresh);
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::cc::law::Growth;
    use bentpipe_base::Duration;

    fn bench(parts: f64, ssthresh: Option<u64>) -> Bench {
        Bench::new(
            Growth::with(&ALGORITHM, ParallelParams { parts }),
            Duration::from_millis(100),
            20,
            ssthresh,
        )
    }

    /// Four connections: each grows by a sixteenth of a segment per round trip, and a loss halves it.
    #[test]
    fn the_virtual_round_trip_is_the_square_of_the_parts() {
        for (parts, gained) in [(1.0, 16.0), (4.0, 1.0)] {
            let mut b = bench(parts, Some(2));
            for _ in 0..16 {
                b.round();
            }
            assert!((b.segments() - 20.0 - gained).abs() < 0.05 * gained, "{parts}: {}", b.segments());
            let before = b.segments();
            b.lose();
            assert!((b.segments() / before - 0.5).abs() < 0.03, "{}", b.segments());
        }
    }

    #[test]
    fn slow_start_stays_as_it_is() {
        let mut b = bench(4.0, None);
        assert!((b.round() - 40.0).abs() < 1e-9);
    }

    /// At the same loss rate N connections together send what one does: with a window that oscillates between
    /// W/2 and W, each carries 1/N and takes N^2 as many round trips from loss to loss.
    #[test]
    fn parts_lose_as_seldom_as_they_carry_little() {
        // at the same loss rate each of four connections should carry a quarter of what a single one carries
        let mean = |parts: f64| {
            let mut b = bench(parts, Some(2));
            let (mut sum, mut rounds, mut sent) = (0.0, 0, 0.0);
            for i in 0..60_000 {
                let now = b.segments();
                b.round();
                sent += now;
                if i > 10_000 {
                    (sum, rounds) = (sum + now, rounds + 1);
                }
                if sent >= 2048.0 {
                    sent -= 2048.0;
                    b.lose();
                }
            }
            sum / f64::from(rounds)
        };
        let share = mean(4.0) / mean(1.0);
        assert!((share - 0.25).abs() < 0.025, "{share}");
    }
}
