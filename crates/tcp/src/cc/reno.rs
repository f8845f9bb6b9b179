//! Reno growth.
//!
//! Source: RFC 5681. Slow start below ssthresh, one segment per round trip above it, half the FlightSize on a
//! loss. Serves `reno`, `newreno`, `sack` and `rate-halving`: they differ in recovery, not in growth.
//! Deviation: none. An ECN echo counts as a loss (RFC 3168, section 6.1.2).

use super::law::Algorithm;
use super::linux::LinuxReno;
use super::standard::{Window, delegate_to_window};
use super::{Ack, CongestionControl, Path};
use bentpipe_base::Cx;
use bentpipe_base::shift::Walk;

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    linux: Some(|start, _| Box::new(LinuxReno { window: start.segments() })),
    ..Algorithm::new("reno", |start, _| Box::new(Reno { window: start.window() }))
};

/// The Reno controller.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, _cx: &mut Cx<'_>, _path: &Path, ack: &Ack) {
        self.window.grow(ack);
    }

    fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.inner(&mut self.window);
    }

    #[inline]
    fn standard_window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    delegate_to_window!(no_rates, on_jump, on_loss, on_undo, on_restart, plan, ssthresh);
}
