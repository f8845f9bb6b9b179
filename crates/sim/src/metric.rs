//! Metrics: figures of a [`Report`] by name, as `--expect`, `measure` and tables ask for them.
//!
//! `goodput`, `rtt_p50[web]`, `goodput[x*]`, `drops[bottleneck].queue_full`. The table [`METRICS`] is the whole list. A figure is read off the
//! report's JSON by the path in the table, so a stored report answers as the fresh one did.

use crate::report::{LimitedBy, Report};
use bentpipe_base::trace::DropCause;
use bentpipe_scenario::Scenario;
use core::fmt::Write as _;
use serde_json::Value;

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// bit/s.
    Rate,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// A share or an index, mostly from 0 to 1.
    Ratio,
    /// Bytes.
    Bytes,
    /// Pieces: packets, segments, timeouts.
    Count,
}

impl Unit {
    /// How names of columns end.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Rate => "_bps",
            Self::Seconds => "_s",
            Self::Milliseconds => "_ms",
            Self::Bytes => "_bytes",
            Self::Ratio | Self::Count => "",
        }
    }

    /// As a reader sees it; empty for bare numbers.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Rate => "bit/s",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Bytes => "B",
            Self::Ratio | Self::Count => "",
        }
    }
}

/// Where a metric is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The whole run: takes no name.
    Run,
    /// Flows: all of them, or those named.
    Flows,
    /// Directions of links: all of them, or those named.
    Links,
    /// Gateways: all of them, or those named.
    Gateways,
}

/// How the figures of several flows or links become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// Their sum.
    Sum,
    /// Their mean, of those that have a value.
    Mean,
    /// The latest; no value when one has none.
    Last,
    /// The largest.
    Most,
}

/// A row of the table of metrics.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name.
    pub name: &'static str,
    /// Where it is looked up.
    pub of: Of,
    /// How several become one.
    pub together: Together,
    /// Unit.
    pub unit: Unit,
    /// Keys of the report that lead to it, inside the flow or link.
    path: &'static str,
    /// True when a cause may follow, as in `drops[bottleneck].queue_full`.
    pub causes: bool,
    /// What it is, in words; also the label of an axis.
    pub words: &'static str,
}

const fn row(
    name: &'static str,
    of: Of,
    together: Together,
    unit: Unit,
    path: &'static str,
    words: &'static str,
) -> Row {
    Row { name, of, together, unit, path, causes: false, words }
}

const fn with_causes(row: Row) -> Row {
    Row { causes: true, ..row }
}

use Of::{Flows, Gateways, Links, Run};
use Together::{Last, Mean, Most, Sum};
use Unit::{Bytes, Count, Milliseconds, Rate, Ratio, Seconds};

/// Every metric.
#[rustfmt::skip]
pub const METRICS: [Row; 44] = [
    row("goodput", Flows, Sum, Rate, "goodput_bps", "goodput"),
    row("jain", Run, Mean, Ratio, "total.jain", "Jain's fairness index"),
    row("simulated", Run, Mean, Seconds, "simulated_s", "simulated time"),
    row("established", Flows, Last, Seconds, "established_s", "end of the handshake"),
    row("finished", Flows, Last, Seconds, "finished_s", "end of the transfer"),
    row("opened", Flows, Last, Seconds, "opened_s", "receive window first full"),
    row("steady", Flows, Sum, Rate, "steady_bps", "rate of new payload under way"),
    row("acked", Flows, Sum, Bytes, "bytes_acked", "bytes acknowledged"),
    row("segments", Flows, Sum, Count, "segments_sent", "segments sent"),
    row("retransmits", Flows, Sum, Count, "retransmits", "retransmissions"),
    row("timeouts", Flows, Sum, Count, "timeouts", "retransmission timeouts"),
    row("rtt_min", Flows, Mean, Milliseconds, "rtt_ms.min", "smallest round-trip time"),
    row("rtt_p50", Flows, Mean, Milliseconds, "rtt_ms.p50", "median round-trip time"),
    row("rtt_p99", Flows, Mean, Milliseconds, "rtt_ms.p99", "99th percentile of the round-trip time"),
    with_causes(row("limited_by", Flows, Mean, Ratio, "limited_by", "share of time limited")),
    row("completed", Flows, Sum, Count, "requests.completed", "answers complete"),
    row("response_min", Flows, Mean, Milliseconds, "requests.response_ms.min", "smallest response time"),
    row("response_p50", Flows, Mean, Milliseconds, "requests.response_ms.p50", "median response time"),
    row("response_p99", Flows, Mean, Milliseconds, "requests.response_ms.p99", "99th percentile of the response time"),
    row("ack_p50", Flows, Mean, Milliseconds, "telnet.ack_ms.p50", "median time from a write to its acknowledgment"),
    row("ack_p99", Flows, Mean, Milliseconds, "telnet.ack_ms.p99", "99th percentile from a write to its acknowledgment"),
    row("sent", Flows, Sum, Count, "udp.sent", "datagrams sent"),
    row("received", Flows, Sum, Count, "udp.received", "datagrams received"),
    row("lost", Flows, Sum, Count, "udp.lost", "datagrams lost"),
    row("delay_mean", Flows, Mean, Milliseconds, "udp.delay_ms.mean", "mean one-way delay"),
    row("delay_p50", Flows, Mean, Milliseconds, "udp.delay_ms.p50", "median one-way delay"),
    row("delay_p99", Flows, Mean, Milliseconds, "udp.delay_ms.p99", "99th percentile of the one-way delay"),
    row("utilisation", Links, Mean, Ratio, "utilisation", "utilisation"),
    row("packets", Links, Sum, Count, "packets", "packets serialised"),
    with_causes(row("drops", Links, Sum, Count, "drops", "packets dropped")),
    row("marked", Links, Sum, Count, "marked", "packets marked CE in queues"),
    row("queue_mean", Links, Mean, Count, "queue_packets.mean", "mean queue, packets"),
    row("queue_peak", Links, Most, Count, "queue_packets.peak", "longest queue, packets"),
    row("carried", Links, Sum, Rate, "carried_bps", "carried by the link in the measured interval"),
    row("accelerated", Gateways, Sum, Count, "flows.accelerated", "flows accelerated"),
    row("passed", Gateways, Sum, Count, "flows.passed", "flows passed as they were"),
    row("gateway_packets", Gateways, Sum, Count, "forwarded", "packets of accelerated flows sent into hops"),
    row("losses", Gateways, Sum, Count, "losses", "packets that gateways found lost"),
    row("repairs", Gateways, Sum, Count, "repairs", "losses sent again by gateways"),
    row("copies", Gateways, Sum, Count, "copies", "packets sent by gateways beyond the first of each"),
    row("resent", Gateways, Sum, Count, "resent", "packets sent again by gateways since receivers had no room"),
    row("not_forwarded", Gateways, Sum, Count, "not_forwarded", "packets that gateways kept back"),
    row("held_peak", Gateways, Most, Bytes, "held_peak_bytes", "most bytes held by a gateway"),
    row("reordered", Flows, Sum, Count, "udp.reordered", "datagrams reordered"),
];

