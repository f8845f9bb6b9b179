//! How far the hop reorders packets.
//!
//! Source: RACK's reordering window (RFC 8985, section 6.2), in terms of sending time: a packet is missing
//! once another one has arrived that was sent a window later. The window is 0 until a packet that was
//! declared lost arrives too early to be its retransmission. Then it is 5/4 of the time by which that packet
//! was overtaken, as the maximum of the last minute.
//!
//! Deviations: RACK learns from DSACK, which old receivers do not send. The window is at most 40 ms and at
//! most a quarter of the RTT, so that repairs stay prompt.

use bentpipe_base::{Duration, Instant};

const MOST: Duration = Duration::from_millis(40);
/// After so long without reordering the window is 0 again.
const MEMORY: Duration = Duration::from_secs(60);

/// The order of the hop's packets, as far as known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reordering {
    /// Sending time of the latest sent packet that has arrived.
    latest: Instant,
    window: Duration,
    seen: Option<Instant>,
}

impl Reordering {
    /// A packet sent at `sent` has arrived.
    pub(super) fn arrived(&mut self, sent: Instant) {
        self.latest = self.latest.max(sent);
    }

    /// A packet sent at `sent` and declared lost has arrived, in a flow with this RTT.
    pub(super) fn late(&mut self, now: Instant, sent: Instant, trip: Duration) {
        let overtaken = self.latest.since(sent);
        let window = (overtaken + overtaken / 4).min(MOST).min(trip / 4);
        self.window = self.window(now).max(window);
        self.seen = Some(now);
    }

    pub(super) fn window(&self, now: Instant) -> Duration {
        if self.seen.is_some_and(|seen| now.since(seen) < MEMORY) { self.window } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_window_is_what_was_seen_and_forgotten() {
        let mut of = Reordering::default();
        let trip = Duration::from_secs(1);
        of.arrived(ms(108));
        assert_eq!(of.window(ms(1100)), Duration::ZERO);
        of.late(ms(1100), ms(100), trip);
        assert_eq!(of.window(ms(1100)), Duration::from_millis(10));
        of.late(ms(1200), ms(104), trip);
        assert_eq!(of.window(ms(1200)), Duration::from_millis(10), "the most of the last minute");
        of.late(ms(1300), Instant::ZERO, Duration::from_millis(100));
        assert_eq!(of.window(ms(1300)), Duration::from_millis(25), "a quarter of the round trip");
        assert_eq!(of.window(ms(61_300)), Duration::ZERO);
    }
}
