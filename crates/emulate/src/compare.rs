//! Compares a simulated and an emulated run: the same figures of both reports, and their difference.

use bentpipe_report::{FlowReport, LinkReport, LiveReport, Report};
use core::fmt::Write as _;
use serde::Serialize;
use std::collections::BTreeSet;

/// Up to this many flows have rows of their own; more are summarised.
const MOST_LISTED: usize = 10;
/// A link with a higher utilisation is always listed.
const BUSY: f64 = 0.5;
/// A shorter mean queue is not listed.
const LEAST_MEAN: f64 = 0.05;
/// Version of the JSON format.
const SCHEMA: u32 = 1;

/// Two runs of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this format.
    pub schema: u32,
    /// The scenario's title.
    pub scenario: String,
    /// Figures side by side.
    pub rows: Vec<Row>,
    /// The simulator's report.
    pub simulated: Report,
    /// The report of the run in real time.
    pub emulated: Report,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it belongs to: `total`, a flow, a direction of a link.
    pub of: String,
    /// What it is, unit last: `goodput_bps`.
    pub figure: String,
    /// In simulated time.
    pub simulated: Option<f64>,
    /// In real time.
    pub emulated: Option<f64>,
    /// Difference in per cent of the simulated figure; null if that is zero or a figure is missing.
    pub difference_percent: Option<f64>,
}

impl Comparison {
    /// Compares two runs of the same scenario.
    pub fn new(simulated: Report, emulated: Report) -> Self {
        let rows = rows(&simulated, &emulated);
        Self { schema: SCHEMA, scenario: simulated.scenario.clone(), rows, simulated, emulated }
    }

    /// As one JSON object, pretty-printed.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// With many flows, the table omits links that are neither busy nor lossy; the JSON has them.
    fn is_worth_a_line(&self, row: &Row) -> bool {
        let name = row.of.strip_prefix("link ").filter(|_| self.simulated.flows.len() > MOST_LISTED);
        let Some(name) = name else { return true };
        let all = self.simulated.links.iter().chain(&self.emulated.links);
        all.filter(|link| *link.name == *name)
            .any(|link| link.utilisation > BUSY || link.drops.values().any(|n| *n > 0))
    }

    /// As a table, with the kernel's differences and whether the machine was fast enough.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.scenario);
        let live = self.emulated.live.as_ref();
        if let Some(mark) = live.and_then(LiveReport::warning) {
            let _ = writeln!(out, "{mark}");
        }
        let _ = writeln!(out, "\n{:<44} {:>12} {:>12} {:>10}", "", "simulated", "emulated", "difference");
        let mut of = "";
        for row in self.rows.iter().filter(|row| self.is_worth_a_line(row)) {
            if row.of != of {
                of = &row.of;
                let _ = writeln!(out, "{of}");
            }
            let (name, scale, digits) = in_words(&row.figure);
            let value = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{:.digits$}", v / scale));
            let difference = row.difference_percent.map_or_else(String::new, |d| format!("{d:+.1} %"));
            let (a, b) = (value(row.simulated), value(row.emulated));
            let line = format!("  {name:<42} {a:>12} {b:>12} {difference:>10}");
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out.push('\n');
        for line in live.iter().flat_map(|live| live.lines()) {
            let _ = writeln!(out, "{line}");
        }
        out
    }
}

/// Returns the name of a figure for people, its divisor, and its number of digits.
fn in_words(figure: &str) -> (String, f64, usize) {
    const UNITS: [(&str, f64, usize, &str); 3] =
        [("_bps", 1e6, 3, ", Mbit/s"), ("_ms", 1.0, 1, ", ms"), ("_s", 1.0, 3, ", s")];
    if figure == "jain" {
        return ("Jain's fairness index".into(), 1.0, 3);
    }
    let in_unit = |(suffix, scale, digits, unit): (&str, _, _, _)| {
        Some((figure.strip_suffix(suffix)?, scale, digits, unit))
    };
    let is_mean = figure.ends_with("mean_packets") || figure.starts_with("mean_");
    let plain = (figure, 1.0, usize::from(is_mean), "");
    let (stem, scale, digits, unit) = UNITS.into_iter().find_map(in_unit).unwrap_or(plain);
    (stem.replace('_', " ").replace("rtt ", "RTT ") + unit, scale, digits)
}

fn rows(simulated: &Report, emulated: &Report) -> Vec<Row> {
    let mut rows = Vec::new();
    let of = if simulated.flows.len() == 1 { "the flow".to_owned() } else { "all flows".to_owned() };
    let goodput = |r: &Report| Some(r.total.goodput_bps);
    push(&mut rows, &of, "goodput_bps", (goodput(simulated), goodput(emulated)));
    if simulated.flows.len() > 1 {
        push(&mut rows, &of, "jain", (simulated.total.jain, emulated.total.jain));
    }
    if simulated.flows.len() > MOST_LISTED {
        summary_rows(&mut rows, &of, (&simulated.flows, &emulated.flows));
    } else {
        for (a, b) in simulated.flows.iter().zip(&emulated.flows) {
            one_flow(&mut rows, a, b);
        }
    }
    for (a, b) in simulated.transfers.iter().zip(&emulated.transfers) {
        let name = format!("transfer {}", a.name);
        push(&mut rows, &name, "completion_s", (a.finished_s, b.finished_s));
        push(&mut rows, &name, "goodput_bps", (Some(a.goodput_bps), Some(b.goodput_bps)));
    }
    for (a, b) in simulated.links.iter().zip(&emulated.links) {
        one_link(&mut rows, a, b);
    }
    rows
}

