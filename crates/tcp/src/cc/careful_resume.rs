//! Careful Resume.
//!
//! Source: RFC 9959. A sender that knows the path from an earlier connection skips most of slow start, and
//! retreats if that was wrong:
//!   reconnaissance: the initial window; ends when it is acknowledged without loss and the RTT is between
//!     half and ten times the saved one
//!   -> unvalidated: cwnd jumps to half the saved window, paced over a round trip, until data sent after the
//!     jump is acknowledged
//!   -> validating: cwnd = what is in flight, growth as usual, until all data sent unvalidated is
//!     acknowledged -> normal
//!   a loss in these two -> safe retreat: cwnd = `PipeSize` / 2, where `PipeSize` is what was in flight
//!     before the jump plus what was acknowledged since; once the unvalidated data is acknowledged, ssthresh
//!     = `PipeSize` * beta -> normal. A timeout: slow start up to `PipeSize` / 2.
//! The congestion control that it modifies is RFC 5681's with beta 1/2. Deviations: the RFC saves the path's
//! parameters with a lifetime; here they are configured. The window does not grow during the retreat.
//! Default: nothing is saved, which is RFC 5681.

use super::law::{Algorithm, Params as _};
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Loss, LossCause, Path, Plan};
use crate::limits::Limit;
use crate::params;
use bentpipe_base::{Cx, Duration, Size};

/// RFC 5681's multiplicative decrease.
const BETA: f64 = 0.5;
/// Range of RTT / saved RTT in which the path counts as the same.
const SAME_PATH: (f64, f64) = (0.5, 10.0);

params! {
    /// Path parameters saved by an earlier connection.
    pub struct CarefulResumeParams {
        /// Window of the earlier connection in segments; 0: nothing is saved.
        saved_window: f64 = 0.0, from 0.0, to 1e7;
        /// Smallest RTT of the earlier connection.
        saved_rtt: Duration = Duration::from_millis(550), from Duration::from_micros(1), to Duration::from_secs(60);
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm::of::<CarefulResumeParams>("careful-resume", |start, values| {
    Box::new(CarefulResume::new(start.window(), CarefulResumeParams::of(values)))
});

/// Phases of RFC 9959, section 3; the fields are stream positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reconnaissance,
    /// Data from `first` on is sent after the jump.
    Unvalidated {
        first: u64,
    },
    /// Data up to `last` was sent unvalidated.
    Validating {
        last: u64,
    },
    SafeRetreat {
        last: u64,
    },
    Normal,
}

/// The Careful Resume controller.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    params: CarefulResumeParams,
    window: Window,
    phase: Phase,
    /// Bytes that the path has proved to carry in flight.
    pipe_size: u64,
}

impl CarefulResume {
    /// Starts from the given window.
    pub fn new(window: Window, params: CarefulResumeParams) -> Self {
        let known = params.saved_window > 0.0;
        let phase = if known { Phase::Reconnaissance } else { Phase::Normal };
        Self { params, window, phase, pipe_size: 0 }
    }

    fn is_same_path(&self, path: &Path) -> bool {
        let ratio = path.rtt_min.as_secs_f64() / self.params.saved_rtt.as_secs_f64();
        (SAME_PATH.0..=SAME_PATH.1).contains(&ratio)
    }

    /// Advances the phase on an acknowledgment.
    fn step(&mut self, path: &Path, ack: &Ack) {
        match self.phase {
            Phase::Reconnaissance if path.una > self.window.initial() => self.jump(path, ack),
            Phase::Unvalidated { first } => {
                self.pipe_size += ack.acked.0;
                if path.una > first {
                    self.phase = Phase::Normal;
                    if path.flight.0 > self.pipe_size {
                        self.window.set_cwnd(path.flight.0);
                        self.phase = Phase::Validating { last: path.next };
                    }
                }
            }
            Phase::Validating { last } => {
                self.pipe_size += ack.acked.0;
                if path.una >= last {
                    self.phase = Phase::Normal;
                }
            }
            Phase::SafeRetreat { last } => {
                self.pipe_size += ack.acked.0;
                if path.una >= last {
                    self.window.set_ssthresh((self.pipe_size as f64 * BETA) as u64);
                    self.phase = Phase::Normal;
                }
            }
            Phase::Reconnaissance | Phase::Normal => {}
        }
    }

