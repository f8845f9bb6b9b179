//! How many copies of each packet are sent.
//!
//! Source: TCP-SuperCharger (SC) forwards beyond the receiver's window, so after a loss nearly a
//! bandwidth-delay product of N packets is discarded and sent again. With k copies of every packet the
//! efficiency is (1/k) / (1 + p^k N): a second copy pays from p N = 1 on. The best k of 1..=4 is used, with a
//! bonus of a tenth for the current k. A reader that takes the share s of the rate leaves room for copies:
//! min(s, 1/k) / (1 + p^k N s).
//!
//! p is the loss rate of the hop: the share lost of packets sent once, less a standard deviation, so that a
//! few early losses decide nothing; then limited to the range that the loss rates of packets with k copies
//! allow (p^k of them are lost). Counts are halved when they are large. Those of single sending are also
//! halved while it is not in use, so it is tried again now and then, and a hop that has become clean is
//! noticed. Copies follow 10 ms later, so that a short fade hits only one of them.
//!
//! If the receiver keeps data beyond a hole (its window is at least the product) one copy is enough, since
//! only the loss itself is sent again. But while the hop is not busy and a flow uses less than a third of its
//! share, a second copy costs nobody anything and saves the sender's slow start the delay of a repair. The
//! same holds for the first product of a flow, if the hop holds 200 packets and is not known to be clean: a
//! hole in the first rounds looks like a queue to Linux' HyStart, which ends slow start at a fraction of the
//! rate. If other flows use the hop they would pay for the copies, so none are sent. A retransmission always
//! goes twice if the packet was lost, but not if the receiver had no room for it.

use crate::config::Copies;
use bentpipe_base::{Duration, Instant};

pub(crate) const APART: Duration = Duration::from_millis(10);
/// Least number of copies of a retransmission.
pub(crate) const REPAIR_COPIES: u8 = 2;
const MOST: usize = 4;
/// Number of packets at which counts are halved: some 20 s at 24 Mbit/s.
const MEMORY: f64 = 40_000.0;
/// Losses needed for an estimate.
const ENOUGH: f64 = 3.0;
/// Losses needed to know the loss rate to within a quarter.
const MANY: f64 = 20.0;
/// Counts of single sending are halved after this time without use.
const AGE: Duration = Duration::from_secs(120);
/// Bandwidth-delay product, in packets, from which on the start of a flow is sent twice.
const LONG: f64 = 200.0;
/// Losses per RTT below which one copy is enough.
const LITTLE: f64 = 0.05;
const RECENT: Duration = Duration::from_secs(60);

/// Loss statistics of the hop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// Packets arrived and lost, by the number of copies in use.
    counts: [(f64, f64); MOST],
    last: Option<Instant>,
    /// When the counts of single sending were last updated.
    single: Instant,
}

impl Losses {
    pub(crate) fn count(&mut self, now: Instant, k: u8, arrived: u32, lost: u32) {
        let counts = &mut self.counts[usize::from(k).clamp(1, MOST) - 1];
        counts.0 += f64::from(arrived);
        counts.1 += f64::from(lost);
        if counts.0 + counts.1 > MEMORY {
            *counts = (counts.0 / 2.0, counts.1 / 2.0);
        }
        let single = &mut self.counts[0];
        if k <= 1 {
            self.single = now;
        } else if now.since(self.single) >= AGE {
            *single = (single.0 / 2.0, single.1 / 2.0);
            self.single = now;
        }
        if lost > 0 {
            self.last = Some(now);
        }
    }

    /// Takes back losses that turned out to be late arrivals.
    pub(crate) fn late(&mut self, k: u8, late: u32) {
        let lost = &mut self.counts[usize::from(k).clamp(1, MOST) - 1].1;
        *lost = (*lost - f64::from(late)).max(0.0);
    }

