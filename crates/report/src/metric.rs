//! Metrics: values of a [`Report`] by name, for `--expect`, `measure` and tables.
//!
//! Examples: `goodput`, `rtt_p50[web]`, `goodput[x*]`, `drops[bottleneck].queue_full`. `METRICS` lists all.

use crate::flow::{FlowReport, LimitedBy};
use crate::gateway::GatewayReport;
use crate::link::{Counts, LinkReport};
use crate::rate::FlowRouterReport;
use crate::report::Report;
use crate::selection::Selection;
use crate::unit::Unit;
use bentpipe_base::names::{listed, nearest};
use bentpipe_base::trace::DropCause;
use core::fmt::Write as _;

/// How the values of several flows or links are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    Sum,
    /// Mean of those that have a value.
    Mean,
    /// Latest time; no value if one of them has none.
    Last,
    /// Maximum.
    Max,
}

/// Source of a metric. `None` means that a flow, link, gateway or flow router does not have the value.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The whole run; takes no name.
    Run(fn(&Report) -> Option<f64>),
    /// Each flow, or the named ones.
    Flow(fn(&FlowReport) -> Option<f64>),
    /// Each flow, with a required cause: `limited_by[web].pacing`.
    FlowCause(fn(&FlowReport) -> &LimitedBy),
    /// Each link direction, or the named ones.
    Link(fn(&LinkReport) -> Option<f64>),
    /// Each link direction, with an optional cause: `drops[bottleneck].queue_full`.
    LinkCause(fn(&LinkReport) -> &Counts),
    /// Each gateway, or the named ones.
    Gateway(fn(&GatewayReport) -> Option<f64>),
    /// Each flow router, or the named ones.
    Router(fn(&FlowRouterReport) -> Option<f64>),
}

/// A row of the table of metrics.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: &'static str,
    aggregate: Aggregate,
    unit: Unit,
    /// Description, also used as an axis label.
    description: &'static str,
    read: Source,
}

const fn row(name: &'static str, read: Source, together: Aggregate, unit: Unit, words: &'static str) -> Row {
    Row { name, aggregate: together, unit, description: words, read }
}

use Aggregate::{Last, Max, Mean, Sum};
use Source::{Flow, FlowCause, Gateway, Link, LinkCause, Router, Run};
use Unit::{Bytes, Count, Milliseconds, Rate, Ratio, Seconds};

/// A count of a connection; 0 for UDP flows.
macro_rules! tcp_count {
    ($field:ident) => {
        Flow(|f| Some(f.tcp_or_zeros().$field as f64))
    };
}

/// A value that only some connections have.
macro_rules! tcp {
    ($($field:tt)+) => {
        Flow(|f| f.tcp()?.$($field)+)
    };
}

macro_rules! udp_count {
    ($field:ident) => {
        Flow(|f| Some(f.udp()?.$field as f64))
    };
}

macro_rules! gateway {
    ($($field:tt)+) => {
        Gateway(|g| Some(g.$($field)+ as f64))
    };
}

macro_rules! router {
    ($field:ident) => {
        Router(|r| Some(r.$field as f64))
    };
}

