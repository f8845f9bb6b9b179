//! Policing: a token bucket per flow.
//!
//! Source: TIA-1039, field BT: a flow may exceed GR + AR for the burst time 2^(-BT-1) s; beyond that its
//! packets are dropped. The bucket fills at the rate and holds rate * 2^(-BT-1) s; a packet that finds too
//! little in it is beyond.
//! Deviations: the bucket fills 1 % faster, because the clocks of sender and router differ and rates are
//! rounded; and it holds at least two packets of 1500 B, since with BT = 15 (15 us) it would hold less than
//! one.

use bentpipe_base::{Duration, Instant, Size};

/// Burst time for BT = 0.
const LONGEST_BURST: Duration = Duration::from_millis(500);
/// Least content of a full bucket.
const LEAST: Size = Size(3000);
/// Tokens per bit: the rate in bit/s times nanoseconds.
const PER_BIT: u128 = 1_000_000_000;

/// A token bucket; full at first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// Billionths of a bit.
    tokens: u128,
    /// When they were counted.
    at: Option<Instant>,
}

impl Bucket {
    /// Takes a packet's tokens; false if there are too few. `rate` is in bit/s; `exponent` is BT.
    pub(crate) fn admits(&mut self, now: Instant, rate: u64, exponent: u8, size: Size) -> bool {
        let filled = u128::from(rate) * 101 / 100;
        let burst = LONGEST_BURST.0 >> exponent.min(15);
        let depth = (filled * u128::from(burst)).max(tokens_of(LEAST));
        let gained = self.at.map_or(depth, |at| filled.saturating_mul(u128::from(now.since(at).0)));
        self.tokens = self.tokens.saturating_add(gained).min(depth);
        self.at = Some(now);
        let needed = tokens_of(size);
        if needed > self.tokens {
            return false;
        }
        self.tokens -= needed;
        true
    }
}

fn tokens_of(size: Size) -> u128 {
    u128::from(size.bits()) * PER_BIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(us: u64) -> Instant {
        Instant(us * 1000)
    }

    /// How many packets of 1000 B pass, sent at `interval` for a second.
    fn passed(bucket: &mut Bucket, from: u64, interval: u64, exponent: u8) -> u64 {
        let times = (0..1_000_000 / interval).map(|i| at(from + i * interval));
        times.filter(|now| bucket.admits(*now, 8_000_000, exponent, Size(1000))).count() as u64
    }

    #[test]
    fn a_flow_at_its_rate_passes_for_ever() {
        let mut bucket = Bucket::default();
        let all: u64 = (0..100).map(|s| passed(&mut bucket, s * 1_000_000, 1000, 15)).sum();
        assert_eq!(all, 100_000);
    }

    #[test]
    fn what_exceeds_the_rate_passes_for_the_burst_time() {
        // 8 Mbit/s are 1000 packets per second; 2000 come, and half a second is allowed in advance
        let first = passed(&mut Bucket::default(), 0, 500, 0);
        assert!((1490..=1520).contains(&first), "{first}");
        let short = passed(&mut Bucket::default(), 0, 500, 4);
        assert!((1025..=1050).contains(&short), "{short}");
    }

    #[test]
    fn a_lower_rate_empties_the_bucket_to_its_depth() {
        let mut bucket = Bucket::default();
        assert!(bucket.admits(at(0), 80_000_000, 0, Size(1000)));
        let n = (0..1000).filter(|_| bucket.admits(at(1), 8_000_000, 4, Size(1000))).count();
        assert_eq!(n, 31); // 31.25 ms at 8.08 Mbit/s
    }

    #[test]
    fn two_packets_always_fit() {
        let mut bucket = Bucket::default();
        let admitted = [(); 3].map(|()| bucket.admits(at(5), 0, 15, Size(1500)));
        assert_eq!(admitted, [true, true, false]);
    }

    proptest! {
        #[test]
        fn never_more_than_burst_and_rate(
            rate in 1000u64..1 << 32, exponent in 0u8..16,
            packets in proptest::collection::vec((0u64..5_000_000, 40u64..1500), 1..200),
        ) {
            let mut bucket = Bucket::default();
            let (mut now, mut bits) = (0, 0);
            for (gap, size) in packets {
                now += gap;
                if bucket.admits(Instant(now), rate, exponent, Size(size)) {
                    bits += size * 8;
                }
            }
            let seconds = now as f64 / 1e9 + 0.5 / f64::from(1u32 << exponent);
            prop_assert!(bits as f64 <= rate as f64 * 1.01 * seconds + 24_000.0);
        }
    }
}