    pub(crate) fn recent(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.since(last) < RECENT)
    }

    /// True if a path of `n` packets loses more than one packet per RTT.
    pub(crate) fn many(&self, n: f64) -> bool {
        self.probability() * n > 1.0
    }

    /// True if second copies pay in slow start: a packet is short compared with the RTT, so one more delays
    /// nobody, and the path may lose at least a packet in two round trips, by the counts so far and one more
    /// loss.
    pub(crate) fn pay_at_start(&self, n: f64) -> bool {
        let (arrived, lost) = self.counts[0];
        n >= LONG && (lost + 1.0) / (arrived + lost + 1.0) * n >= 0.5
    }

    /// Loss rate of packets sent once; 0 while there were too few losses for an estimate.
    pub(crate) fn share(&self) -> f64 {
        let (arrived, lost) = self.counts[0];
        if lost < MANY { 0.0 } else { lost / (arrived + lost) }
    }

    /// Probability that one copy is lost.
    fn probability(&self) -> f64 {
        let (arrived, lost) = self.counts[0];
        let mut p = if lost < ENOUGH { 0.0 } else { (lost - lost.sqrt()) / (arrived + lost) };
        for k in 2..=MOST as u8 {
            let (arrived, lost) = self.counts[usize::from(k) - 1];
            let n = arrived + lost;
            if n > 0.0 && p > 0.0 {
                let spread = 2.0 * lost.sqrt();
                let low = root(((lost - spread) / n).max(0.0), k);
                let high = root(((lost + spread + ENOUGH) / n).min(1.0), k);
                p = p.clamp(low, high);
            }
        }
        p
    }

    /// The number of copies to send. `k` is the current number, `n` the packets in the path, `share` the part
    /// of the rate that the reader takes.
    pub(crate) fn copies(&self, rule: Copies, k: u8, n: f64, share: f64) -> u8 {
        if let Copies::Fixed(k) = rule {
            return k.clamp(1, MOST as u8);
        }
        let p = self.probability();
        // copies for a slow reader are free, but with next to no losses they gain nothing
        if p * n * share < LITTLE {
            return 1;
        }
        let mut best = (k, efficiency(p, k, n, share) * 1.1);
        for other in 1..=MOST as u8 {
            let e = efficiency(p, other, n, share);
            if e > best.1 {
                best = (other, e);
            }
        }
        best.0
    }
}

/// Share of the hop's capacity used by packets that arrive for the first time.
fn efficiency(p: f64, k: u8, n: f64, share: f64) -> f64 {
    let all_lost = (0..k).fold(1.0, |q, _| q * p);
    share.min(1.0 / f64::from(k)) / (1.0 + all_lost * n * share)
}

/// The k-th root of a probability, by bisection: the same result on every platform.
fn root(q: f64, k: u8) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let mid = f64::midpoint(low, high);
        let power = (0..k).fold(1.0, |x, _| x * mid);
        if power < q { low = mid } else { high = mid }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(p: f64) -> Losses {
        let mut losses = Losses::default();
        losses.count(Instant::ZERO, 1, 10_000, (10_000.0 * p / (1.0 - p)) as u32);
        losses
    }

    /// At N = 2055: (1/k) / (1 + p^k N) is largest for k = 1 up to p N = 1, then for 2, then for 3.
    #[test]
    fn copies_are_sent_where_they_pay() {
        for (p, k) in [(0.0, 1), (3e-4, 1), (1e-3, 2), (1e-2, 2), (5e-2, 3)] {
            assert_eq!(with(p).copies(Copies::Auto, 1, 2055.0, 1.0), k, "at {p}");
        }
        assert_eq!(with(1e-2).copies(Copies::Auto, 1, 20.0, 1.0), 1, "a short path loses little");
        assert_eq!(with(0.0).copies(Copies::Fixed(2), 1, 1.0, 1.0), 2);
        assert!((efficiency(1e-3, 1, 2055.0, 1.0) - 0.327).abs() < 1e-3);
        assert!((efficiency(1e-3, 2, 2055.0, 1.0) - 0.499).abs() < 1e-3);
    }

    #[test]
    fn roots_are_roots() {
        for (p, k) in [(0.01, 1), (0.03, 2), (0.1, 3), (0.5, 4)] {
            let q = (0..k).fold(1.0, |x, _| x * p);
            assert!((root(q, k) / p - 1.0).abs() < 1e-6, "{p} {k}");
        }
    }
}
