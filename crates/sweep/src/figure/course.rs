//! Quantities over the course of a run, in steps of time: the columns of its record and of its instruments.

use crate::store;
use bentpipe_base::Duration;
use bentpipe_report::metric::{Aggregate, Error, Names, aggregate};
use bentpipe_report::{Report, Selection, Unit};
use bentpipe_scenario::figure_file::Steps;
use bentpipe_scenario::{InstrumentSpec, Scenario};
use bentpipe_sim::instrument::columns;
use bentpipe_sim::observe::MOST_SERIES;
use bentpipe_sim::record::{MAX_INTERVALS, Series, merge_of, merged};
use bentpipe_sim::report::names;
use bentpipe_sim::{Record, RecordOptions, run_recorded};

/// Where a quantity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Flow,
    Link,
    Instrument,
}

/// A row of the table of quantities.
#[derive(Debug)]
struct Row {
    name: &'static str,
    from: Scope,
    column: &'static str,
    unit: Unit,
    /// How several flows, directions of links or instruments are combined.
    several: Aggregate,
    words: &'static str,
}

const fn row(
    name: &'static str,
    from: Scope,
    column: &'static str,
    unit: Unit,
    several: Aggregate,
    words: &'static str,
) -> Row {
    Row { name, from, column, unit, several, words }
}

use Aggregate::{Max, Mean, Sum};
use Scope::{Flow, Instrument, Link};
use Unit::{Bytes, Count, Decibels, Milliseconds, Rate, Ratio};

/// Every quantity. Within a step a column is merged as in the record: rates and shares are averaged, windows
/// are those at its end, counts are summed, and the queue's peak is the longest.
#[rustfmt::skip]
const QUANTITIES: [Row; 24] = [
    row("goodput", Flow, "goodput_bps", Rate, Sum, "goodput"),
    row("cwnd", Flow, "cwnd_bytes", Bytes, Mean, "congestion window"),
    row("ssthresh", Flow, "ssthresh_bytes", Bytes, Mean, "slow start threshold"),
    row("in_flight", Flow, "in_flight_bytes", Bytes, Sum, "data in flight"),
    row("receive_window", Flow, "receive_window_bytes", Bytes, Mean, "receive window that the sender sees"),
    row("announced_window", Flow, "announced_window_bytes", Bytes, Mean, "window that receivers announced"),
    row("rtt", Flow, "rtt_ms", Milliseconds, Mean, "round-trip time"),
    row("retransmits", Flow, "retransmits", Count, Sum, "retransmissions"),
    row("timeouts", Flow, "timeouts", Count, Sum, "retransmission timeouts"),
    row("delay", Flow, "delay_ms", Milliseconds, Mean, "one-way delay of datagrams"),
    row("link_rate", Link, "rate_bps", Rate, Mean, "rate of the link"),
    row("carried", Link, "throughput_bps", Rate, Sum, "carried by the link"),
    row("queue", Link, "queue_packets", Count, Mean, "mean queue, packets"),
    row("queue_peak", Link, "queue_peak_packets", Count, Max, "longest queue, packets"),
    row("one_way", Link, "one_way_ms", Milliseconds, Mean, "one-way propagation delay"),
    row("ber", Link, "ber", Ratio, Mean, "bit error rate"),
    row("packet_errors", Link, "packet_error_share", Ratio, Mean, "share of packets lost to errors"),
    row("fade", Link, "fade_db", Decibels, Mean, "attenuation"),
    row("queue_drops", Link, "dropped_at_queue", Count, Sum, "packets dropped at the queue"),
    row("lost", Link, "lost", Count, Sum, "packets lost on the link"),
    row("measured_ber", Instrument, "measured_ber", Ratio, Mean, "bit error rate of the side channel"),
    row("errored_seconds", Instrument, "errored_seconds", Count, Sum, "seconds with bit errors"),
    row("packets", Instrument, "packets", Count, Sum, "packets sent"),
    row("packets_in_error", Instrument, "packets_in_error", Count, Sum, "packets in error"),
];

/// A quantity as a figure file names it: `goodput`, `cwnd[flow]`, `ber[bottleneck]`.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    text: String,
    row: &'static Row,
    select: Selection,
}

