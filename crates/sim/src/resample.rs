//! Resamples series to the time axis of another record.

use crate::record::{Merge, Record, merge_of};

impl Record {
    /// Adds the flows of `other`, which was sampled at other times. States take the last value in an
    /// interval, counts are summed, everything else is averaged with the time as weight. Counts after the
    /// last interval are added to it, so none is lost.
    pub fn take_flows(&mut self, other: &Self) {
        for mut flow in other.flows.iter().cloned() {
            for column in &mut flow.columns {
                column.values = resampled(merge_of(column.key), &other.time_s, &column.values, &self.time_s);
            }
            self.flows.push(flow);
        }
    }
}

/// Resamples `values` of intervals that end at `ends` to intervals that end at `wanted`.
fn resampled(rule: Merge, ends: &[f64], values: &[f64], wanted: &[f64]) -> Vec<f64> {
    let mut first = 0;
    let mut begin = 0.0;
    let mut out = Vec::with_capacity(wanted.len());
    for (i, end) in wanted.iter().enumerate() {
        let end = if i + 1 == wanted.len() { f64::INFINITY } else { *end };
        while ends.get(first).is_some_and(|e| *e <= begin) {
            first += 1;
        }
        out.push(value(rule, &Span { ends, values, first, begin, end }));
        begin = end;
    }
    out
}

/// Samples for one interval, from the first that ends after its start.
struct Span<'a> {
    ends: &'a [f64],
    values: &'a [f64],
    first: usize,
    begin: f64,
    end: f64,
}

fn value(rule: Merge, span: &Span<'_>) -> f64 {
    let known = |j: usize| span.values.get(j).copied().filter(|v| !v.is_nan());
    let within = (span.first..span.ends.len()).take_while(|j| span.ends[*j] <= span.end);
    // between two samples a state keeps its value and counts are zero, if there was a sample before
    let held = || known(span.first).and_then(|_| span.first.checked_sub(1).and_then(known));
    match rule {
        Merge::Last => within.filter_map(known).last().or_else(held),
        Merge::Sum => {
            within.filter_map(known).reduce(|a, b| a + b).or_else(|| known(span.first).map(|_| 0.0))
        }
        Merge::Max => within.filter_map(known).reduce(f64::max).or_else(held),
        Merge::Mean => mean(span),
    }
    .unwrap_or(f64::NAN)
}

fn mean(span: &Span<'_>) -> Option<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    let mut begin = span.first.checked_sub(1).map_or(0.0, |j| span.ends[j]);
    for (end, value) in span.ends.iter().zip(span.values).skip(span.first) {
        let time = end.min(span.end) - begin.max(span.begin);
        if time <= 0.0 {
            break;
        }
        if !value.is_nan() {
            sum += value * time;
            weight += time;
        }
        begin = *end;
    }
    (weight > 0.0).then(|| sum / weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;

    fn same(a: &[f64], b: &[f64]) -> bool {
        let close = |(a, b): (&f64, &f64)| (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-9;
        a.len() == b.len() && a.iter().zip(b).all(close)
    }

    #[test]
    fn fine_samples_on_a_coarse_axis() {
        let ends = [0.1, 0.2, 0.3, 0.4];
        let values = [1.0, 3.0, NAN, 5.0];
        let coarse = [0.2, 0.4];
        let of = |rule| resampled(rule, &ends, &values, &coarse);
        assert!(same(&of(Merge::Mean), &[2.0, 5.0]));
        assert!(same(&of(Merge::Sum), &[4.0, 5.0]));
        assert!(same(&of(Merge::Last), &[3.0, 5.0]));
    }

    #[test]
    fn coarse_samples_on_a_fine_axis() {
        let ends = [0.1, 0.2, 0.3];
        let values = [NAN, 2.0, 4.0];
        let fine = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3];
        let of = |rule| resampled(rule, &ends, &values, &fine);
        assert!(same(&of(Merge::Mean), &[NAN, NAN, 2.0, 2.0, 4.0, 4.0]));
        assert!(same(&of(Merge::Sum), &[NAN, NAN, 0.0, 2.0, 0.0, 4.0]));
        assert!(same(&of(Merge::Last), &[NAN, NAN, NAN, 2.0, 2.0, 4.0]));
    }

    #[test]
    fn rates_keep_their_bytes_and_counts_their_sum_on_any_axis() {
        let ends: Vec<f64> = (1..=37).map(|i| f64::from(i) * 0.1).collect();
        let values: Vec<f64> = (1..=37).map(f64::from).collect();
        for n in [1_usize, 2, 5, 36, 100, 999] {
            let axis: Vec<f64> = (1..=n).map(|i| 3.7 * i as f64 / n as f64).collect();
            let rates = resampled(Merge::Mean, &ends, &values, &axis);
            let bytes: f64 = rates.iter().sum::<f64>() * 3.7 / n as f64;
            let all: f64 = values.iter().sum();
            assert!((bytes - all * 0.1).abs() < 1e-6, "{n}: {bytes}");
            let counted: f64 = resampled(Merge::Sum, &ends, &values, &axis).iter().sum();
            assert!((counted - all).abs() < 1e-6, "{n}: {counted}");
        }
    }

    #[test]
    fn what_comes_after_the_last_interval_is_counted_in_it() {
        assert!(same(&resampled(Merge::Sum, &[1.0, 1.2], &[1.0, 2.0], &[0.5, 1.0]), &[0.0, 3.0]));
        assert!(resampled(Merge::Sum, &[1.0], &[1.0], &[]).is_empty());
    }
}
