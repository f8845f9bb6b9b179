//! Reno as in Linux.
//!
//! Source: the behaviour of Linux 6.x (`tcp_reno_cong_avoid`, `tcp_reno_ssthresh`). Slow start below
//! ssthresh, one segment per window above it. A loss halves cwnd, where RFC 5681, equation 4 halves
//! FlightSize.

use super::LinuxWindow;
use crate::cc::standard::delegate_to_window;
use crate::cc::{Ack, CongestionControl, Loss, Path};
use bentpipe_base::Cx;
use bentpipe_base::shift::Walk;

/// The Reno controller of Linux.
#[derive(Clone, Debug)]
pub struct LinuxReno {
    /// The window, which it starts from.
    pub window: LinuxWindow,
}

impl CongestionControl for LinuxReno {
    fn on_ack(&mut self, _cx: &mut Cx<'_>, _path: &Path, ack: &Ack) {
        let acked = self.window.take(ack);
        if acked > 0 {
            self.window.avoid(self.window.cwnd(), acked);
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        self.window.reduce(path, loss, self.window.cwnd() / 2);
    }

    fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.inner(&mut self.window);
    }

    delegate_to_window!(no_rates, on_jump, on_undo, on_restart, plan, ssthresh);
}