/// Adds a figure unless it is missing or zero in both.
fn push(rows: &mut Vec<Row>, of: &str, figure: &str, (simulated, emulated): (Option<f64>, Option<f64>)) {
    if simulated.is_none_or(|v| v == 0.0) && emulated.is_none_or(|v| v == 0.0) {
        return;
    }
    let both = simulated.zip(emulated).filter(|(a, _)| *a != 0.0);
    let difference_percent = both.map(|(a, b)| (b / a - 1.0) * 100.0);
    rows.push(Row { of: of.to_owned(), figure: figure.to_owned(), simulated, emulated, difference_percent });
}

/// Time from the flow's start to its end.
fn completion(flow: &FlowReport) -> Option<f64> {
    flow.tcp()?.finished_s.map(|at| at - flow.start_s)
}

fn one_flow(rows: &mut Vec<Row>, a: &FlowReport, b: &FlowReport) {
    let of = format!("flow {}", a.name);
    let mut add = |figure: &str, look: Look| push(rows, &of, figure, (look(a), look(b)));
    add("goodput_bps", |f| Some(f.goodput_bps));
    add("completion_s", completion);
    add("rtt_min_ms", |f| f.tcp()?.rtt_ms.min);
    add("rtt_median_ms", |f| f.tcp()?.rtt_ms.p50);
    add("rtt_99_percent_ms", |f| f.tcp()?.rtt_ms.p99);
    counts(&mut add);
    add("answers", |f| Some(f.tcp()?.requests.as_ref()?.completed as f64));
    add("response_median_ms", |f| f.tcp()?.requests.as_ref()?.response_ms.p50);
    add("writes_acknowledged", |f| Some(f.tcp()?.telnet.as_ref()?.acknowledged as f64));
    add("acknowledgment_median_ms", |f| f.tcp()?.telnet.as_ref()?.ack_ms.p50);
    add("datagrams_sent", |f| Some(f.udp()?.sent as f64));
    add("datagrams_lost", |f| Some(f.udp()?.lost as f64));
    add("one_way_median_ms", |f| f.udp()?.delay_ms.quantiles.p50);
    add("one_way_99_percent_ms", |f| f.udp()?.delay_ms.quantiles.p99);
}

/// Reads a figure of a flow.
type Look = fn(&FlowReport) -> Option<f64>;

fn counts(add: &mut dyn FnMut(&str, Look)) {
    add("segments", |f| Some(f.tcp()?.segments_sent as f64));
    add("segments_resent", |f| Some(f.tcp()?.retransmits as f64));
    add("timeouts", |f| Some(f.tcp()?.timeouts as f64));
}

/// Summarises many flows: sums of counts, means of times.
fn summary_rows(rows: &mut Vec<Row>, of: &str, (a, b): (&[FlowReport], &[FlowReport])) {
    let mean = |flows: &[FlowReport], look: Look| {
        let known: Vec<f64> = flows.iter().filter_map(look).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let means: [(&str, Look); 4] = [
        ("completion_mean_s", completion),
        ("rtt_min_mean_ms", |f| f.tcp()?.rtt_ms.min),
        ("rtt_median_mean_ms", |f| f.tcp()?.rtt_ms.p50),
        ("one_way_median_mean_ms", |f| f.udp()?.delay_ms.quantiles.p50),
    ];
    for (figure, look) in means {
        push(rows, of, figure, (mean(a, look), mean(b, look)));
    }
    let finished = |flows: &[FlowReport]| flows.iter().filter_map(completion).count() as f64;
    push(rows, of, "finished", (Some(finished(a)), Some(finished(b))));
    let mut sum = |figure: &str, look: Look| {
        let of_all = |flows: &[FlowReport]| flows.iter().filter_map(look).reduce(|a, b| a + b);
        push(rows, of, figure, (of_all(a), of_all(b)));
    };
    counts(&mut sum);
    sum("answers", |f| Some(f.tcp()?.requests.as_ref()?.completed as f64));
    sum("datagrams_sent", |f| Some(f.udp()?.sent as f64));
    sum("datagrams_lost", |f| Some(f.udp()?.lost as f64));
}

fn one_link(rows: &mut Vec<Row>, a: &LinkReport, b: &LinkReport) {
    let of = format!("link {}", a.name);
    push(rows, &of, "packets", (Some(a.packets as f64), Some(b.packets as f64)));
    let peak = |l: &LinkReport| Some(f64::from(l.queue_packets.peak));
    push(rows, &of, "queue_peak_packets", (peak(a), peak(b)));
    let means = (a.queue_packets.mean, b.queue_packets.mean);
    if means.0.max(means.1) >= LEAST_MEAN {
        push(rows, &of, "queue_mean_packets", (Some(means.0), Some(means.1)));
    }
    let causes: BTreeSet<&String> = a.drops.keys().chain(b.drops.keys()).collect();
    for cause in causes {
        let dropped = |l: &LinkReport| Some(l.drops.get(cause).copied().unwrap_or(0) as f64);
        push(rows, &of, &format!("dropped_by_{cause}"), (dropped(a), dropped(b)));
    }
}