/// A metric as a user named it.
#[derive(Clone, Debug)]
pub struct Metric {
    text: String,
    row: Row,
    select: Option<String>,
    cause: Option<String>,
}

/// Why a metric cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such metric.
    #[error("unknown metric `{name}`{hint}\nhelp: metrics: {known}")]
    Unknown {
        /// As written.
        name: String,
        /// What was probably meant.
        hint: String,
        /// All there are.
        known: String,
    },
    /// The text does not follow the form.
    #[error("`{text}` is not a metric: {why}")]
    Form {
        /// As written.
        text: String,
        /// What is wrong and what to write.
        why: String,
    },
    /// The run has nothing of that name.
    #[error("`{metric}`: the run has no {what} `{name}`{hint}\nhelp: it has {known}")]
    Nothing {
        /// The metric.
        metric: String,
        /// Flow, link or cause.
        what: &'static str,
        /// As written.
        name: String,
        /// What was probably meant.
        hint: String,
        /// All there are.
        known: String,
    },
}

impl Metric {
    /// Reads `goodput`, `goodput[flow]`, `goodput[prefix*]` or `drops[link].cause`.
    ///
    /// # Errors
    /// A text that is none of these, or a name that is not in the table.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let form = |why: &str| Error::Form { text: cut(text), why: why.to_owned() };
        let end = text.find(['[', '.']).unwrap_or(text.len());
        let (name, mut rest) = text.split_at(end);
        let row = METRICS.iter().find(|r| r.name == name).ok_or_else(|| unknown(name))?;
        let mut select = None;
        if let Some(inside) = rest.strip_prefix('[') {
            let (name, after) = inside.split_once(']').ok_or_else(|| form("the `[` is not closed by `]`"))?;
            if name.is_empty() {
                return Err(form("name something between `[` and `]`"));
            }
            if row.of == Run {
                return Err(form("it belongs to the whole run: leave out the part in brackets"));
            }
            select = Some(name.to_owned());
            rest = after;
        }
        let cause = match rest.strip_prefix('.') {
            None if rest.is_empty() => None,
            Some(cause) if row.causes && !cause.is_empty() => Some(cause.to_owned()),
            _ => return Err(form("write it as name, name[flow or link] or drops[link].cause")),
        };
        if row.name == "limited_by" && cause.is_none() {
            return Err(form("name the cause, as in limited_by[flow].congestion_window"));
        }
        Ok(Self { text: text.to_owned(), row: *row, select, cause })
    }

    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its unit.
    pub const fn unit(&self) -> Unit {
        self.row.unit
    }

    /// Name of its column in a table: `goodput_bps`, `goodput[x1]_bps`.
    pub fn column(&self) -> String {
        format!("{}{}", self.text, self.row.unit.suffix())
    }

    /// Label of an axis: `goodput of x1, bit/s`.
    pub fn label(&self) -> String {
        let mut label = self.row.words.to_owned();
        if let Some(name) = &self.select {
            let _ = write!(label, " of {name}");
        }
        if let Some(cause) = &self.cause {
            let _ = write!(label, " ({})", cause.replace('_', " "));
        }
        if !self.row.unit.symbol().is_empty() {
            let _ = write!(label, ", {}", self.row.unit.symbol());
        }
        label
    }

    /// Its value in a report, in its unit; `None` when the run has none.
    ///
    /// # Errors
    /// A flow, link or cause that the run does not have.
    pub fn of(&self, report: &Report) -> Result<Option<f64>, Error> {
        self.of_json(&serde_json::to_value(report).unwrap_or_default())
    }

    /// As [`Metric::of`], of a report's JSON.
    ///
    /// # Errors
    /// A flow, link or cause that the run does not have.
    pub fn of_json(&self, report: &Value) -> Result<Option<f64>, Error> {
        let (list, what) = match self.row.of {
            Run => return Ok(at(report, self.row.path).and_then(Value::as_f64)),
            Flows => ("flows", "flow"),
            Links => ("links", "link"),
            Gateways => ("gateways", "gateway"),
        };
        let all = report.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let chosen: Vec<&Value> = all.iter().filter(|one| self.takes(name_of(one))).collect();
        if chosen.is_empty()
            && let Some(name) = &self.select
        {
            return Err(self.nothing(what, name, all.iter().map(name_of)));
        }
        let values = chosen.iter().map(|one| self.read(one)).collect::<Result<Vec<_>, _>>()?;
        Ok(together(self.row.together, &values))
    }

    fn takes(&self, name: &str) -> bool {
        match self.select.as_deref() {
            None => true,
            Some(wanted) => match wanted.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == wanted,
            },
        }
    }

    fn read(&self, one: &Value) -> Result<Option<f64>, Error> {
        let Some(found) = at(one, self.row.path) else { return Ok(None) };
        let Some(causes) = found.as_object() else { return Ok(found.as_f64()) };
        let Some(cause) = &self.cause else {
            return Ok(Some(causes.values().filter_map(Value::as_f64).sum()));
        };
        match causes.get(cause) {
            Some(share) => Ok(share.as_f64()),
            // reports leave out what did not happen
            None => self.check_cause().map(|()| Some(0.0)),
        }
    }

    /// Refuses what no run of `scenario` will have: a flow, a link or a cause by a name that it does not know.
    ///
    /// # Errors
    /// The name, and those that there are.
    pub fn check(&self, scenario: &Scenario) -> Result<(), Error> {
        let links = || scenario.links.iter().flat_map(|l| [l.name.as_str(), &l.reverse_name]);
        let flows = || scenario.flows.iter().map(|f| f.name.as_str());
        let gateways = || scenario.gateways.iter().map(|g| g.name.as_str());
        if let Some(name) = &self.select {
            match self.row.of {
                Flows if !flows().any(|f| self.takes(f)) => return Err(self.nothing("flow", name, flows())),
                Links if !links().any(|l| self.takes(l)) => return Err(self.nothing("link", name, links())),
                Gateways if !gateways().any(|g| self.takes(g)) => {
                    return Err(self.nothing("gateway", name, gateways()));
                }
                _ => {}
            }
        }
        self.check_cause()
    }

    fn check_cause(&self) -> Result<(), Error> {
        let Some(cause) = &self.cause else { return Ok(()) };
        let known: Vec<&str> = match self.row.of {
            Links => DropCause::ALL.map(DropCause::key).to_vec(),
            Flows | Gateways | Run => LimitedBy::default().shares().map(|(key, _)| key).to_vec(),
        };
        if known.contains(&cause.as_str()) {
            return Ok(());
        }
        Err(self.nothing("cause", cause, known.into_iter()))
    }

    fn nothing<'a>(&self, what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
        const MOST: usize = 40;
        let known: Vec<&str> = known.collect();
        let near = bentpipe_scenario::nearest(name, known.iter().copied());
        let hint = near.map_or_else(String::new, |n| format!(": did you mean `{n}`?"));
        let mut list = known[..known.len().min(MOST)].join(", ");
        if known.len() > MOST {
            let _ = write!(list, ", ... ({} in all)", known.len());
        }
        Error::Nothing { metric: self.text.clone(), what, name: cut(name), hint, known: list }
    }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |v, key| v.get(key))
}

fn name_of(value: &Value) -> &str {
    value.get("name").and_then(Value::as_str).unwrap_or("")
}

fn together(how: Together, values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    if known.is_empty() || (how == Last && known.len() < values.len()) {
        return None;
    }
    Some(match how {
        Sum => known.iter().sum(),
        Mean => known.iter().sum::<f64>() / known.len() as f64,
        Last | Most => known.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

fn cut(text: &str) -> String {
    text.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn unknown(name: &str) -> Error {
    let near = bentpipe_scenario::nearest(name, METRICS.iter().map(|r| r.name));
    let hint = near.map_or_else(String::new, |n| format!(": did you mean `{n}`?"));
    let known = METRICS.map(|r| r.name).join(", ");
    Error::Unknown { name: cut(name), hint, known }
}

#[cfg(test)]
#[path = "metric_tests.rs"]
mod tests;
