//! A histogram of durations with a fixed relative error and small memory.
//!
//! Buckets are logarithmic, 128 per octave, so a quantile is within 0.4 % of the exact value. Only the range
//! in use is stored; a flow whose RTT stays within one octave needs half a kilobyte. (`hdrhistogram` stores
//! its whole range, 20 KB and more per flow: too much for ten thousand flows.)

use crate::shift::Walk;
use crate::time::Duration;

const SUB_BITS: u32 = 7;

/// Counts of durations.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    base: u32,
    counts: Vec<u32>,
    total: u64,
    min: u64,
}

impl Histogram {
    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        let bucket = bucket_of(value.0);
        if self.total == 0 || value.0 < self.min {
            self.min = value.0;
        }
        self.total += 1;
        let index = bucket.wrapping_sub(self.base) as usize;
        match self.counts.get_mut(index) {
            Some(count) => *count = count.saturating_add(1),
            None => self.grow(bucket),
        }
    }

    /// Visits the counts.
    pub fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { base, counts, total, min } = self;
        walk.same(&(*base, counts.len(), *min));
        walk.count(total);
        if !walk.has_ended() {
            for count in counts {
                walk.count_u32(count);
            }
        }
    }

    fn grow(&mut self, bucket: u32) {
        if self.counts.is_empty() {
            self.base = bucket;
        }
        let below = self.base.saturating_sub(bucket);
        self.counts.splice(0..0, core::iter::repeat_n(0, below as usize));
        self.base -= below;
        let index = (bucket - self.base) as usize;
        self.counts.resize(self.counts.len().max(index + 1), 0);
        self.counts[index] += 1;
    }

    /// Number of values.
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// The smallest value, exact.
    pub fn min(&self) -> Option<Duration> {
        (self.total > 0).then_some(Duration(self.min))
    }

    /// Returns the `q` quantile, `q` in 0..=1.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = (self.total.checked_sub(1)? as f64 * q.clamp(0.0, 1.0)) as u64;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen > rank
        })?;
        Some(Duration(middle_of(self.base + bucket as u32).max(self.min)))
    }
}

const fn bucket_of(v: u64) -> u32 {
    if v < 1 << SUB_BITS {
        return v as u32;
    }
    let exp = v.ilog2();
    let sub = (v >> (exp - SUB_BITS)) as u32 & ((1 << SUB_BITS) - 1);
    ((exp - SUB_BITS + 1) << SUB_BITS) + sub
}

const fn middle_of(bucket: u32) -> u64 {
    let octave = bucket >> SUB_BITS;
    let sub = (bucket & ((1 << SUB_BITS) - 1)) as u64;
    if octave == 0 {
        return sub;
    }
    let shift = octave - 1;
    (((1 << SUB_BITS) + sub) << shift) + ((1u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_within_half_a_per_cent(mut values in proptest::collection::vec(1u64..10_000_000_000, 1..300), q in 0.0f64..1.0) {
            let mut h = Histogram::default();
            for v in &values {
                h.record(Duration(*v));
            }
            values.sort_unstable();
            let exact = values[((values.len() - 1) as f64 * q) as usize] as f64;
            let got = h.quantile(q).unwrap().0 as f64;
            prop_assert!((got - exact).abs() <= exact * 0.005 + 1.0, "{got} for {exact}");
            prop_assert_eq!(h.min().unwrap().0, values[0]);
        }
    }
}
