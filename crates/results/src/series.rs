//! Selection for plots: suitable units, quantities that vary, and the flows and links to show.

use bentpipe_plot::Axis;
use bentpipe_report::Report;
use bentpipe_sim::record::{Record, Series};

/// Maximum number of flows with a curve of their own.
pub(crate) const MAX_FLOWS: usize = 5;
/// Maximum number of link directions with plots of their own.
pub(crate) const MAX_LINKS: usize = 3;

/// Lower bound of plotted bit error rates: smaller ones have no effect in a run.
pub(crate) const MIN_BER: f64 = 1e-12;

/// A unit and its size in units of the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) size: f64,
}

const fn unit(name: &'static str, size: f64) -> Unit {
    Unit { name, size }
}

const RATES: [Unit; 4] = [unit("Gbit/s", 1e9), unit("Mbit/s", 1e6), unit("kbit/s", 1e3), unit("bit/s", 1.0)];
const BYTES: [Unit; 4] = [unit("GB", 1e9), unit("MB", 1e6), unit("kB", 1e3), unit("B", 1.0)];
const TIMES: [Unit; 3] = [unit("h", 3600.0), unit("min", 60.0), unit("s", 1.0)];

/// Returns the maximum of the values; 0 if there are none.
pub(crate) fn maximum(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max)
}

/// Returns the largest unit with which the maximum is at least two.
fn largest_unit(units: &[Unit], most: f64) -> Unit {
    let fits = units.iter().find(|u| most >= 2.0 * u.size);
    fits.or(units.last()).copied().unwrap_or(unit("", 1.0))
}

pub(crate) fn rate_unit(most: f64) -> Unit {
    largest_unit(&RATES, most)
}

pub(crate) fn byte_unit(most: f64) -> Unit {
    largest_unit(&BYTES, most)
}

/// Returns the unit of a time axis: seconds up to 20 minutes, minutes up to 12 hours, then hours.
pub(crate) fn time_unit(end_s: f64) -> Unit {
    match end_s {
        t if t > 12.0 * 3600.0 => TIMES[0],
        t if t > 1200.0 => TIMES[1],
        _ => TIMES[2],
    }
}

/// Returns the time axis of all plots of a run.
pub(crate) fn time_axis(end_s: f64) -> Axis {
    let unit = time_unit(end_s);
    Axis::linear(format!("time, {}", unit.name)).within(0.0, end_s / unit.size)
}

/// Returns the values of a column; empty if there is none.
pub(crate) fn column<'a>(series: &'a Series, key: &str) -> &'a [f64] {
    series.column(key).unwrap_or_default()
}

/// True if values differ by more than rounding errors.
pub(crate) fn varies(values: &[f64]) -> bool {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)));
    high - low > 1e-9 * high.abs().max(low.abs())
}

/// True if any value is above zero.
pub(crate) fn any_positive(values: &[f64]) -> bool {
    values.iter().any(|v| *v > 0.0)
}

/// Returns the flows with curves of their own: all if they are few, else those with the highest goodput.
pub(crate) fn busiest_flows(report: &Report, record: &Record, most: usize) -> Vec<usize> {
    let goodput = |i: usize| report.flows[i].goodput_bps;
    top_by_weight(record.flows.len().min(report.flows.len()), most, goodput)
}

/// Returns at most `most` link directions with plots: those with drops, changes or a utilisation above 20 %,
/// or only the busiest one if there are none.
pub(crate) fn links_to_plot(report: &Report, record: &Record, most: usize) -> Vec<usize> {
    let weight = |i: usize| {
        let (l, s) = (&report.links[i], &record.links[i]);
        let dropped = l.drops.values().any(|n| *n > 0);
        let changes = ["rate_bps", "one_way_ms", "ber", "fade_db"].iter().any(|k| varies(column(s, k)));
        f64::from(u8::from(dropped)) + f64::from(u8::from(changes)) + l.utilisation
    };
    let all = record.links.len().min(report.links.len());
    let worth = (0..all).filter(|i| weight(*i) > 0.2).count().clamp(1, most);
    top_by_weight(all, worth, weight)
}

/// Returns those of `all` items that have the `most` highest weights, in their order.
fn top_by_weight(all: usize, most: usize, weight: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..all).collect();
    chosen.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)));
    chosen.truncate(most);
    chosen.sort_unstable();
    chosen
}

/// Returns the q-quantile of the finite values; NaN if there are none.
pub(crate) fn quantile(values: &mut Vec<f64>, q: f64) -> f64 {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    let place = (values.len().saturating_sub(1) as f64 * q + 0.5) as usize;
    values.get(place).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_values() {
        assert_eq!(
            (rate_unit(9e6).name, rate_unit(1.5e6).name, rate_unit(0.0).name),
            ("Mbit/s", "kbit/s", "bit/s")
        );
        assert_eq!(
            (byte_unit(2e3).name, time_unit(900.0).name, time_unit(10_800.0).name),
            ("kB", "s", "min")
        );
    }

    #[test]
    fn a_flat_column_is_flat_whatever_its_gaps() {
        assert!(!varies(&[f64::NAN, 0.3, 0.1 + 0.2]) && !varies(&[]) && !varies(&[0.0, 0.0]));
        assert!(varies(&[0.0, 1e-9]) && varies(&[270.0, f64::NAN, 271.0]));
    }

    #[test]
    fn quantiles_ignore_gaps() {
        assert!((quantile(&mut vec![3.0, f64::NAN, 1.0, 2.0], 0.5) - 2.0).abs() < 1e-12);
        assert!(quantile(&mut vec![f64::NAN], 0.5).is_nan());
    }
}