/// Every metric.
#[rustfmt::skip]
const METRICS: [Row; 59] = [
    row("goodput", Flow(|f| Some(f.goodput_bps)), Sum, Rate, "goodput"),
    row("arrived", Flow(|f| f.arrived_bps), Sum, Rate, "rate at which new payload arrived"),
    row("available_99", Run(|r| r.exceeded(0.99)), Mean, Rate, "goodput exceeded for 99 % of the time"),
    row("available_99_9", Run(|r| r.exceeded(0.999)), Mean, Rate, "goodput exceeded for 99.9 % of the time"),
    row("available_99_99", Run(|r| r.exceeded(0.9999)), Mean, Rate, "goodput exceeded for 99.99 % of the time"),
    row("jain", Run(|r| r.total.jain), Mean, Ratio, "Jain's fairness index"),
    row("simulated", Run(|r| Some(r.simulated_s)), Mean, Seconds, "simulated time"),
    row("established", tcp!(established_s), Last, Seconds, "end of the handshake"),
    row("finished", tcp!(finished_s), Last, Seconds, "end of the transfer"),
    row("opened", tcp!(opened_s), Last, Seconds, "receive window first full"),
    row("steady", tcp!(steady_bps), Sum, Rate, "rate of new payload in steady state"),
    row("acked", tcp_count!(bytes_acked), Sum, Bytes, "bytes acknowledged"),
    row("segments", tcp_count!(segments_sent), Sum, Count, "segments sent"),
    row("retransmits", tcp_count!(retransmits), Sum, Count, "retransmissions"),
    row("timeouts", tcp_count!(timeouts), Sum, Count, "retransmission timeouts"),
    row("rtt_min", tcp!(rtt_ms.min), Mean, Milliseconds, "smallest round-trip time"),
    row("rtt_p50", tcp!(rtt_ms.p50), Mean, Milliseconds, "median round-trip time"),
    row("rtt_p99", tcp!(rtt_ms.p99), Mean, Milliseconds, "99th percentile of the round-trip time"),
    row("limited_by", FlowCause(|f| &f.tcp_or_zeros().limited_by), Mean, Ratio, "share of time limited"),
    row("completed", Flow(|f| Some(f.tcp()?.requests.as_ref()?.completed as f64)), Sum, Count, "responses complete"),
    row("response_min", tcp!(requests.as_ref()?.response_ms.min), Mean, Milliseconds, "smallest response time"),
    row("response_p50", tcp!(requests.as_ref()?.response_ms.p50), Mean, Milliseconds, "median response time"),
    row("response_p99", tcp!(requests.as_ref()?.response_ms.p99), Mean, Milliseconds, "99th percentile of the response time"),
    row("ack_p50", tcp!(telnet.as_ref()?.ack_ms.p50), Mean, Milliseconds, "median time from a write to its acknowledgment"),
    row("ack_p99", tcp!(telnet.as_ref()?.ack_ms.p99), Mean, Milliseconds, "99th percentile from a write to its acknowledgment"),
    row("sent", udp_count!(sent), Sum, Count, "datagrams sent"),
    row("received", udp_count!(received), Sum, Count, "datagrams received"),
    row("lost", udp_count!(lost), Sum, Count, "datagrams lost"),
    row("delay_mean", Flow(|f| f.udp()?.delay_ms.mean), Mean, Milliseconds, "mean one-way delay"),
    row("delay_p50", Flow(|f| f.udp()?.delay_ms.quantiles.p50), Mean, Milliseconds, "median one-way delay"),
    row("delay_p99", Flow(|f| f.udp()?.delay_ms.quantiles.p99), Mean, Milliseconds, "99th percentile of the one-way delay"),
    row("utilisation", Link(|l| Some(l.utilisation)), Mean, Ratio, "utilisation"),
    row("packets", Link(|l| Some(l.packets as f64)), Sum, Count, "packets serialised"),
    row("drops", LinkCause(|l| &l.drops), Sum, Count, "packets dropped"),
    row("marked", Link(|l| Some(l.marked? as f64)), Sum, Count, "packets marked CE in queues"),
    row("queue_mean", Link(|l| Some(l.queue_packets.mean)), Mean, Count, "mean queue, packets"),
    row("queue_peak", Link(|l| Some(f64::from(l.queue_packets.peak))), Max, Count, "longest queue, packets"),
    row("carried", Link(|l| l.carried_bps), Sum, Rate, "carried by the link in the measured interval"),
    row("accelerated", gateway!(flows.accelerated), Sum, Count, "flows accelerated"),
    row("passed", gateway!(flows.passed.values().sum::<u64>()), Sum, Count, "flows passed unchanged"),
    row("gateway_packets", gateway!(forwarded), Sum, Count, "packets of accelerated flows sent into hops"),
    row("losses", gateway!(losses), Sum, Count, "packets that gateways found lost"),
    row("repairs", gateway!(repairs), Sum, Count, "losses sent again by gateways"),
    row("copies", gateway!(copies), Sum, Count, "packets sent by gateways beyond the first of each"),
    row("resent", gateway!(resent), Sum, Count, "packets sent again by gateways since receivers had no room"),
    row("not_forwarded", gateway!(not_forwarded.values().sum::<u64>()), Sum, Count, "packets that gateways did not forward"),
    row("held_peak", gateway!(held_peak_bytes), Max, Bytes, "most bytes held by a gateway"),
    row("reordered", udp_count!(reordered), Sum, Count, "datagrams reordered"),
    row("granted", Flow(|f| Some(f.rate()?.granted_bps? as f64)), Sum, Rate, "rate granted by the network"),
    row("rate_changes", Flow(|f| Some(f.rate()?.changes.len() as f64)), Sum, Count, "changes of the granted rate, 1000 at most"),
    row("router_flows", router!(flows), Sum, Count, "flows known to flow routers"),
    row("rate_requests", router!(requests), Sum, Count, "requests of a rate seen by flow routers"),
    row("refused", router!(refused), Sum, Count, "reservations refused by flow routers"),
    row("preempted", router!(preempted), Sum, Count, "reservations withdrawn by flow routers"),
    row("reductions", router!(reductions), Sum, Count, "reductions told by flow routers"),
    row("policed", router!(policed), Sum, Count, "packets dropped by flow routers above their rate"),
    row("reserved", router!(reserved_bps), Sum, Rate, "rate reserved by flow routers at the end"),
    row("given", router!(given_bps), Sum, Rate, "available rate given by flow routers at the end"),
    row("used", router!(used_bps), Sum, Rate, "mean rate forwarded by flow routers"),
];

