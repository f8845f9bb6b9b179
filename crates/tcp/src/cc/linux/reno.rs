//! Reno as in Linux.
//!
//! Source: the behaviour of Linux 6.x (`tcp_reno_cong_avoid`, `tcp_reno_ssthresh`). Slow start below
//! ssthresh, one segment per window above it. A loss halves cwnd, where RFC 5681, equation 4 halves
//! FlightSize.

use super::Segments;
use crate::cc::{Ack, CongestionControl, Episode, Loss, Path, Plan};
use crate::limits::Limit;
use bentpipe_base::{Cx, Size};

/// The Reno controller of Linux.
#[derive(Clone, Debug)]
pub struct LinuxReno {
    window: Segments,
}

impl LinuxReno {
    /// Starts from the given window.
    pub const fn new(window: Segments) -> Self {
        Self { window }
    }
}

impl CongestionControl for LinuxReno {
    fn on_ack(&mut self, _cx: &mut Cx<'_>, _path: &Path, ack: &Ack) {
        let acked = self.window.delivered(ack);
        if ack.acked == Size::ZERO
            || ack.episode == Episode::Fast
            || ack.limited_by != Limit::CongestionWindow
        {
            return;
        }
        let acked = if self.window.in_slow_start() { self.window.slow_start(acked) } else { acked };
        if acked > 0 {
            self.window.avoid(self.window.cwnd(), acked);
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        self.window.reduce(path, loss, self.window.cwnd() / 2);
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.window.undo();
    }

    fn on_restart(&mut self, _cx: &mut Cx<'_>, _path: &Path, window: Size) {
        self.window.restart(window);
    }

    fn plan(&self, _path: &Path) -> Plan {
        Plan::window(self.window.bytes())
    }

    fn ssthresh(&self) -> Option<Size> {
        self.window.ssthresh_bytes()
    }
}
