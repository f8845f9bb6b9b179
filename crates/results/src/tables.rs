//! CSV tables: a header line with names and units, decimal points, empty cells for missing values.
//!
//! Series are in long form, one row for each interval and flow or link direction, as R, pandas, DuckDB and
//! spreadsheet filters expect it.

use bentpipe_base::names::csv_cell;
use bentpipe_report::{
    Counts, FlowReport, FlowRouterReport, GatewayReport, InstrumentReport, LimitedBy, LinkReport, Quantiles,
    ReferenceReport, Report, csv,
};
use bentpipe_sim::record::{Record, Series};
use core::fmt::Write as _;

/// Formats with the fewest digits that read back to the same number; empty if it is not finite.
pub(crate) fn number(v: f64) -> String {
    match v {
        v if !v.is_finite() => String::new(),
        v if v != 0.0 && !(1e-4..1e15).contains(&v.abs()) => format!("{v:e}"),
        v => format!("{v}"),
    }
}

/// Formats like [`number`]; empty for `None`.
fn optional(v: Option<f64>) -> String {
    v.map_or_else(String::new, number)
}

/// Returns `series.csv`.
pub(crate) fn series(record: &Record) -> String {
    let keys = |all: &[Series]| {
        let columns = all.first().map(|s| s.columns.as_slice()).unwrap_or_default();
        columns.iter().map(|c| c.key).collect()
    };
    let (of_flows, of_links): (Vec<&str>, Vec<&str>) = (keys(&record.flows), keys(&record.links));
    let mut out = String::from("time_s,kind,name");
    for key in of_flows.iter().chain(&of_links) {
        let _ = write!(out, ",{key}");
    }
    out.push('\n');
    for (i, time) in record.time_s.iter().enumerate() {
        let mut row = |kind: &str, series: &Series, before: usize, after: usize| {
            let _ = write!(out, "{},{kind},{}", number(*time), csv_cell(&series.name));
            out.extend(core::iter::repeat_n(',', before));
            for column in &series.columns {
                let _ = write!(out, ",{}", number(column.values.get(i).copied().unwrap_or(f64::NAN)));
            }
            out.extend(core::iter::repeat_n(',', after));
            out.push('\n');
        };
        record.flows.iter().for_each(|s| row("flow", s, 0, of_links.len()));
        record.links.iter().for_each(|s| row("link", s, of_flows.len(), 0));
    }
    out
}

/// Returns `flows.csv`.
pub(crate) fn flows(report: &Report) -> String {
    let apps = applications(report);
    let mut head = columns(
        "name,tcp,start_s,established_s,finished_s,goodput_bps,bytes_acked,segments_sent,retransmits,timeouts,\
         rtt_min_ms,rtt_p50_ms,rtt_p99_ms",
    );
    head.extend(LimitedBy::CAUSES.map(|key| format!("limited_by_{key}")));
    head.extend(apps.iter().flat_map(|app| app.0).map(|key| (*key).to_owned()));
    let row = |f: &FlowReport| {
        let tcp = f.tcp_or_zeros();
        let mut cells = vec![
            f.name.to_string(),
            f.tcp().map_or("udp".to_owned(), |tcp| tcp.scheme.to_string()),
            number(f.start_s),
            optional(tcp.established_s),
            optional(tcp.finished_s),
            number(f.goodput_bps),
        ];
        let counts = [tcp.bytes_acked, tcp.segments_sent, tcp.retransmits, tcp.timeouts];
        cells.extend(counts.map(|n| n.to_string()));
        cells.extend(min_p50_p99(&tcp.rtt_ms).map(optional));
        cells.extend(tcp.limited_by.shares().map(|(_, share)| number(share)));
        for (keys, cells_of) in &apps {
            cells.extend(cells_of(f).unwrap_or_else(|| vec![String::new(); keys.len()]));
        }
        cells
    };
    csv(head, report.flows.iter().map(row))
}

/// Columns of one kind of application or of granted rates, and the function that fills them for a flow.
type Application = (&'static [&'static str], fn(&FlowReport) -> Option<Vec<String>>);

const APPLICATIONS: [Application; 4] = [
    (&["requests_completed", "response_min_ms", "response_p50_ms", "response_p99_ms"], |f| {
        f.tcp()?.requests.as_ref().map(|r| counted(&[r.completed], &min_p50_p99(&r.response_ms)))
    }),
    (&["writes", "writes_acknowledged", "ack_min_ms", "ack_p50_ms", "ack_p99_ms"], |f| {
        f.tcp()?.telnet.as_ref().map(|t| counted(&[t.writes, t.acknowledged], &min_p50_p99(&t.ack_ms)))
    }),
    (
        &[
            "datagrams_sent",
            "datagrams_received",
            "datagrams_lost",
            "datagrams_duplicate",
            "datagrams_reordered",
            "delay_mean_ms",
            "delay_min_ms",
            "delay_p50_ms",
            "delay_p99_ms",
        ],
        |f| {
            let u = f.udp()?;
            let counts = [u.sent, u.received, u.lost, u.duplicates, u.reordered];
            let [min, p50, p99] = min_p50_p99(&u.delay_ms.quantiles);
            Some(counted(&counts, &[u.delay_ms.mean, min, p50, p99]))
        },
    ),
    (&["asked_bps", "granted_bps", "rate_state", "rate_changes"], |f| {
        let rate = f.tcp()?.rate.as_ref()?;
        let granted = rate.granted_bps.map_or_else(String::new, |bps| bps.to_string());
        let changes = rate.changes.len().to_string();
        Some(vec![rate.asked_bps.to_string(), granted, rate.state.clone(), changes])
    }),
];