/// Names of the flows, link directions, gateways and flow routers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// Flows.
    pub flows: Vec<&'a str>,
    /// Directions of links.
    pub links: Vec<&'a str>,
    /// Gateways.
    pub gateways: Vec<&'a str>,
    /// Flow routers.
    pub flow_routers: Vec<&'a str>,
}

impl<'a> From<&'a Report> for Names<'a> {
    fn from(report: &'a Report) -> Self {
        Self {
            flows: report.flows.iter().map(|f| &*f.name).collect(),
            links: report.links.iter().map(|l| &*l.name).collect(),
            gateways: report.gateways.iter().map(|g| g.name.as_str()).collect(),
            flow_routers: report.flow_routers.iter().map(|r| r.name.as_str()).collect(),
        }
    }
}

/// A metric as selected by the user.
#[derive(Clone, Debug)]
pub struct Metric {
    text: String,
    row: Row,
    select: Selection,
    cause: Option<String>,
}

/// Why a metric is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such metric.
    #[error("unknown metric `{name}`{hint}\nhelp: metrics: {known}")]
    Unknown {
        /// Name as given.
        name: String,
        /// Suggestion of a similar name.
        hint: String,
        /// All known names.
        known: String,
    },
    /// The text has the wrong syntax.
    #[error("`{text}` is not a metric: {why}")]
    Syntax {
        /// Text as given.
        text: String,
        /// Explanation.
        why: String,
    },
    /// The run has no flow, link, gateway, flow router or cause of that name.
    #[error("`{metric}`: the run has no {what} `{name}`{hint}\nhelp: it has {known}")]
    NotInRun {
        /// Metric.
        metric: String,
        /// Kind: flow, link, gateway, flow router or cause.
        what: &'static str,
        /// Name as given.
        name: String,
        /// Suggestion of a similar name.
        hint: String,
        /// All known names.
        known: String,
    },
}

impl Metric {
    /// Parses `goodput`, `goodput[flow]`, `goodput[prefix*]` or `drops[link].cause`.
    ///
    /// # Errors
    /// Invalid syntax, or an unknown metric.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let form = |why: &str| Error::syntax(text, why);
        let end = text.find(['[', '.']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let row = METRICS.iter().find(|r| r.name == name);
        let row = row.ok_or_else(|| Error::unknown(name, METRICS.iter().map(|r| r.name)))?;
        let (select, rest) = Selection::parse(rest).map_err(form)?;
        if select.name().is_some() && matches!(row.read, Run(_)) {
            return Err(form("it belongs to the whole run: leave out the part in brackets"));
        }
        let cause = match rest.strip_prefix('.') {
            None if rest.is_empty() => None,
            Some(cause) if matches!(row.read, FlowCause(_) | LinkCause(_)) && !cause.is_empty() => {
                Some(cause.to_owned())
            }
            _ => return Err(form("write it as name, name[flow or link] or drops[link].cause")),
        };
        if matches!(row.read, FlowCause(_)) && cause.is_none() {
            return Err(form("name the cause, as in limited_by[flow].congestion_window"));
        }
        Ok(Self { text: text.to_owned(), row: *row, select, cause })
    }

    /// Returns the text as given by the user.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the unit.
    pub const fn unit(&self) -> Unit {
        self.row.unit
    }

    /// Returns how several values are combined.
    pub const fn aggregate(&self) -> Aggregate {
        self.row.aggregate
    }

    /// Returns the column name in a table: `goodput_bps`, `goodput[x1]_bps`.
    pub fn column(&self) -> String {
        format!("{}{}", self.text, self.row.unit.suffix())
    }

