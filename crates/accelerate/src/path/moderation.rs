//! Fewer wake-ups when much is to be carried, as network cards moderate their interrupts (the interrupt throttling of Intel's 82571 and its kin).
//!
//! A thread with real-time priority that sleeps until something can be read wakes for every super-packet, takes the processor from the host that was just about to send
//! the next one, and pays two changes of context for each. When more than [`DENSE`] passes it sleeps a little longer instead and then reads whatever has come: between
//! two turns at least [`PAUSE`] goes by. Below that rate nothing is delayed.

use bentpipe_base::{Duration, Instant, Size};

/// How long is counted before it is decided anew.
const WINDOW: Duration = Duration::from_millis(1);
/// Bytes in such a time from which on wake-ups are moderated: 2 Gbit/s.
const DENSE: Size = Size(250_000);
/// How long it sleeps then.
pub(super) const PAUSE: Duration = Duration::from_micros(200);

/// What passed lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moderation {
    since: Instant,
    bytes: Size,
    is_dense: bool,
}

impl Moderation {
    /// True when it is better to sleep for a while than to wait for the next packet, `bytes` having come in all.
    pub(super) fn is_due(&mut self, now: Instant, bytes: Size) -> bool {
        if now.since(self.since) >= WINDOW {
            // a window that lasted longer, since nothing came, asks for as much as one that did not
            self.is_dense = bytes.0 - self.bytes.0 >= DENSE.0 && now.since(self.since) < WINDOW * 2;
            (self.since, self.bytes) = (now, bytes);
        }
        self.is_dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dense_traffic_is_moderated() {
        let mut moderation = Moderation::default();
        let (mut now, mut bytes) = (Instant::ZERO, Size::ZERO);
        let mut carry = |each: u64, gap: u64, n: u32| {
            (0..n)
                .filter(|_| {
                    now += Duration::from_micros(gap);
                    bytes += Size(each);
                    moderation.is_due(now, bytes)
                })
                .count()
        };
        // 1 Gbit/s of super-packets, and of small packets
        assert_eq!(carry(31_250, 250, 1000), 0);
        assert_eq!(carry(1500, 12, 10_000), 0);
        // 10 Gbit/s
        assert!(carry(31_250, 25, 1000) > 900);
        // a pause ends it
        assert_eq!(carry(31_250, 5000, 1), 0);
        assert_eq!(carry(100, 50, 100), 0);
    }
}
