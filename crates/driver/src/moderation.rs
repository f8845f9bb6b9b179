//! Real-time priority for light traffic, an ordinary thread for dense traffic.
//!
//! A real-time thread runs as soon as a super-packet arrives. It preempts the host that was about to send the
//! next packet, or to read, finds one packet, and pays two context switches for it. An ordinary thread runs
//! when it is scheduled and then finds all packets that have arrived meanwhile: where sender, gateway and
//! receiver share two processors, throughput is then 1.5 times as high. (Sleeping for 200 us between two
//! polls, as network cards moderate their interrupts, was tried instead, but with one connection a processor
//! is idle meanwhile.) So the priority is given up while more than [`DENSE`] passes. Below that rate nothing
//! waits.

use bentpipe_base::{Duration, Instant, Size};

/// Interval over which traffic is measured.
const WINDOW: Duration = Duration::from_millis(1);
/// Bytes per interval from which on traffic is dense: 2 Gbit/s.
const DENSE: Size = Size(250_000);
/// The dense phase ends this long after the last dense interval, since each change of priority costs a system
/// call.
const OVER: Duration = Duration::from_millis(10);

/// Recent traffic.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moderation {
    since: Instant,
    bytes: Size,
    /// End of the last dense interval, during a dense phase.
    dense: Option<Instant>,
}

impl Moderation {
    /// Returns whether traffic is dense; `bytes` is the total received.
    pub(crate) fn is_dense(&mut self, now: Instant, bytes: Size) -> bool {
        let passed = now.since(self.since);
        if passed >= WINDOW {
            // an interval of twice the length or more, because nothing arrived, is not dense
            let is_dense = bytes.0 - self.bytes.0 >= DENSE.0 && passed < WINDOW * 2;
            if is_dense {
                self.dense = Some(now);
            } else if self.dense.is_some_and(|at| now.since(at) >= OVER) {
                self.dense = None;
            }
            (self.since, self.bytes) = (now, bytes);
        }
        self.dense.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dense_traffic_is_dense() {
        let mut moderation = Moderation::default();
        let (mut now, mut bytes) = (Instant::ZERO, Size::ZERO);
        let mut carry = |each: u64, gap: u64, n: u32| {
            (0..n)
                .filter(|_| {
                    now += Duration::from_micros(gap);
                    bytes += Size(each);
                    moderation.is_dense(now, bytes)
                })
                .count()
        };
        // 1 Gbit/s of super-packets, and of small packets
        assert_eq!(carry(31_250, 250, 1000), 0);
        assert_eq!(carry(1500, 12, 10_000), 0);
        // 10 Gbit/s
        assert!(carry(31_250, 25, 1000) > 900);
        // a short gap does not end the dense phase, a longer one does
        assert_eq!(carry(31_250, 5000, 1), 1);
        assert_eq!(carry(31_250, 6000, 1), 0);
        assert_eq!(carry(100, 50, 100), 0);
    }
}
