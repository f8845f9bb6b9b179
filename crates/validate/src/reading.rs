//! Numbers taken from one run.

use crate::fade;
use crate::observed::{BOTTLENECK, RunResult};
use bentpipe_report::Unit;
use bentpipe_report::metric::{Aggregate, Metric};

/// A number taken from one run. Time series are the bottleneck's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// A metric of the report; rates in B/s, times in s.
    Metric(&'static str),
    /// Data segments sent before the fallback by the first flow whose congestion control fell back.
    SegmentsBeforeFallback,
    /// Number of flows whose congestion control fell back.
    Fallbacks,
    /// Share of losses that are followed by another within this many seconds, about a round trip. Needs a
    /// recorded run.
    MultipleLosses(f64),
    /// Mean number of consecutive lost packets. Needs a recorded run.
    MeanLossBurst,
    /// BER at the end. Needs a recorded run.
    Ber,
    /// Shortest one-way delay, s. Needs a recorded run.
    ShortestDelay,
    /// Longest one-way delay, s. Needs a recorded run.
    LongestDelay,
    /// Share of intervals whose BER is lower than that of the next smaller fade. From instruments.
    FadeOutOfOrder,
    /// Rank correlation of fade and measured BER. From instruments.
    FadeRank,
    /// Share of samples in which the attenuation exceeds this many dB. Needs a recorded run.
    ShareAboveFade(f64),
}

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    /// B/s, shown in kB/s.
    Goodput,
    /// s.
    Seconds,
    /// Packets, as an integer.
    Packets,
    /// Packets, a mean.
    MeanPackets,
    /// A share, shown in %.
    Share,
    /// A ratio.
    Ratio,
    /// A share of time near 1, shown exactly.
    Utilisation,
    /// A small number that spans many decades.
    Scientific,
}

/// How a metric is shown.
fn of_metric(metric: &str) -> NumberFormat {
    let Ok(metric) = Metric::parse(metric) else { return NumberFormat::Scientific };
    match metric.unit() {
        Unit::Rate => NumberFormat::Goodput,
        Unit::Seconds | Unit::Milliseconds => NumberFormat::Seconds,
        Unit::Ratio => NumberFormat::Share,
        _ if metric.aggregate() == Aggregate::Mean => NumberFormat::MeanPackets,
        _ => NumberFormat::Packets,
    }
}

impl Reading {
    /// How it is shown.
    pub fn number_format(self) -> NumberFormat {
        match self {
            Self::Metric(name) => of_metric(name),
            Self::FadeRank | Self::FadeOutOfOrder => NumberFormat::Ratio,
            Self::ShortestDelay | Self::LongestDelay => NumberFormat::Seconds,
            Self::SegmentsBeforeFallback | Self::Fallbacks => NumberFormat::Packets,
            Self::MeanLossBurst => NumberFormat::MeanPackets,
            Self::MultipleLosses(_) | Self::ShareAboveFade(_) => NumberFormat::Share,
            Self::Ber => NumberFormat::Scientific,
        }
    }

    /// Its value in `run`; NaN if the run does not have it.
    pub fn value_in(self, run: &RunResult) -> f64 {
        match self {
            Self::Metric(name) => run.metric(name),
            Self::SegmentsBeforeFallback => run.fallbacks().next().map_or(f64::NAN, |n| n as f64),
            Self::Fallbacks => run.fallbacks().count() as f64,
            Self::MultipleLosses(rtt_s) => multiple_losses(run, rtt_s),
            Self::MeanLossBurst => loss_run(run),
            Self::Ber => series(run, "ber").last().copied().unwrap_or(f64::NAN),
            Self::ShortestDelay => extreme(series(run, "one_way_ms"), f64::min) / 1e3,
            Self::LongestDelay => extreme(series(run, "one_way_ms"), f64::max) / 1e3,
            Self::FadeOutOfOrder => fade::out_of_order(run),
            Self::FadeRank => fade::rank_correlation(run),
            Self::ShareAboveFade(db) => {
                let fades = series(run, "fade_db");
                fades.iter().filter(|fade_db| **fade_db > db).count() as f64 / fades.len() as f64
            }
        }
    }
}

/// A column of the bottleneck's time series; empty if it was not recorded.
pub(crate) fn series<'a>(run: &'a RunResult, column: &str) -> &'a [f64] {
    let links = run.record.as_ref().map_or(&[][..], |r| &r.links);
    links.iter().find(|s| s.name == BOTTLENECK).and_then(|s| s.column(column)).unwrap_or(&[])
}

/// The smallest or largest value; NaN if there are none.
fn extreme<'a>(values: impl IntoIterator<Item = &'a f64>, choose: fn(f64, f64) -> f64) -> f64 {
    values.into_iter().copied().fold(f64::NAN, choose)
}

/// Puts losses within `rtt_s` of the first into one group; the share of groups with more than one loss.
fn multiple_losses(run: &RunResult, rtt_s: f64) -> f64 {
    let (mut windows, mut multiple) = (0_u32, 0_u32);
    let (mut first, mut inside) = (f64::NEG_INFINITY, 0_u32);
    for drop in &run.drops {
        if drop.time_s > first + rtt_s {
            (first, inside) = (drop.time_s, 1);
            windows += 1;
        } else {
            inside += 1;
            multiple += u32::from(inside == 2);
        }
    }
    f64::from(multiple) / f64::from(windows)
}

/// Mean number of packets lost in a row, for one flow without retransmissions.
fn loss_run(run: &RunResult) -> f64 {
    let mut lost: Vec<_> = run.drops.iter().collect();
    lost.sort_by_key(|d| d.offset);
    let breaks = lost.windows(2).filter(|w| w[1].offset != w[0].next_offset).count();
    if lost.is_empty() { f64::NAN } else { lost.len() as f64 / (breaks + 1) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Dropped;
    use bentpipe_base::trace::DropCause;

    fn dropped(time_s: f64, place: u64) -> Dropped {
        Dropped { time_s, cause: DropCause::Burst, offset: place, next_offset: place + 100 }
    }

    #[test]
    fn losses_are_put_together() {
        let drops = vec![dropped(1.0, 0), dropped(1.5, 200), dropped(1.59, 300), dropped(2.0, 600)];
        let run = RunResult { drops, ..RunResult::default() };
        // 1.0 with 1.5 and 1.59; 2.0 alone
        assert!((Reading::MultipleLosses(0.6).value_in(&run) - 0.5).abs() < 1e-12);
        // 0; 200 and 300; 600
        assert!((Reading::MeanLossBurst.value_in(&run) - 4.0 / 3.0).abs() < 1e-12);
        assert!(Reading::MeanLossBurst.value_in(&RunResult::default()).is_nan());
    }
}
