//! An acknowledgment, as the model of the reading application sees it.

use super::WHOLE;
use bentpipe_base::{Duration, Instant};

/// State of the receiver's buffer according to an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowUpdate {
    pub(crate) now: Instant,
    pub(crate) una: u64,
    /// Right edge, and the largest window so far.
    pub(crate) edge: u64,
    pub(crate) largest: u64,
    /// The hop's RTT.
    pub(crate) hop_rtt: Duration,
    /// How far beyond the edge data was forwarded, and how far the hop allows.
    pub(crate) used: u64,
    pub(crate) room: u64,
}

impl WindowUpdate {
    pub(super) fn window(&self) -> f64 {
        self.edge.saturating_sub(self.una) as f64
    }
    pub(super) fn buffer(&self) -> f64 {
        self.largest as f64
    }
    pub(super) fn is_whole(&self) -> bool {
        self.window() >= WHOLE * self.buffer()
    }
    /// Rate in bytes per second that results from `ahead`.
    pub(super) fn rate_at(&self, ahead: f64) -> f64 {
        (ahead + self.buffer() / 2.0).max(1.0) / self.seconds()
    }
    /// The `ahead` that gives `by` times the rate.
    pub(super) fn scaled(&self, ahead: f64, by: f64) -> f64 {
        (ahead + self.buffer() / 2.0) * by - self.buffer() / 2.0
    }
    /// The `ahead` for a reader of `rate`, with half its buffer free.
    pub(super) fn ahead_at(&self, rate: f64) -> f64 {
        rate * self.hop_rtt.as_secs_f64() - self.buffer() / 2.0
    }
    /// The RTT in seconds, at least a millisecond.
    pub(super) fn seconds(&self) -> f64 {
        self.hop_rtt.as_secs_f64().max(1e-3)
    }
}
