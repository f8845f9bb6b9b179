//! Computes one number from the runs of a check.

use crate::fade;
use crate::observed::{BOTTLENECK, RunResult};
use crate::reading::{NumberFormat, Reading};
use bentpipe_base::trace::DropCause;

/// How a number is computed from the runs of a check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Mean over the runs.
    Mean(Reading),
    /// Median of the runs.
    Median(Reading),
    /// Maximum of the runs; NaN if any is NaN.
    Maximum(Reading),
    /// The first half of the runs is compared with the second, run by run: mean of the ratios.
    Ratio(Reading),
    /// Share of packets that the bottleneck lost for this cause, over all runs.
    LostShare(DropCause),
    /// Packet error ratio divided by BER, over the bins of all runs whose expected packet error ratio is from
    /// `low` to `high`.
    ErrorsPerBit {
        /// Lowest expected packet error ratio.
        low: f64,
        /// Highest expected packet error ratio.
        high: f64,
        /// Use the BER of the side channel instead of the link's.
        measured: bool,
    },
    /// Utilisation of the bottleneck between the ends of two runs that are equal until the first one ends.
    BottleneckUtilisation,
}

impl Quantity {
    /// Mean goodput, B/s.
    pub const GOODPUT: Self = Self::metric("goodput");

    /// Mean of a metric of the report.
    pub const fn metric(name: &'static str) -> Self {
        Self::Mean(Reading::Metric(name))
    }

    /// The reading taken from each run; `None` if the runs are pooled.
    pub const fn reading(self) -> Option<Reading> {
        match self {
            Self::Mean(reading) | Self::Median(reading) | Self::Maximum(reading) | Self::Ratio(reading) => {
                Some(reading)
            }
            Self::LostShare(_) | Self::ErrorsPerBit { .. } | Self::BottleneckUtilisation => None,
        }
    }

    /// How the number is shown.
    pub fn number_format(self) -> NumberFormat {
        match self {
            Self::Ratio(_) => NumberFormat::Ratio,
            Self::LostShare(_) => NumberFormat::Share,
            Self::ErrorsPerBit { .. } => NumberFormat::Scientific,
            _ => self.reading().map_or(NumberFormat::Utilisation, Reading::number_format),
        }
    }

    /// Runs needed for one value.
    pub const fn runs_per_value(self) -> usize {
        if matches!(self, Self::BottleneckUtilisation | Self::Ratio(_)) { 2 } else { 1 }
    }

    /// One value for each run or pair of runs, or a single one if they are pooled.
    pub fn values(self, runs: &[&RunResult]) -> Vec<f64> {
        match self {
            Self::Mean(reading) => runs.iter().map(|r| reading.value_in(r)).collect(),
            Self::Median(reading) => vec![median(runs.iter().map(|r| reading.value_in(r)).collect())],
            Self::Maximum(reading) => {
                let most = |most: f64, v: f64| if v.is_nan() || v > most { v } else { most };
                vec![runs.iter().map(|r| reading.value_in(r)).fold(f64::NEG_INFINITY, most)]
            }
            Self::Ratio(reading) => {
                let (first, second) = runs.split_at(runs.len() / 2);
                first.iter().zip(second).map(|(a, b)| reading.value_in(a) / reading.value_in(b)).collect()
            }
            Self::LostShare(cause) => {
                let drops = format!("drops[{BOTTLENECK}].{}", cause.key());
                let lost: f64 = runs.iter().map(|run| run.metric(&drops)).sum();
                vec![lost / packets(runs) as f64]
            }
            Self::ErrorsPerBit { low, high, measured } => {
                vec![fade::errors_per_bit(runs, low, high, measured)]
            }
            Self::BottleneckUtilisation => {
                let time = |run: &RunResult| run.metric("simulated");
                let busy = |run: &RunResult| run.metric("utilisation[bottleneck]") * time(run);
                let between = |w: &[&RunResult]| (busy(w[1]) - busy(w[0])) / (time(w[1]) - time(w[0]));
                runs.chunks_exact(2).map(between).collect()
            }
        }
    }
}

/// The median; NaN sorts as the largest value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Packets that the bottleneck sent, over all runs.
pub(crate) fn packets(runs: &[&RunResult]) -> u64 {
    runs.iter().map(|run| run.metric("packets[bottleneck]") as u64).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bentpipe_report::{FlowKind, FlowReport, LinkReport, Report, TcpReport};

    fn with_flow(goodput: f64, finished_s: Option<f64>) -> RunResult {
        let kind = FlowKind::from(TcpReport { finished_s, ..TcpReport::default() });
        let flow = FlowReport { goodput_bps: 8.0 * goodput, kind, ..FlowReport::default() };
        RunResult::of(Report { flows: vec![flow], ..Report::default() })
    }

    fn with_link(link: LinkReport, simulated_s: f64) -> RunResult {
        let links = vec![LinkReport { name: BOTTLENECK.into(), ..link }];
        RunResult::of(Report { links, simulated_s, ..Report::default() })
    }

    pub(crate) fn with_goodput(goodput: f64) -> RunResult {
        with_flow(goodput, None)
    }

    pub(crate) fn with_losses(packets: u64, lost: u64) -> RunResult {
        let drops = [("packet_loss".to_owned(), lost)].into();
        with_link(LinkReport { packets, drops, ..LinkReport::default() }, 1.0)
    }

    #[test]
    fn halves_are_compared_run_by_run() {
        let runs = [10.0, 30.0, 20.0, 40.0].map(with_goodput);
        let runs: Vec<&RunResult> = runs.iter().collect();
        assert_eq!(Quantity::Ratio(Reading::Metric("goodput")).values(&runs), [0.5, 0.75]);
    }

    #[test]
    fn the_middle_and_the_largest() {
        let runs = [10.0, 30.0, 20.0, 70.0].map(with_goodput);
        let runs: Vec<&RunResult> = runs.iter().collect();
        assert_eq!(Quantity::Median(Reading::Metric("goodput")).values(&runs), [25.0]);
        assert_eq!(Quantity::Median(Reading::Metric("goodput")).values(&runs[1..]), [30.0]);
        assert_eq!(Quantity::Maximum(Reading::Metric("goodput")).values(&runs), [70.0]);
        let most = Quantity::Maximum(Reading::Metric("finished"));
        assert!(most.values(&[&with_flow(0.0, Some(1.0)), &with_flow(0.0, None)])[0].is_nan());
    }

    #[test]
    fn counts_are_pooled_and_busy_time_is_a_difference() {
        let runs = [with_losses(100_000, 1000), with_losses(300_000, 3100)];
        let pooled = Quantity::LostShare(DropCause::PacketLoss).values(&[&runs[0], &runs[1]]);
        assert!((pooled[0] - 0.01025).abs() < 1e-12 && pooled.len() == 1);
        let run = |busy_s: f64, simulated_s| {
            let link = LinkReport { utilisation: busy_s / simulated_s, ..LinkReport::default() };
            with_link(link, simulated_s)
        };
        let busy = Quantity::BottleneckUtilisation.values(&[&run(90.0, 100.0), &run(490.0, 500.0)]);
        assert!((busy[0] - 1.0).abs() < 1e-12);
    }
}