/// Returns the kinds of applications, and granted rates, that occur in the report.
fn applications(report: &Report) -> Vec<Application> {
    let there = |app: &Application| report.flows.iter().any(|f| app.1(f).is_some());
    APPLICATIONS.into_iter().filter(there).collect()
}

fn counted(counts: &[u64], times_ms: &[Option<f64>]) -> Vec<String> {
    counts.iter().map(ToString::to_string).chain(times_ms.iter().copied().map(optional)).collect()
}

const fn min_p50_p99(times: &Quantiles) -> [Option<f64>; 3] {
    [times.min, times.p50, times.p99]
}

/// Returns, for each kind of application in the report, its columns and a row for each of its flows.
pub(crate) fn by_application(report: &Report) -> Vec<(&'static [&'static str], Vec<Vec<String>>)> {
    let row = |app: Application| {
        move |f: &FlowReport| app.1(f).map(|cells| [vec![f.name.to_string()], cells].concat())
    };
    applications(report)
        .into_iter()
        .map(|app| (app.0, report.flows.iter().filter_map(row(app)).collect()))
        .collect()
}

/// Returns `links.csv`, with a column for each cause of drops that occurs.
pub(crate) fn links(report: &Report) -> String {
    let causes = keys(&report.links, |l| &l.drops);
    let carried = report.links.iter().any(|l| l.carried_bps.is_some());
    let mut head = columns("name,utilisation,packets,queue_mean_packets,queue_peak_packets");
    head.extend(carried.then(|| "carried_bps".to_owned()));
    head.extend(causes.iter().map(|cause| format!("dropped_{cause}")));
    let row = |l: &LinkReport| {
        let (name, q) = (l.name.to_string(), l.queue_packets);
        let packets = l.packets.to_string();
        let mut cells = vec![name, number(l.utilisation), packets, number(q.mean), q.peak.to_string()];
        cells.extend(carried.then(|| optional(l.carried_bps)));
        cells.extend(causes.iter().map(|cause| count(&l.drops, cause)));
        cells
    };
    csv(head, report.links.iter().map(row))
}

/// Returns `references.csv`.
pub(crate) fn references(rows: &[ReferenceReport]) -> String {
    let row = |r: &ReferenceReport| {
        let (value, reference, deviation) = (optional(r.value), number(r.reference), optional(r.deviation));
        vec![r.metric.clone(), r.unit.clone(), value, reference, deviation, r.source.clone()]
    };
    csv(columns("metric,unit,value,reference,deviation,source"), rows.iter().map(row))
}

/// Returns `gateways.csv`, with a column for each reason and each cause that occurs.
pub(crate) fn gateways(rows: &[GatewayReport]) -> String {
    let (reasons, causes) = (keys(rows, |g| &g.flows.passed), keys(rows, |g| &g.not_forwarded));
    let mut head =
        columns("name,accelerated,forwarded,losses,repairs,resent,copies,timeouts,held_peak_bytes");
    head.extend(reasons.iter().map(|key| format!("passed_{key}")));
    head.extend(causes.iter().map(|key| format!("not_forwarded_{key}")));
    let row = |g: &GatewayReport| {
        let mut cells = vec![g.name.clone(), g.flows.accelerated.to_string()];
        cells.extend(gateway_counts(g).map(|n| n.to_string()));
        cells.push(g.held_peak_bytes.to_string());
        cells.extend(reasons.iter().map(|key| count(&g.flows.passed, key)));
        cells.extend(causes.iter().map(|key| count(&g.not_forwarded, key)));
        cells
    };
    csv(head, rows.iter().map(row))
}

/// Returns the counts of a gateway's packets and timeouts, in the order of the columns.
pub(crate) const fn gateway_counts(g: &GatewayReport) -> [u64; 6] {
    [g.forwarded, g.losses, g.repairs, g.resent, g.copies, g.timeouts]
}

/// Returns `flow-routers.csv`.
pub(crate) fn flow_routers(rows: &[FlowRouterReport]) -> String {
    let head =
        columns("name,flows,requests,refused,preempted,reductions,policed,reserved_bps,given_bps,used_bps");
    let row = |r: &FlowRouterReport| {
        let mut cells = vec![r.name.clone()];
        cells.extend(router_counts(r).map(|n| n.to_string()));
        cells.extend(router_rates(r).map(|bps| bps.to_string()));
        cells
    };
    csv(head, rows.iter().map(row))
}

/// Returns the counts of a flow router, in the order of the columns.
pub(crate) const fn router_counts(r: &FlowRouterReport) -> [u64; 6] {
    [r.flows, r.requests, r.refused, r.preempted, r.reductions, r.policed]
}

/// Returns the rates of a flow router in bit/s, in the order of the columns.
pub(crate) const fn router_rates(r: &FlowRouterReport) -> [u64; 3] {
    [r.reserved_bps, r.given_bps, r.used_bps]
}

/// Formats the count of a cause; 0 if it did not occur.
pub(crate) fn count(counts: &Counts, cause: &str) -> String {
    counts.get(cause).map_or_else(|| "0".to_owned(), ToString::to_string)
}

/// Returns the column names from a list separated by commas.
fn columns(names: &str) -> Vec<String> {
    names.split(',').map(str::to_owned).collect()
}

/// Returns the keys of the counts of all items, in order of first occurrence.
pub(crate) fn keys<T>(items: &[T], of: fn(&T) -> &Counts) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for key in items.iter().flat_map(|item| of(item).keys()) {
        if !all.contains(&key.as_str()) {
            all.push(key);
        }
    }
    all
}

/// Returns the CSV table of an instrument.
pub(crate) fn instrument(instrument: &InstrumentReport) -> String {
    let rows = instrument.rows.iter().map(|row| row.iter().copied().map(number).collect());
    csv(instrument.columns.clone(), rows)
}
