//! Real-time priority when little passes, an ordinary thread when much does.
//!
//! A thread with real-time priority runs for each super-packet as soon as it comes. It takes the processor
//! from the host that was just about to send the next one, or from the one that was about to read, finds one
//! packet, and pays two changes of context for it. An ordinary thread is given the processor when its turn
//! comes and then finds all that has come meanwhile: where sender, gateway and receiver share two processors,
//! half as much again passes. (Sleeping for 200 us between two looks, as network cards moderate their
//! interrupts, was tried in its place: with one connection a processor idles meanwhile.) So the priority is
//! given up while more than [`DENSE`] passes. Below that rate nothing waits.

use bentpipe_base::{Duration, Instant, Size};

/// How long is counted before it is decided anew.
const WINDOW: Duration = Duration::from_millis(1);
/// Bytes in such a time from which on traffic is dense: 2 Gbit/s.
const DENSE: Size = Size(250_000);
/// How long after the last dense time it is over: two changes of priority cost a system call each.
const OVER: Duration = Duration::from_millis(10);

/// What passed lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moderation {
    since: Instant,
    bytes: Size,
    /// When the last dense time ended, while it counts.
    dense: Option<Instant>,
}

impl Moderation {
    /// Whether traffic is dense, `bytes` having come in all.
    pub(crate) fn is_dense(&mut self, now: Instant, bytes: Size) -> bool {
        let passed = now.since(self.since);
        if passed >= WINDOW {
            // a window that lasted longer, since nothing came, asks for as much as one that did not
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
        // a short gap does not end it, and a longer one does
        assert_eq!(carry(31_250, 5000, 1), 1);
        assert_eq!(carry(31_250, 6000, 1), 0);
        assert_eq!(carry(100, 50, 100), 0);
    }
}
