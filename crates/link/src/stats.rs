//! Counters of a link.

use crate::link::Link;
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Size};

/// Totals of the packets that a link serialised.
#[derive(Clone, Copy, Debug, Default)]
pub struct Served {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Size,
    /// Time spent serialising.
    pub busy: Duration,
}

type Drops = [u64; DropCause::ALL.len()];

/// Counters of one direction of a link.
#[derive(Clone, Debug, Default)]
pub struct LinkStats {
    /// Totals of the packets serialised.
    pub served: Served,
    /// Largest number of packets waiting so far.
    pub queue_peak: u32,
    /// Largest number of packets waiting since it was last read.
    pub(crate) recent_peak: u32,
    /// Packets marked CE in the queue; `None` if the discipline does not mark.
    pub marked: Option<u64>,
    /// By cause; made with the first drop, since there may be hundreds of thousands of links.
    pub(crate) drops: Option<Box<Drops>>,
    /// Packets waiting, integrated over time, up to `queue_since`.
    pub(crate) queue_ns: u128,
    pub(crate) queue_since: Instant,
}

impl Link {
    /// The same as [`Link::stats`], as a copy: a link at which nothing has waited and was dropped gets no
    /// counters for it, which matters if there are hundreds of thousands.
    pub fn totals(&mut self, cx: &mut Cx<'_>) -> LinkStats {
        let sending_until = self.catch_up_to_now(cx);
        if self.stats.is_some() {
            return self.stats(cx).clone();
        }
        let mut served = self.served;
        served.busy = served.busy.saturating_sub(sending_until.since(cx.now));
        LinkStats { served, marked: self.queue.marked(), queue_since: cx.now, ..LinkStats::default() }
    }
}

impl LinkStats {
    /// Counts a drop.
    #[inline]
    pub fn dropped(&mut self, cause: DropCause) {
        self.drops.get_or_insert_default()[cause as usize] += 1;
    }

    fn drops_by(&self, cause: DropCause) -> u64 {
        self.drops.as_ref().map_or(0, |drops| drops[cause as usize])
    }

    /// Updates the peaks after an arrival; `waiting` packets wait now.
    #[inline]
    pub(crate) fn update_peaks(&mut self, waiting: u32) {
        self.queue_peak = self.queue_peak.max(waiting);
        self.recent_peak = self.recent_peak.max(waiting);
    }

    /// Drops by cause, without causes that did not occur.
    pub fn drops(&self) -> impl Iterator<Item = (DropCause, u64)> {
        DropCause::ALL.into_iter().map(|c| (c, self.drops_by(c))).filter(|(_, n)| *n > 0)
    }

    /// Records that `waiting` packets have waited from the last call until `at`.
    #[inline]
    pub fn integrate_queue(&mut self, at: Instant, waiting: usize) {
        if waiting > 0 {
            self.queue_ns += waiting as u128 * u128::from(at.since(self.queue_since).0);
        }
        self.queue_since = at;
    }

    /// Packets lost on the way, after the queue.
    pub fn lost(&self) -> u64 {
        let refused = self.drops_by(DropCause::TooBig);
        self.drops().map(|(_, n)| n).sum::<u64>() - self.dropped_in_queue() - refused
    }

    /// Packets dropped in the queue: it was full, or the AQM dropped them.
    pub fn dropped_in_queue(&self) -> u64 {
        self.drops_by(DropCause::QueueFull) + self.drops_by(DropCause::Aqm)
    }

    /// Mean number of waiting packets since `before` was copied, `time` ago. Bring both up to date first.
    pub fn queue_mean_since(&self, before: &Self, time: Duration) -> f64 {
        if time.is_zero() { 0.0 } else { (self.queue_ns - before.queue_ns) as f64 / time.0 as f64 }
    }

    /// Share of `time` spent serialising.
    pub fn utilisation(&self, time: Duration) -> f64 {
        if time.is_zero() { 0.0 } else { self.served.busy.0 as f64 / time.0 as f64 }
    }
}
