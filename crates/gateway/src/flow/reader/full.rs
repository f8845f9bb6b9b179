//! A receiver's full buffer: what refused data tells of the application that reads it.
//!
//! The edge goes on moving while the application reads, whatever is on the way: from the first movement to
//! the last this is its rate.

use bentpipe_base::Instant;

/// Movements of the edge that make a rate.
pub(super) const FEW: u32 = 4;

/// A full buffer that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    pub(super) since: Instant,
    pub(super) una: u64,
    /// When the edge moved first since then, last, and the time before.
    pub(super) first: Option<(Instant, u64)>,
    pub(super) last: (Instant, u64),
    pub(super) before: (Instant, u64),
    pub(super) moves: u32,
    /// What it read while the buffer filled.
    pub(super) filling: f64,
    /// The second within a few round trips.
    pub(super) again: bool,
    /// What was refused had been sent before the limit was changed last.
    pub(super) is_old: bool,
}

impl Drain {
    /// Bytes per second that are read, as far as known; `None` when it all went at once. The last movement
    /// may be told of long after all was read.
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