    /// Returns the axis label: `goodput of x1, bit/s`.
    pub fn label(&self) -> String {
        let mut label = self.row.description.to_owned();
        if let Some(name) = self.select.name() {
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

    /// Returns the value in a report, in the metric's unit; `None` if the run has none.
    ///
    /// # Errors
    /// A flow, link or cause that the run does not have.
    pub fn of(&self, report: &Report) -> Result<Option<f64>, Error> {
        self.check(&Names::from(report))?;
        let cause = self.cause.as_deref();
        let share = |l: &LimitedBy| l.shares().into_iter().find(|(key, _)| Some(*key) == cause).map(|s| s.1);
        let count = |drops: &Counts| match cause {
            // reports omit causes that did not occur
            Some(cause) => drops.get(cause).copied().unwrap_or(0),
            None => drops.values().sum(),
        };
        Ok(match self.row.read {
            Run(read) => read(report).filter(|v| v.is_finite()),
            Flow(read) => self.read(&report.flows, |f| &f.name, read),
            FlowCause(read) => self.read(&report.flows, |f| &f.name, |f| share(read(f))),
            Link(read) => self.read(&report.links, |l| &l.name, read),
            LinkCause(read) => self.read(&report.links, |l| &l.name, |l| Some(count(read(l)) as f64)),
            Gateway(read) => self.read(&report.gateways, |g| &g.name, read),
            Router(read) => self.read(&report.flow_routers, |r| &r.name, read),
        })
    }

    /// Combines the values of the selected items of `all`.
    fn read<T>(&self, all: &[T], name: fn(&T) -> &str, read: impl Fn(&T) -> Option<f64>) -> Option<f64> {
        let chosen = all.iter().filter(|one| self.select.selects(name(one)));
        let values: Vec<Option<f64>> = chosen.map(|one| read(one).filter(|v| v.is_finite())).collect();
        aggregate(self.row.aggregate, &values)
    }

    /// Checks that a run with these names has the flow, link, gateway, flow router or cause of this metric.
    ///
    /// # Errors
    /// The unknown name, with the known ones.
    pub fn check(&self, names: &Names<'_>) -> Result<(), Error> {
        let (what, known, causes): (_, &[&str], Vec<&str>) = match self.row.read {
            Run(_) => ("run", &[], Vec::new()),
            Flow(_) | FlowCause(_) => ("flow", &names.flows, LimitedBy::CAUSES.to_vec()),
            Link(_) | LinkCause(_) => ("link", &names.links, DropCause::ALL.map(DropCause::key).to_vec()),
            Gateway(_) => ("gateway", &names.gateways, Vec::new()),
            Router(_) => ("flow router", &names.flow_routers, Vec::new()),
        };
        match (self.select.name(), &self.cause) {
            (Some(name), _) if !known.iter().any(|n| self.select.selects(n)) => {
                Err(Error::not_in_run(&self.text, what, name, known))
            }
            (_, Some(cause)) if !causes.contains(&cause.as_str()) => {
                Err(Error::not_in_run(&self.text, "cause", cause, &causes))
            }
            _ => Ok(()),
        }
    }
}

impl Error {
    /// The run has no `what` called `name`, which `metric` needs; it has `known`.
    pub fn not_in_run(metric: &str, what: &'static str, name: &str, known: &[&str]) -> Self {
        let hint = hint(name, known.iter().copied());
        let known = if known.is_empty() { "none".to_owned() } else { listed(known.iter().copied()) };
        Self::NotInRun { metric: metric.to_owned(), what, name: cut(name), hint, known }
    }

    /// There is no metric `name` among `known`.
    pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let hint = hint(name, known.clone());
        Self::Unknown { name: cut(name), hint, known: known.collect::<Vec<_>>().join(", ") }
    }

    /// `text` is no metric, since `why`.
    pub fn syntax(text: &str, why: &str) -> Self {
        Self::Syntax { text: cut(text), why: why.to_owned() }
    }
}

fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |n| format!(": did you mean `{n}`?"))
}

/// Combines the values of several flows or links; `None` if there are none.
pub fn aggregate(how: Aggregate, values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    if known.is_empty() || (how == Last && known.len() < values.len()) {
        return None;
    }
    Some(match how {
        Sum => known.iter().sum(),
        Mean => known.iter().sum::<f64>() / known.len() as f64,
        Last | Max => known.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// Returns at most 100 characters of a text for an error, without control characters.
fn cut(text: &str) -> String {
    text.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
#[path = "metric_tests.rs"]
mod tests;
