//! A receiver's full buffer, which shows how fast the application reads.
//!
//! While the application reads, the edge keeps moving, whatever is in flight. Its movement from first to last
//! gives the read rate.

use bentpipe_base::Instant;

/// Movements of the edge needed for a rate.
pub(super) const FEW: u32 = 4;

/// A full buffer that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferDrain {
    pub(super) since: Instant,
    pub(super) una: u64,
    /// First and last movement of the edge since then, and the one before the last.
    pub(super) first: Option<(Instant, u64)>,
    pub(super) last: (Instant, u64),
    pub(super) before: (Instant, u64),
    pub(super) moves: u32,
    /// Read rate while the buffer filled.
    pub(super) filling: f64,
    /// The same over the last quarter to half of a round trip, if it filled for so long.
    pub(super) busy: Option<f64>,
    /// The second overflow within a few round trips.
    pub(super) again: bool,
    /// The refused data had been sent before the last change of the limit.
    pub(super) is_old: bool,
}

impl BufferDrain {
    /// The read rate in bytes per second as far as known; `None` if everything was read at once. The last
    /// movement may be reported long after everything was read.
    pub(super) fn rate(&self) -> Option<f64> {
        let (at, edge) = self.first?;
        let to = |(end, to): (Instant, u64)| {
            let time = end.since(at).as_secs_f64();
            (time > 0.0 && to > edge).then(|| (to - edge) as f64 / time)
        };
        let before = to(self.before).filter(|_| self.moves > FEW);
        to(self.last).map(|rate| rate.max(before.unwrap_or(0.0)))
    }
}
