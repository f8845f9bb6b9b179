//! From the runs of a check to one number.

use crate::fade;
use crate::observed::Observed;
use crate::reading::{Reading, Unit};
use bentpipe_base::trace::DropCause;

/// How the runs of a check become a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Mean over the runs.
    Mean(Reading),
    /// Median of the runs.
    Median(Reading),
    /// Largest of the runs; not a number when one is not.
    Most(Reading),
    /// Runs are two halves that differ in what is compared; mean of first over second.
    Ratio(Reading),
    /// The same; mean of first less second.
    Difference(Reading),
    /// Share of packets that the bottleneck lost for this cause, all runs pooled.
    LostShare(DropCause),
    /// Share of packets in error over bit error rate, of bins with a share from `low` to `high`, all runs pooled.
    /// From instruments.
    ErrorsPerBit {
        /// Least expected share of packets in error.
        low: f64,
        /// Largest.
        high: f64,
        /// The bit error rate is that of the side channel, not that of the link.
        measured: bool,
    },
    /// Share of time the bottleneck was busy between the ends of two runs that are equal up to the end of the first.
    Busy,
}

/// The link that is looked at where there is only one to look at.
pub(crate) const BOTTLENECK: &str = "bottleneck";

impl Quantity {
    /// What it counts.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Mean(reading) | Self::Median(reading) | Self::Most(reading) | Self::Difference(reading) => {
                reading.unit()
            }
            Self::Ratio(_) => Unit::Ratio,
            Self::LostShare(_) => Unit::Share,
            Self::ErrorsPerBit { .. } => Unit::Scientific,
            Self::Busy => Unit::Busy,
        }
    }

    /// Runs that make one value.
    pub const fn runs_per_value(self) -> usize {
        match self {
            Self::Busy | Self::Ratio(_) | Self::Difference(_) => 2,
            Self::Mean(_)
            | Self::Median(_)
            | Self::Most(_)
            | Self::LostShare(_)
            | Self::ErrorsPerBit { .. } => 1,
        }
    }

    /// One value for each run or pair of runs, or one for all where they are pooled.
    pub fn values(self, runs: &[&Observed]) -> Vec<f64> {
        let halves = |f: fn(f64, f64) -> f64, reading: Reading| {
            let (first, second) = runs.split_at(runs.len() / 2);
            first.iter().zip(second).map(|(a, b)| f(reading.of(a), reading.of(b))).collect()
        };
        match self {
            Self::Mean(reading) => runs.iter().map(|r| reading.of(r)).collect(),
            Self::Median(reading) => vec![median(runs.iter().map(|r| reading.of(r)).collect())],
            Self::Most(reading) => {
                let most = |most: f64, v: f64| if v.is_nan() || v > most { v } else { most };
                vec![runs.iter().map(|r| reading.of(r)).fold(f64::NEG_INFINITY, most)]
            }
            Self::Ratio(reading) => halves(|a, b| a / b, reading),
            Self::Difference(reading) => halves(|a, b| a - b, reading),
            Self::LostShare(cause) => {
                let lost: u64 = bottlenecks(runs).map(|l| l.dropped(cause)).sum();
                vec![lost as f64 / packets(runs) as f64]
            }
            Self::ErrorsPerBit { low, high, measured } => {
                vec![fade::errors_per_bit(runs, low, high, measured)]
            }
            Self::Busy => {
                let busy = |run: &Observed| run.link(BOTTLENECK).map_or(f64::NAN, |l| l.busy_s);
                let between =
                    |w: &[&Observed]| (busy(w[1]) - busy(w[0])) / (w[1].simulated_s - w[0].simulated_s);
                runs.chunks_exact(2).map(between).collect()
            }
        }
    }
}

/// The middle value; what is not a number counts as the largest.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn bottlenecks<'a>(runs: &[&'a Observed]) -> impl Iterator<Item = &'a crate::observed::Link> {
    runs.iter().filter_map(|r| r.link(BOTTLENECK))
}

/// Packets that the bottlenecks of all runs sent.
pub(crate) fn packets(runs: &[&Observed]) -> u64 {
    bottlenecks(runs).map(|l| l.packets).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::observed::{Flow, Link};

    pub(crate) fn with_goodput(goodput: f64) -> Observed {
        Observed { flows: vec![Flow { goodput, ..Flow::default() }], ..Observed::default() }
    }

    pub(crate) fn with_losses(packets: u64, lost: u64) -> Observed {
        let drops = vec![("packet_loss".to_owned(), lost)];
        let link = Link { name: BOTTLENECK.to_owned(), packets, drops, ..Link::default() };
        Observed { links: vec![link], ..Observed::default() }
    }

    #[test]
    fn halves_are_compared_run_by_run() {
        let runs = [10.0, 30.0, 20.0, 40.0].map(with_goodput);
        let runs: Vec<&Observed> = runs.iter().collect();
        assert_eq!(Quantity::Ratio(Reading::Goodput).values(&runs), [0.5, 0.75]);
        assert_eq!(Quantity::Difference(Reading::Goodput).values(&runs), [-10.0, -10.0]);
    }

    #[test]
    fn the_middle_and_the_largest() {
        let runs = [10.0, 30.0, 20.0, 70.0].map(with_goodput);
        let runs: Vec<&Observed> = runs.iter().collect();
        assert_eq!(Quantity::Median(Reading::Goodput).values(&runs), [25.0]);
        assert_eq!(Quantity::Median(Reading::Goodput).values(&runs[1..]), [30.0]);
        assert_eq!(Quantity::Most(Reading::Goodput).values(&runs), [70.0]);
        assert!(
            Quantity::Most(Reading::Completion).values(&[&with_finish(1.0), &with_finish(f64::NAN)])[0]
                .is_nan()
        );
    }

    fn with_finish(finished_s: f64) -> Observed {
        Observed { flows: vec![Flow { finished_s, ..Flow::default() }], ..Observed::default() }
    }

    #[test]
    fn counts_are_pooled_and_busy_time_is_a_difference() {
        let runs = [with_losses(100_000, 1000), with_losses(300_000, 3100)];
        let pooled = Quantity::LostShare(DropCause::PacketLoss).values(&[&runs[0], &runs[1]]);
        assert!((pooled[0] - 0.01025).abs() < 1e-12 && pooled.len() == 1);
        let run = |busy_s, simulated_s| {
            let link = Link { name: BOTTLENECK.to_owned(), busy_s, ..Link::default() };
            Observed { links: vec![link], simulated_s, ..Observed::default() }
        };
        let busy = Quantity::Busy.values(&[&run(90.0, 100.0), &run(490.0, 500.0)]);
        assert!((busy[0] - 1.0).abs() < 1e-12);
    }
}
