//! The window that the sender is shown.
//!
//! Source: TCP-SuperCharger (SC), where VWnd = a + R D. With the hop's rate configured (open mode) it is a
//! constant: the share of the rate times the round trip, plus a small target that keeps the hop busy. So a
//! sender stays limited by the window, its congestion window freezes, and nobody overruns the hop: loss on it
//! is never congestion. A large advertised window is capped in the same way. Where a receiver that holds a
//! whole bandwidth-delay product meets losses, the window is 1.25 products larger: it stands still for a
//! round trip per loss, and meanwhile the gateway must have something to send. Deviation: without a rate the
//! product is what was delivered in the best of the shortest round trips. The window is twice that and 64
//! KiB: it opens as fast as slow start does; and 1.25 times that once it has not grown by a quarter for three
//! round trips (the pipe is full, as in BBR), so a queue in the hop stays small. The shortest is that of the
//! whole connection: it would grow with a queue that stays.
//!
//! While the sender is judged it is two products (`model.rs`).
//!
//! The right edge never moves left (RFC 9293, section 3.8.6). Fields are rounded up to the shift's grain, and
//! the edge that was told is what counts.

use super::model::WINDOW;
use bentpipe_base::{Duration, Instant};

/// Queue that is aimed at, as time at the rate: 0.1 MB at 24 Mbit/s.
const TARGET: Duration = Duration::from_millis(33);
/// Round trips without growth after which the hop is taken to be full.
const FULL: u8 = 3;
/// Two segments: less is no window.
const LEAST: u64 = 3000;

/// The path as one flow has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    /// Bytes of payload per second that the flow may use, where a rate is configured.
    pub(crate) rate: Option<f64>,
    /// From the sender through the hop and back.
    pub(crate) trip: Duration,
    /// Loss was seen lately on the hop.
    pub(crate) lossy: bool,
    /// Its sender is being judged (`model.rs`).
    pub(crate) judged: bool,
}

impl Path {
    /// Bandwidth-delay product, where the rate is known.
    pub(crate) fn product(&self) -> Option<u64> {
        self.rate.map(|r| (r * self.trip.as_secs_f64()) as u64)
    }
}

/// What the sender was told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    /// Acknowledged so far, as the sender knows.
    pub(crate) ack: u64,
    /// The right edge.
    pub(crate) edge: u64,
    /// Bytes delivered in the best round trip, and the present one: since when and from where.
    best: u64,
    round: Instant,
    from: u64,
    /// Round trips in which it has not grown by a quarter, and what it was before.
    flat: u8,
    grown: u64,
}

impl Shown {
    /// Counts rounds of delivery.
    pub(crate) fn delivered(&mut self, now: Instant, una: u64, trip: Duration) {
        if now.since(self.round) >= trip {
            let time = now.since(self.round).as_secs_f64();
            let delivered = (una - self.from.min(una)) as f64 * trip.as_secs_f64() / time.max(1e-6);
            self.best = self.best.max(delivered as u64);
            if self.best >= self.grown + self.grown / 4 {
                (self.grown, self.flat) = (self.best, 0);
            } else {
                self.flat = self.flat.saturating_add(1);
            }
            (self.round, self.from) = (now, una);
        }
    }

    /// The window without a rate.
    const fn by_delivery(&self) -> u64 {
        self.best + if self.flat < FULL { self.best } else { self.best / 4 } + 65_536
    }

    /// The window to show.
    pub(crate) fn window(&self, path: &Path, largest: u64) -> u64 {
        let Some((rate, product)) = path.rate.zip(path.product()) else { return self.by_delivery() };
        let target = (rate * TARGET.as_secs_f64()) as u64;
        let reserve = if path.lossy && largest >= product { product + product / 4 } else { 0 };
        let judged = if path.judged { product * (WINDOW - 1) } else { 0 };
        (product + (target + reserve).max(judged)).max(LEAST)
    }

    /// How far beyond the receiver's own window may be on the way.
    pub(crate) fn room(&self, path: &Path) -> u64 {
        match path.product() {
            Some(product) => product + product / 4 + LEAST,
            None => self.by_delivery(),
        }
    }

    /// The header's field for an edge at `wished`, when `ack` is what it says; notes both. `shift` is the
    /// sender's.
    pub(crate) fn field(&mut self, ack: u64, wished: u64, shift: u8) -> u16 {
        self.ack = self.ack.max(ack);
        let window = wished.max(self.edge).saturating_sub(self.ack);
        let field = window.div_ceil(1 << shift).min(u64::from(u16::MAX));
        // what a field cannot say was not told: a later one, with the ACK further right, says at least this
        // much
        self.edge = self.edge.max(self.ack + (field << shift));
        field as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_window_is_the_product_and_a_little() {
        let shown = Shown::default();
        let mut path = Path { rate: Some(3e6), trip: Duration::from_secs(1), lossy: false, judged: false };
        assert_eq!(shown.window(&path, 65_535), 3_099_000);
        path.judged = true;
        assert_eq!(shown.window(&path, 65_535), 6_000_000, "flight that a sender gives up must be seen");
        path.judged = false;
        path.lossy = true;
        assert_eq!(shown.window(&path, 65_535), 3_099_000, "an old receiver keeps less than the path holds");
        assert_eq!(shown.window(&path, 8 << 20), 3_099_000 + 3_750_000);
    }

    proptest! {
        /// Whatever is wished, what was told once stays true.
        #[test]
        fn the_edge_never_moves_left(shift in 0u8..15, steps in proptest::collection::vec((0u64..100_000, 0u64..10_000_000), 1..50)) {
            let mut shown = Shown::default();
            let (mut ack, mut told) = (1, 0);
            for (progress, window) in steps {
                ack += progress;
                let field = shown.field(ack, ack + window, shift);
                let edge = ack + (u64::from(field) << shift);
                prop_assert!(edge >= told, "{edge} after {told}");
                prop_assert_eq!(edge.max(told), shown.edge);
                told = edge;
            }
        }
    }
}
