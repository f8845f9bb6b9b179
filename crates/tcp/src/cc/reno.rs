//! Reno growth.
//!
//! Source: RFC 5681. Slow start below ssthresh, one segment per round trip above it, half the FlightSize on a
//! loss. Serves `reno`, `newreno`, `sack` and `rate-halving`: they differ in recovery, not in growth.
//! Deviation: none. An ECN echo counts as a loss (RFC 3168, section 6.1.2).

use super::law::Law;
use super::linux::LinuxReno;
use super::standard::Window;
use super::{Ack, CongestionControl, Episode, Loss, Path, Plan};
use crate::limits::Limit;
use bentpipe_base::{Cx, Size};

/// RFC 5681's multiplicative decrease.
const HALF: f64 = 0.5;

/// The entry in the table of schemes (`scheme.rs`).
pub const LAW: Law = Law {
    linux: Some(|start, _| Box::new(LinuxReno::new(start.segments()))),
    ..Law::new("reno", |start, _| Box::new(Reno::new(start.window())))
};

/// The Reno controller.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
}

impl Reno {
    /// Starts from the given window.
    pub const fn new(window: Window) -> Self {
        Self { window }
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, _cx: &mut Cx<'_>, _path: &Path, ack: &Ack) {
        if ack.acked == Size::ZERO
            || ack.limited_by != Limit::CongestionWindow
            || ack.episode == Episode::Fast
        {
            return;
        }
        if ack.episode == Episode::Ended {
            return;
        }
        if self.window.in_slow_start() {
            self.window.slow_start(ack.acked, self.window.mss());
        } else {
            self.window.avoid(ack.acked);
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        self.window.reduce(path, loss.cause, HALF);
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.window.undo();
    }

    fn on_restart(&mut self, _cx: &mut Cx<'_>, _path: &Path, window: Size) {
        self.window.restart(window);
    }

    #[inline]
    fn plan(&self, _path: &Path) -> Plan {
        Plan::window(Size(self.window.cwnd()))
    }

    fn ssthresh(&self) -> Option<Size> {
        self.window.threshold()
    }
}
