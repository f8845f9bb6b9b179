//! TCP Hybla.
//!
//! Source: Caini, Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J. Satellite
//! Communications and Networking 22(5), 2004. A connection with a long RTT grows as fast, in segments per
//! second, as a reference connection with an RTT of RTT0:
//!   rho = max(RTT / RTT0, 1)
//!   slow start:  cwnd += 2^rho - 1    per acknowledged segment
//!   avoidance:   cwnd += rho^2 / cwnd per acknowledged segment, so rho^2 segments per round trip
//! Initial window and ssthresh are rho times the reference's. A loss halves the window, as in RFC 5681. Such
//! growth needs SACK and pacing: segments leave at 1.2 windows per round trip, not in bursts of 2^rho.
//! Deviations: RTT is the smallest seen, so Hybla's own queue does not make it faster. If the host sets no
//! ssthresh, the reference's is 64 KiB (rho times that here); without a limit, slow start over a GEO path
//! (rho = 22) would grow to any window with the first acknowledgments. Growth in slow start stops at
//! ssthresh, and 2^rho at 2^16. The paper's estimate of the path's capacity at the start is omitted. Default:
//! RTT0 25 ms.

use super::law::{Algorithm, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Loss, Path, Plan};
use crate::params;
use bentpipe_base::{Cx, Duration, Size};

/// The reference's initial ssthresh in bytes: the largest window without scaling.
const REFERENCE_THRESHOLD: u64 = 65_535;
/// Largest exponent in slow start.
const MOST_DOUBLINGS: f64 = 16.0;
/// Windows per round trip at which segments are paced; above one, so that the window stays the limit.
const SPACING: f64 = 1.2;

params! {
    /// Parameters of Hybla.
    pub struct HyblaParams {
        /// RTT of the reference connection.
        rtt0: Duration = Duration::from_millis(25), from Duration::from_millis(1), to Duration::from_secs(10);
        /// Pace the segments over the round trip.
        spacing: bool = true;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm::of::<HyblaParams>("hybla", |start, values| {
    let bounded = start.config.initial_ssthresh.is_some();
    Box::new(Hybla { params: HyblaParams::of(values), window: start.window(), bounded, started: false })
});

/// The Hybla controller.
#[derive(Clone, Debug)]
pub struct Hybla {
    params: HyblaParams,
    window: Window,
    /// The host set a threshold, or there was a loss.
    bounded: bool,
    started: bool,
}

impl Hybla {
    /// Returns the ratio of the RTT to the reference's, at least 1.
    pub fn rho(&self, path: &Path) -> f64 {
        (path.rtt_min.as_secs_f64() / self.params.rtt0.as_secs_f64()).max(1.0)
    }

    /// Sets the initial window and threshold, once the RTT is known.
    fn start(&mut self, rho: f64) {
        self.started = true;
        let window = libm::round(self.window.initial() as f64 * rho) as u64;
        self.window.set_cwnd(window.min(self.window.ssthresh()));
        if !self.bounded {
            self.window.set_ssthresh((REFERENCE_THRESHOLD as f64 * rho) as u64);
        }
    }
}

impl CongestionControl for Hybla {
    fn on_ack(&mut self, _cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        if path.rtt_min.is_zero() {
            return;
        }
        let rho = self.rho(path);
        if !self.started {
            self.start(rho);
        }
        if !ack.may_grow() {
            return;
        }
        let acked = ack.acked.0 as f64 / self.window.mss() as f64;
        if self.window.in_slow_start() {
            self.window.add(acked * (libm::exp2(rho.min(MOST_DOUBLINGS)) - 1.0));
            self.window.set_cwnd(self.window.cwnd().min(self.window.ssthresh()));
        } else {
            self.window.add(acked * rho * rho / self.window.segments());
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        self.bounded = true;
        self.started = true;
        self.window.reduce(path, loss.cause, 0.5);
    }

    fn plan(&self, path: &Path) -> Plan {
        let window = self.window.cwnd();
        let pace = if self.params.spacing { path.spread(SPACING, window) } else { None };
        Plan { pace, ..Plan::window(Size(window)) }
    }

    delegate_to_window!(no_rates, on_jump, on_undo, on_restart, ssthresh);
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::cc::law::Growth;

    fn hybla(rtt_ms: u64, iw: u32, ssthresh: u64) -> Bench {
        Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(rtt_ms), iw, Some(ssthresh))
    }

    /// W(t) = rho 2^(rho t / RTT) in slow start (the paper's section on the window): the reference's window
    /// times rho, one RTT0 later.
    #[test]
    fn slow_start_grows_by_2_to_the_rho_less_one() {
        // RTT 50 ms, rho 2: an acknowledgment adds 3 segments, a round quadruples the window
        let mut b = hybla(50, 1, 1_000_000);
        b.ack(1);
        assert!((b.segments() - 5.0).abs() < 1e-9, "2 to start with, and 3: {}", b.segments());
        // rho 1: RFC 5681
        let mut b = hybla(20, 4, 1_000_000);
        b.round();
        assert!((b.segments() - 8.0).abs() < 1e-9);
    }

    /// Avoidance: rho^2 segments per round trip. Per second that is rho times what the reference gains, which
    /// is 1/RTT0 per RTT0.
    #[test]
    fn avoidance_grows_like_the_reference_in_time() {
        for (rtt, rho) in [(25, 1.0), (100, 4.0), (550, 22.0)] {
            let mut b = hybla(rtt, 100, 100_000 * rho as u64); // at the threshold from the start
            b.ack(1);
            let (from, began) = (b.segments(), b.seconds());
            for _ in 0..6 {
                b.round();
            }
            let per_second = (b.segments() - from) / (b.seconds() - began);
            let reference = 1.0 / (0.025 * 0.025) * 0.025; // segments per second of a Reno with RTT0
            let ratio = per_second / (reference * rho);
            // the window grows during a round, so it gains slightly less than rho^2
            assert!((0.85..=1.001).contains(&ratio), "RTT {rtt} ms: {ratio}");
        }
    }

    #[test]
    fn a_loss_halves_and_the_threshold_stops_slow_start() {
        let mut b = hybla(550, 2, 60_000);
        b.ack(1);
        assert!((b.segments() - 60.0).abs() < 1e-9, "2^22 would be more: {}", b.segments());
        b.lose();
        assert!((b.segments() - 30.0).abs() < 1e-9);
    }

    /// If the host sets no threshold, it is rho times the reference's 64 KiB.
    #[test]
    fn an_unbounded_start_stops_at_rho_times_the_references_threshold() {
        let mut b = Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(550), 10, None);
        b.ack(1);
        assert_eq!(b.window(), 65_535 * 22);
    }

    #[test]
    fn segments_are_spaced() {
        let mut b = hybla(100, 2, 20_000);
        b.ack(1);
        let pace = b.plan().pace.expect("a pace").bps() as f64;
        let even = b.window() as f64 * 8.0 / 0.1;
        assert!((pace / even - 1.2).abs() < 1e-3);
    }
}