    fn jump(&mut self, path: &Path, ack: &Ack) {
        let target = (self.params.saved_window * self.window.mss() as f64 / 2.0) as u64;
        let useful = target > self.window.cwnd() && ack.limited_by == Limit::CongestionWindow;
        self.phase = Phase::Normal;
        if useful && self.window.in_slow_start() && self.is_same_path(path) {
            self.pipe_size = path.flight.0;
            self.window.set_cwnd(target);
            self.phase = Phase::Unvalidated { first: path.next };
        }
    }
}

impl CongestionControl for CarefulResume {
    fn on_ack(&mut self, _cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        self.step(path, ack);
        let waits = matches!(self.phase, Phase::Unvalidated { .. } | Phase::SafeRetreat { .. });
        if !waits {
            self.window.grow(ack);
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        let doubtful = matches!(self.phase, Phase::Unvalidated { .. } | Phase::Validating { .. });
        self.window.reduce(path, loss.cause, BETA);
        if !doubtful {
            // a loss before the jump forbids it; a loss during the retreat does not end the retreat
            if !matches!(self.phase, Phase::SafeRetreat { .. }) || loss.cause == LossCause::Timeout {
                self.phase = Phase::Normal;
            }
            return;
        }
        self.window.set_ssthresh(self.pipe_size / 2);
        self.phase = Phase::Normal;
        if matches!(loss.cause, LossCause::Fast | LossCause::Mark) {
            self.window.set_cwnd((self.pipe_size / 2).max(2 * self.window.mss()));
            self.phase = Phase::SafeRetreat { last: path.next };
        }
    }

    fn plan(&self, path: &Path) -> Plan {
        let window = self.window.cwnd();
        let paced = matches!(self.phase, Phase::Unvalidated { .. });
        let pace = if paced { path.spread(1.0, window) } else { None };
        Plan { pace, ..Plan::window(Size(window)) }
    }

    delegate_to_window!(on_jump, on_undo, on_restart, ssthresh);
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::cc::law::Growth;

    /// 400 segments and 550 ms are saved; the present path has an RTT of `rtt_ms`.
    fn bench(rtt_ms: u64) -> Bench {
        let params = CarefulResumeParams { saved_window: 400.0, ..CarefulResumeParams::default() };
        Bench::new(Growth::with(&ALGORITHM, params), Duration::from_millis(rtt_ms), 10, None)
    }

    /// After a round trip cwnd is half the saved window, paced over the next; slow start from 10 would be at
    /// 20.
    #[test]
    fn it_jumps_after_a_round_trip() {
        let mut b = bench(550);
        assert!(b.plan().pace.is_none());
        b.round();
        assert!((b.segments() - 200.0).abs() < 1e-9, "{}", b.segments());
        let pace = b.plan().pace.expect("a pace").bps() as f64;
        assert!((pace * 0.55 / 8.0 / 200_000.0 - 1.0).abs() < 1e-3);
        // validated: slow start continues
        b.round();
        let validated = b.segments();
        assert!((200.0..=400.0).contains(&validated) && b.plan().pace.is_none(), "{validated}");
        b.round();
        assert!(b.segments() > 1.8 * validated, "slow start: {} after {validated}", b.segments());
    }

    /// RFC 9959: no jump if the RTT shows that the path is another one.
    #[test]
    fn another_path_is_not_resumed() {
        for (rtt, window) in [(274, 20.0), (276, 200.0), (5400, 200.0), (5600, 20.0)] {
            let mut b = bench(rtt);
            b.round();
            assert!((b.segments() - window).abs() < 1e-9, "{rtt} ms: {}", b.segments());
        }
    }

    /// A loss after the jump leaves half of what the path has proved to carry, not half of the jump.
    #[test]
    fn a_loss_retreats_to_half_of_the_pipe() {
        let mut b = bench(550);
        b.round();
        b.lose();
        let left = b.segments();
        assert!((4.0..=10.0).contains(&left), "half of 10 to 20 in flight before the jump: {left}");
        let mut b = bench(550);
        b.round();
        b.time_out();
        assert!((b.segments() - 1.0).abs() < 1e-9);
    }

    /// A loss in the first window forbids the jump.
    #[test]
    fn a_loss_before_the_jump_forbids_it() {
        let mut b = bench(550);
        b.ack(2);
        b.lose();
        for _ in 0..3 {
            b.round();
        }
        assert!(b.segments() < 20.0, "{}", b.segments());
    }

    #[test]
    fn nothing_saved_is_rfc_5681() {
        let mut b = Bench::new(Growth::of(&ALGORITHM), Duration::from_millis(550), 10, None);
        b.round();
        assert!((b.segments() - 20.0).abs() < 1e-9);
    }
}
