//! The window advertised to the sender.
//!
//! Source: TCP-SuperCharger (SC), where VWnd = a + R D. With the hop's rate configured (open mode) it is
//! constant: the share of the rate times the RTT, plus a small queue target that keeps the hop busy. So the
//! sender stays limited by the advertised window, its cwnd does not grow, and the hop is never overrun: loss
//! on it is never congestion. A large receiver window is capped in the same way. If the receiver can hold a
//! whole bandwidth-delay product and there are losses, the window is 1.25 products larger: each loss keeps it
//! from moving for an RTT, and the gateway must have data to send meanwhile. Deviation: without a rate the
//! product is the largest amount delivered in one minimum RTT. The window is twice that plus 64 KiB, so it
//! opens as fast as slow start. Once that amount has not grown by a quarter for three round trips (the pipe
//! is full, as in BBR), the window is 1.25 times the amount plus 64 KiB, so a queue in the hop stays small.
//! The minimum RTT is that of the whole connection, since a recent one would grow with a standing queue.
//!
//! While the sender is being judged the window is two products (`model.rs`).
//!
//! The right edge never moves left (RFC 9293, section 3.8.6). Window fields are rounded up to the granularity
//! of the shift, so the edge that is noted is the one that the sender computes from the field.

use super::model::WINDOW;
use bentpipe_base::{Duration, Instant};

/// Target queue, as time at the rate: 0.1 MB at 24 Mbit/s.
const TARGET: Duration = Duration::from_millis(33);
/// Round trips without growth after which the hop is considered full.
const FULL: u8 = 3;
/// Smallest window: two segments.
const LEAST: u64 = 3000;

/// The path of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    /// Payload bytes per second that the flow may use; none if no rate is configured.
    pub(crate) rate: Option<f64>,
    /// RTT from the sender over the hop and back.
    pub(crate) rtt: Duration,
    /// The hop has lost packets recently.
    pub(crate) lossy: bool,
    /// The sender is being judged (`model.rs`).
    pub(crate) judged: bool,
}

impl Path {
    /// Bandwidth-delay product; none if the rate is unknown.
    pub(crate) fn bdp(&self) -> Option<u64> {
        self.rate.map(|r| (r * self.rtt.as_secs_f64()) as u64)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AdvertisedWindow {
    /// Highest acknowledgment sent to the sender.
    pub(crate) ack: u64,
    pub(crate) edge: u64,
    /// Most bytes delivered in a round trip; start time and position of the current round.
    best: u64,
    round: Instant,
    from: u64,
    /// Round trips in which `best` has not grown by a quarter, and its value before.
    flat: u8,
    grown: u64,
}

impl AdvertisedWindow {
    /// Measures the bytes delivered per round trip.
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

    const fn by_delivery(&self) -> u64 {
        self.best + if self.flat < FULL { self.best } else { self.best / 4 } + 65_536
    }

    pub(crate) fn window(&self, path: &Path, largest: u64) -> u64 {
        let Some((rate, product)) = path.rate.zip(path.bdp()) else { return self.by_delivery() };
        let target = (rate * TARGET.as_secs_f64()) as u64;
        let reserve = if path.lossy && largest >= product { product + product / 4 } else { 0 };
        let judged = if path.judged { product * (WINDOW - 1) } else { 0 };
        (product + (target + reserve).max(judged)).max(LEAST)
    }

    /// How far beyond the receiver's own window data may be in flight.
    pub(crate) fn room(&self, path: &Path) -> u64 {
        match path.bdp() {
            Some(product) => product + product / 4 + LEAST,
            None => self.by_delivery(),
        }
    }

    /// Returns the window field for an edge at `wished` in a packet that acknowledges `ack`, and notes both.
    /// `shift` is the one that the sender applies.
    pub(crate) fn field(&mut self, ack: u64, wished: u64, shift: u8) -> u16 {
        self.ack = self.ack.max(ack);
        let window = wished.max(self.edge).saturating_sub(self.ack);
        let field = window.div_ceil(1 << shift).min(u64::from(u16::MAX));
        // an edge too far for the field was not advertised; later fields, with a higher ACK, can cover it
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
        let shown = AdvertisedWindow::default();
        let mut path = Path { rate: Some(3e6), rtt: Duration::from_secs(1), lossy: false, judged: false };
        assert_eq!(shown.window(&path, 65_535), 3_099_000);
        path.judged = true;
        assert_eq!(shown.window(&path, 65_535), 6_000_000, "flight that a sender gives up must be seen");
        path.judged = false;
        path.lossy = true;
        assert_eq!(shown.window(&path, 65_535), 3_099_000, "an old receiver keeps less than the path holds");
        assert_eq!(shown.window(&path, 8 << 20), 3_099_000 + 3_750_000);
    }

    proptest! {
        /// Whatever edge is wished, an advertised edge is never taken back.
        #[test]
        fn the_edge_never_moves_left(shift in 0u8..15, steps in proptest::collection::vec((0u64..100_000, 0u64..10_000_000), 1..50)) {
            let mut shown = AdvertisedWindow::default();
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