impl Quantity {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (name, rest) = text.split_at(text.find('[').unwrap_or(text.len()));
        let row = QUANTITIES.iter().find(|r| r.name == name);
        let row = row.ok_or_else(|| Error::unknown(name, QUANTITIES.iter().map(|r| r.name)))?;
        let (select, rest) = Selection::parse(rest).map_err(|why| Error::syntax(text, why))?;
        if !rest.is_empty() {
            return Err(Error::syntax(text, "write it as name or name[flow, link or instrument]"));
        }
        Ok(Self { text: text.to_owned(), row, select })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) const fn unit(&self) -> Unit {
        self.row.unit
    }

    /// Returns the label of an axis: `goodput of x1, bit/s`.
    pub(crate) fn label(&self) -> String {
        let of = self.select.name().map_or_else(String::new, |name| format!(" of {name}"));
        let symbol = self.row.unit.symbol();
        let unit = if symbol.is_empty() { String::new() } else { format!(", {symbol}") };
        format!("{}{of}{unit}", self.row.words)
    }

    /// Checks that a run of the scenario has it.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Error> {
        let Names { mut flows, mut links, .. } = names(scenario);
        let with_column = |i: &&InstrumentSpec| columns(i).iter().any(|c| c == self.row.column);
        flows.truncate(MOST_SERIES);
        links.truncate(MOST_SERIES);
        let (what, known) = match self.row.from {
            Flow => ("flow", flows),
            Link => ("link", links),
            Instrument => {
                let all = scenario.instruments.iter().filter(with_column);
                ("instrument", all.map(|i| i.name.as_str()).collect())
            }
        };
        if known.iter().any(|name| self.select.selects(name)) {
            return Ok(());
        }
        Err(Error::not_in_run(&self.text, what, self.select.name().unwrap_or("*"), &known))
    }

    /// Returns its value in each step; none in steps after the end of the run.
    fn values(&self, report: &Report, record: &Record, steps: &Steps) -> Vec<Option<f64>> {
        let all: Vec<Vec<Option<f64>>> = match self.row.from {
            Flow => self.of_series(&record.flows, &record.time_s, steps),
            Link => self.of_series(&record.links, &record.time_s, steps),
            Instrument => {
                let chosen = report.instruments.iter().filter(|i| self.select.selects(&i.name));
                let column = |name: &str, i: &bentpipe_report::InstrumentReport| {
                    let n = i.columns.iter().position(|c| c == name)?;
                    Some(i.rows.iter().map(|row| row.get(n).copied().unwrap_or(f64::NAN)).collect())
                };
                let both = chosen.filter_map(|i| Some((column("time_s", i)?, column(self.row.column, i)?)));
                both.map(|(time, values): (Vec<f64>, Vec<f64>)| self.in_steps(&time, &values, steps))
                    .collect()
            }
        };
        let at = |step: usize| {
            let values: Vec<Option<f64>> = all.iter().map(|of| of.get(step).copied().flatten()).collect();
            aggregate(self.row.several, &values)
        };
        (0..steps.number).map(at).collect()
    }

    fn of_series(&self, all: &[Series], time_s: &[f64], steps: &Steps) -> Vec<Vec<Option<f64>>> {
        let chosen = all.iter().filter(|s| self.select.selects(&s.name));
        let columns = chosen.filter_map(|s| s.column(self.row.column));
        columns.map(|values| self.in_steps(time_s, values, steps)).collect()
    }

    /// Merges the values of the intervals that end in each step.
    fn in_steps(&self, ends: &[f64], values: &[f64], steps: &Steps) -> Vec<Option<f64>> {
        let rule = merge_of(self.row.column);
        let time = |n: usize| Duration(steps.from.0 + steps.every.0 * n as u64).as_secs_f64();
        let step = |n: usize| {
            let (begin, end) = (time(n), time(n + 1));
            let first = ends.partition_point(|t| *t <= begin);
            let after = ends.partition_point(|t| *t <= end);
            Some(merged(rule, values.get(first..after)?)).filter(|v| !v.is_nan())
        };
        (0..steps.number).map(step).collect()
    }
}

/// What a figure over time records in each run.
pub(crate) struct Recording {
    pub(crate) steps: Steps,
    /// Quantities of all curves, in the order of their texts, each once.
    quantities: Vec<Quantity>,
}

impl Recording {
    pub(crate) fn new(steps: Steps, quantities: impl Iterator<Item = Quantity>) -> Self {
        let mut quantities: Vec<Quantity> = quantities.collect();
        quantities.sort_by(|a, b| a.text.cmp(&b.text));
        quantities.dedup_by(|a, b| a.text == b.text);
        Self { steps, quantities }
    }

    /// Name of a run in the store: that of the run without the recording, and what is recorded.
    pub(crate) fn key(&self, run: &str) -> String {
        let texts: Vec<&str> = self.quantities.iter().map(Quantity::text).collect();
        blake3::hash(format!("{run}\n{:?}\n{texts:?}", self.steps).as_bytes()).to_hex().to_string()
    }

    /// Returns the shortest step with which a run of this length can be recorded, if this one is too short.
    pub(crate) fn too_short(&self, scenario: &Scenario) -> Option<Duration> {
        let most = MAX_INTERVALS as u64 - 1;
        let intervals = scenario.duration.0.div_ceil(self.steps.every.0.max(1));
        (intervals > most).then(|| Duration(scenario.duration.0.div_ceil(most)))
    }

    pub(crate) fn run(&self, scenario: &Scenario) -> (Report, store::Course) {
        let options = RecordOptions { every: self.steps.every, sequences: 0, ..RecordOptions::default() };
        let (report, record) = run_recorded(scenario, &options, |_| None);
        let course = self.course(&report, &record);
        (report, course)
    }

    /// Returns the values in the steps of a run.
    pub(crate) fn course(&self, report: &Report, record: &Record) -> store::Course {
        let values = |q: &Quantity| (q.text.clone(), q.values(report, record, &self.steps));
        self.quantities.iter().map(values).collect()
    }
}

/// The rows of the manual's table.
#[cfg(test)]
pub(crate) fn rows() -> Vec<String> {
    let row = |r: &Row| {
        let of = match r.from {
            Flow => "flow",
            Link => "link",
            Instrument => "instrument",
        };
        let rule = match merge_of(r.column) {
            bentpipe_sim::record::Merge::Mean => "mean",
            bentpipe_sim::record::Merge::Sum => "sum",
            bentpipe_sim::record::Merge::Last => "last",
            bentpipe_sim::record::Merge::Max => "largest",
        };
        let unit = if r.unit.symbol().is_empty() { String::new() } else { format!(", {}", r.unit.symbol()) };
        format!("| `{}[{of}]` | {}{unit} | {rule} |", r.name, r.words)
    };
    QUANTITIES.iter().map(row).collect()
}
