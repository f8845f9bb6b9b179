//! How often each packet is sent.
//!
//! Source: TCP-SuperCharger (SC) forwards beyond the receiver's window; so after a loss nearly a bandwidth-delay product of N packets is discarded and sent
//! again. With every packet sent k times the efficiency is (1/k) / (1 + p^k N): a second copy pays from p N = 1 on. The largest over k = 1..=4 is taken,
//! with a tenth in favour of what is in use. A reader that takes the share s of the rate leaves room for copies: min(s, 1/k) / (1 + p^k N s).
//! p is the hop's, from what arrived and what was found lost: the share lost of what was sent once, less a standard
//! deviation, so that a few early losses decide nothing; then brought into the range that the shares of what was sent k times allow (p^k of it is lost). Counts
//! are halved when they are large, and those of single sending also while it is not in use: so now and then it is tried again, and a hop that has become
//! clean is found. Copies follow 10 ms later: a short fade takes one of them.
//! Where the receiver keeps what is beyond a hole (its window is at least the product) one copy is enough, since only the loss itself is sent again; but
//! while the hop is not busy and a flow uses less than a third of its share a second one costs nobody anything, and spares its sender's slow start the delay of a repair. So it does from the
//! first packet of a flow on, for one product at most, where the hop holds 200 packets and is not known to be clean: a hole in the first rounds looks like a queue to Linux' HyStart, and ends
//! slow start at a fraction of the rate. Where other flows use the hop, they would pay for the copies.
//! A repair itself always goes twice: of a packet that was lost, not of what a receiver had no room for.

use crate::config::Copies;
use bentpipe_base::{Duration, Instant};

/// Time between copies.
pub(crate) const APART: Duration = Duration::from_millis(10);
/// Copies of a repair at least.
pub(crate) const REPAIR_COPIES: u8 = 2;
/// Most copies.
const MOST: usize = 4;
/// Packets after which counts are halved: some 20 s at 24 Mbit/s.
const MEMORY: f64 = 40_000.0;
/// Losses that make an estimate.
const ENOUGH: f64 = 3.0;
/// Losses that tell a share to a quarter.
const MANY: f64 = 20.0;
/// After this time without use counts of single sending are halved.
const AGE: Duration = Duration::from_secs(120);
/// Packets that a path holds whose starts are sent twice.
const LONG: f64 = 200.0;
/// Losses per round trip below which one copy is enough.
const LITTLE: f64 = 0.05;
/// How long a loss is recent.
const RECENT: Duration = Duration::from_secs(60);

/// What is known of the hop's losses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// Arrived and lost, by the number of copies in use.
    counts: [(f64, f64); MOST],
    last: Option<Instant>,
    /// When the counts of single sending were last true.
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

    /// So many that were counted as lost were only late.
    pub(crate) fn late(&mut self, k: u8, late: u32) {
        let lost = &mut self.counts[usize::from(k).clamp(1, MOST) - 1].1;
        *lost = (*lost - f64::from(late)).max(0.0);
    }

    /// A loss was seen lately.
    pub(crate) fn recent(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.since(last) < RECENT)
    }

    /// True when the path loses a packet per round trip, and more.
    pub(crate) fn many(&self, n: f64) -> bool {
        self.probability() * n > 1.0
    }

    /// Whether second copies pay in slow start: a packet is short beside the round trip, so that one more delays nobody, and the path is not known to lose less than a packet
    /// in two round trips, whatever the next one does.
    pub(crate) fn pay_at_start(&self, n: f64) -> bool {
        let (arrived, lost) = self.counts[0];
        n >= LONG && (lost + 1.0) / (arrived + lost + 1.0) * n >= 0.5
    }

    /// Share lost of what was sent once; 0 while there were too few losses to tell it well.
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

    /// How often to send each packet when now it is `k` times, the path holds `n` packets, and the receiver reads this share of its rate.
    pub(crate) fn copies(&self, rule: Copies, k: u8, n: f64, share: f64) -> u8 {
        if let Copies::Fixed(k) = rule {
            return k.clamp(1, MOST as u8);
        }
        let p = self.probability();
        // a slow reader leaves room for copies, but where next to nothing is lost they gain nothing
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

/// Share of the hop that carries what arrives for the first time.
fn efficiency(p: f64, k: u8, n: f64, share: f64) -> f64 {
    let all_lost = (0..k).fold(1.0, |q, _| q * p);
    share.min(1.0 / f64::from(k)) / (1.0 + all_lost * n * share)
}

/// The k-th root of a probability, by halving: the same on every platform.
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
