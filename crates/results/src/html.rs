//! `report.html`: a single file that fetches nothing.

use crate::{FinishedCapture, Outcome, alike, exchange, figures, instruments, limits, tables};
use bentpipe_plot::{LIVE_STYLE, Mode, PAGE_STYLE, Plot, STYLE, TABLE_STYLE, live_script};
use bentpipe_report::{
    FlowReport, FlowRouterReport, GatewayReport, LimitedBy, LinkReport, LiveReport, ReferenceReport, Report,
};
use core::fmt::Write as _;

/// Maximum number of rows of a table; the CSV file has all.
const MOST_ROWS: usize = 50;

const WORDS: &str = ".words{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:1.5rem 0 0}\n";

/// Styles beyond those of plots and tables.
const REST: &str = "\
th:first-child,td:first-child{text-align:left}
.small{font-size:.875rem;color:var(--plot-grey)}
pre.code{overflow-x:auto;padding:.75rem;border:1px solid var(--plot-grid);font-size:.8125rem;line-height:1.4}
summary{cursor:pointer;padding:.4rem 0}
@media print{body{max-width:none;font-size:11pt}.plots{grid-template-columns:1fr 1fr}svg,tr{break-inside:avoid}\
pre.code{white-space:pre-wrap}}
@media screen{.wide{overflow-x:auto}.wide>svg{min-width:760px}}
.mark{border:2px solid var(--plot-2);padding:.5rem .75rem;font-weight:600}
.headline{font-size:1.15rem;font-weight:600;margin:.5rem 0 1rem}
";

/// Creates the page. `files` are the other files of the folder.
pub(crate) fn page(outcome: &Outcome<'_>, files: &[String]) -> String {
    let report = outcome.report;
    let mut out = head(&report.scenario);
    if let Some(mark) = report.live.as_ref().and_then(LiveReport::warning) {
        let _ = writeln!(out, "<p class=\"mark\" role=\"alert\">{}</p>", escape(&mark));
    }
    let _ = writeln!(out, "<p class=\"headline\">{}</p>", escape(&report.headline()));
    let mut groups = figures::all(report, outcome.record).into_iter().peekable();
    // first what limited the flows, beside their goodput
    let of_all = groups.next_if(|(heading, _)| heading == figures::ALL_FLOWS).map(|(_, plots)| plots);
    let strip = limits::strip(&[("", outcome.record)]).map(|strip| strip.to_svg(Mode::Inline));
    section(&mut out, figures::ALL_FLOWS, strip, &of_all.unwrap_or_default());
    let words = report.in_words();
    let words = words.strip_prefix(report.scenario.as_str()).unwrap_or(&words).trim();
    let _ = write!(out, "<section>\n<pre class=\"words\">{}</pre>\n</section>\n", escape(words));
    references(&mut out, report);
    for (heading, plots) in groups {
        section(&mut out, &heading, None, &plots);
    }
    for ladder in exchange::ladders(report, outcome.record) {
        let _ = write!(
            out,
            "<section>\n<h2>Rate signalling</h2>\n<div class=\"wide\" tabindex=\"0\">\n{}</div>\n</section>\n",
            ladder.to_svg(Mode::Inline)
        );
    }
    for i in &report.instruments {
        let heading = format!("Instrument {}: {}", i.name, i.kind.replace('-', " "));
        section(&mut out, &heading, None, &instruments::plots(i));
    }
    section(&mut out, "Goodput against bit error rate", None, &scatter(report));
    flow_table(&mut out, &report.flows);
    application_tables(&mut out, report);
    link_table(&mut out, report);
    gateways(&mut out, report);
    flow_routers(&mut out, report);
    manifest(&mut out, outcome, files);
    out + &foot()
}

/// What a browser lets a page do, also where it is shown within another one: its own scripts and styles run,
/// and nothing is fetched.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// The beginning of a page with plots and tables.
pub(crate) fn head(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<title>{title}</title>\n\
         <style>{STYLE}{PAGE_STYLE}{WORDS}{TABLE_STYLE}{REST}{LIVE_STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n"
    )
}

/// The end of such a page.
pub(crate) fn foot() -> String {
    format!("</main>\n{}</body>\n</html>\n", live_script())
}

/// Creates scatter plots of every bins instrument against every side channel.
fn scatter(report: &Report) -> Vec<Plot> {
    let of = |kind: &'static str| report.instruments.iter().filter(move |i| i.kind == kind);
    of("bins")
        .flat_map(|b| of("side-channel").filter_map(move |c| instruments::goodput_over_ber(b, c)))
        .collect()
}

/// Writes a section with plots, behind a picture of another kind.
pub(crate) fn section(out: &mut String, heading: &str, first: Option<String>, plots: &[Plot]) {
    if plots.is_empty() && first.is_none() {
        return;
    }
    let _ = write!(out, "<section>\n<h2>{}</h2>\n<div class=\"plots\">\n", escape(heading));
    out.extend(first);
    out.extend(plots.iter().map(Plot::to_live));
    out.push_str("</div>\n</section>\n");
}

/// Heading of a column of the table of flows, and what is in a flow's cell.
type FlowColumn = (&'static str, fn(&FlowReport) -> String);

const FLOW_COLUMNS: [FlowColumn; 11] = [
    ("flow", |f| f.name.to_string()),
    ("TCP", |f| f.scheme().to_owned()),
    ("goodput, kbit/s", |f| format!("{:.1}", f.goodput_bps / 1e3)),
    ("finished, s", |f| fixed(f.tcp_or_zeros().finished_s, 3)),
    ("segments", |f| f.tcp_or_zeros().segments_sent.to_string()),
    ("resent", |f| f.tcp_or_zeros().retransmits.to_string()),
    ("timeouts", |f| f.tcp_or_zeros().timeouts.to_string()),
    ("RTT least, ms", |f| fixed(f.tcp_or_zeros().rtt_ms.min, 1)),
    ("RTT median, ms", |f| fixed(f.tcp_or_zeros().rtt_ms.p50, 1)),
    ("RTT 99 %, ms", |f| fixed(f.tcp_or_zeros().rtt_ms.p99, 1)),
    ("limited most by", main_limit),
];

fn fixed(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"))
}

fn main_limit(flow: &FlowReport) -> String {
    limit_in_words(&flow.tcp_or_zeros().limited_by)
}

fn limit_in_words(limited_by: &LimitedBy) -> String {
    match limited_by.main() {
        (key, share) if share > 0.0 => format!("{} {:.0} %", key.replace('_', " "), 100.0 * share),
        _ => "–".to_owned(),
    }
}

/// Writes the table of flows, in which flows alike are one row; below it each of them, folded.
fn flow_table(out: &mut String, flows: &[FlowReport]) {
    let row = |f: &FlowReport| Vec::from(FLOW_COLUMNS.map(|(_, cell)| cell(f)));
    let groups = alike::groups(flows);
    let folded_row = |members: &Vec<&FlowReport>| {
        let [first, .., last] = members.as_slice() else { return row(members[0]) };
        let cells = FLOW_COLUMNS.map(|(_, cell)| members.iter().map(|f| cell(f)).collect::<Vec<_>>());
        let mut cells: Vec<String> = cells.iter().map(|cells| alike::folded(cells)).collect();
        cells[0] = format!("{} to {}: {} flows", first.name, last.name, members.len());
        let mean = LimitedBy::mean(members.iter().map(|f| &f.tcp_or_zeros().limited_by));
        *cells.last_mut().expect("there are columns") = limit_in_words(&mean);
        cells
    };
    let head = FLOW_COLUMNS.map(|(heading, _)| heading);
    let rows: Vec<_> = groups.iter().map(folded_row).collect();
    table(out, "Flows", &head, &rows, "flows.csv");
    for members in groups.iter().filter(|members| members.len() > 1) {
        let (first, last) = (&members[0].name, &members[members.len() - 1].name);
        let summary = format!("Each of the {} flows {first} to {last}", members.len());
        let _ = write!(out, "<details>\n<summary>{}</summary>\n", escape(&summary));
        rows_of(out, &summary, &head, &members.iter().map(|f| row(f)).collect::<Vec<_>>(), "flows.csv");
        out.push_str("</details>\n");
    }
}

/// Writes the tables of requests, typing, datagrams and granted rates.
fn application_tables(out: &mut String, report: &Report) {
    for (columns, rows) in tables::by_application(report) {
        let heading = match columns.first() {
            Some(&"requests_completed") => "Requests",
            Some(&"writes") => "Typing",
            Some(&"asked_bps") => "Granted rates",
            _ => "Datagrams",
        };
        let head: Vec<String> = core::iter::once("flow".to_owned())
            .chain(columns.iter().map(|key| heading_in_words(key)))
            .collect();
        let cell = |(i, cell): (usize, &String)| if i == 0 { cell.clone() } else { rounded(cell) };
        let row = |row: &Vec<String>| row.iter().enumerate().map(cell).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
        table(out, heading, &head, &rows, "flows.csv");
    }
}

/// Rounds to 0.1 ms; a dash if there is no value.
fn rounded(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(v) if cell.contains('.') => format!("{v:.1}"),
        _ if cell.is_empty() => "–".to_owned(),
        _ => cell.to_owned(),
    }
}

/// Returns a column heading in words.
fn heading_in_words(key: &str) -> String {
    let words = [
        ("_ms", ", ms"),
        ("_bps", ", bit/s"),
        ("_min", " least"),
        ("_p50", " median"),
        ("_p99", " 99 %"),
        ("_", " "),
        ("ack ", "acknowledged after "),
    ];
    words.iter().fold(key.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn link_table(out: &mut String, report: &Report) {
    let causes = tables::keys(&report.links, |l| &l.drops);
    let row = |l: &LinkReport| {
        let mut cells = vec![
            l.name.to_string(),
            format!("{:.1}", 100.0 * l.utilisation),
            l.packets.to_string(),
            format!("{:.2}", l.queue_packets.mean),
            l.queue_packets.peak.to_string(),
        ];
        cells.extend(causes.iter().map(|cause| tables::count(&l.drops, cause)));
        cells
    };
    let mut head: Vec<String> =
        ["link", "utilisation, %", "packets", "queue, mean packets", "queue, most packets"]
            .map(String::from)
            .to_vec();
    head.extend(causes.iter().map(|c| format!("dropped: {}", c.replace('_', " "))));
    table(out, "Links", &head, &report.links.iter().map(row).collect::<Vec<_>>(), "links.csv");
}

/// Writes the table of reference values beside those of this run.
fn references(out: &mut String, report: &Report) {
    if report.references.is_empty() {
        return;
    }
    let row = |r: &ReferenceReport| {
        // rates in Mbit/s, all other values as they are
        let (size, unit) = if r.unit == "bit/s" { (1e6, "Mbit/s") } else { (1.0, r.unit.as_str()) };
        let shown = |v: f64| format!("{:.3}", v / size);
        let none = || "–".to_owned();
        vec![
            r.metric.clone(),
            r.value.map_or_else(none, shown),
            shown(r.reference),
            unit.to_owned(),
            r.deviation.map_or_else(none, |d| format!("{:+.1}", 100.0 * d)),
            r.source.clone(),
        ]
    };
    let head = ["figure", "this run", "reference", "unit", "difference, %", "found in"];
    let rows: Vec<_> = report.references.iter().map(row).collect();
    table(out, "Beside what others found", &head, &rows, "references.csv");
}

fn gateways(out: &mut String, report: &Report) {
    if report.gateways.is_empty() {
        return;
    }
    let reasons = tables::keys(&report.gateways, |g| &g.flows.passed);
    let row = |g: &GatewayReport| {
        let mut cells = vec![g.name.clone(), g.flows.accelerated.to_string()];
        cells.extend(reasons.iter().map(|key| tables::count(&g.flows.passed, key)));
        cells.extend(tables::gateway_counts(g).map(|n| n.to_string()));
        cells.push(format!("{:.1}", g.held_peak_bytes as f64 / 1e3));
        cells
    };
    let mut head = vec!["gateway".to_owned(), "flows accelerated".to_owned()];
    head.extend(reasons.iter().map(|key| format!("passed: {}", key.replace('_', " "))));
    head.extend(
        ["packets", "lost in the hop", "repaired", "resent", "copies", "timeouts", "held at most, kB"]
            .map(String::from),
    );
    let rows: Vec<_> = report.gateways.iter().map(row).collect();
    table(out, "Gateways", &head, &rows, "gateways.csv");
}

fn flow_routers(out: &mut String, report: &Report) {
    if report.flow_routers.is_empty() {
        return;
    }
    let row = |r: &FlowRouterReport| {
        let mut cells = vec![r.name.clone()];
        cells.extend(tables::router_counts(r).map(|n| n.to_string()));
        cells.extend(tables::router_rates(r).map(|bps| format!("{:.3}", bps as f64 / 1e6)));
        cells
    };
    let head = [
        "flow router",
        "flows",
        "requests",
        "refused",
        "preempted",
        "reductions",
        "packets policed",
        "reserved, Mbit/s",
        "given, Mbit/s",
        "used, Mbit/s",
    ];
    let rows: Vec<_> = report.flow_routers.iter().map(row).collect();
    table(out, "Flow routers", &head, &rows, "flow-routers.csv");
}

fn manifest(out: &mut String, outcome: &Outcome<'_>, files: &[String]) {
    let report = outcome.report;
    let row = |what: &str, value: String| vec![what.to_owned(), value];
    let time = if report.live.is_some() { "ran" } else { "simulated" };
    let mut rows = vec![
        row("bentpipe", report.version.clone()),
        row("seed", report.seed.map_or_else(String::new, |seed| seed.to_string())),
        row(time, format!("{} s", tables::number(report.simulated_s))),
    ];
    let shown = |v: &serde_json::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    if let Some(live) = &report.live {
        rows.push(row("kernel", format!("Linux {}", live.kernel)));
    }
    rows.extend(report.parameters.iter().map(|(k, v)| row(&format!("parameter {k}"), shown(v))));
    table(out, "How this was made", &["what", "value"], &rows, "manifest.json");
    let link = |file: &String| format!("<a href=\"{0}\">{0}</a>", escape(file));
    let links: Vec<String> = files.iter().map(link).collect();
    if !links.is_empty() {
        let _ = writeln!(out, "<p>Files beside this page: {}.</p>", links.join(", "));
    }
    let note = |c: &FinishedCapture, text: &str| {
        format!("<p>The capture of {} ({}) {text}</p>\n", escape(&c.link), c.point)
    };
    for c in outcome.captures.iter().filter(|c| c.missing > 0) {
        let (packets, missing) = (c.packets, c.missing);
        let text = format!("reached its limit: {packets} packets are in it, {missing} later ones are not.");
        *out += &note(c, &text);
    }
    for c in outcome.captures.iter().filter(|c| c.lost > 0) {
        *out += &note(c, &format!("lacks {} packets: the disk was too slow for them.", c.lost));
    }
    let _ = write!(
        out,
        "<details>\n<summary>The resolved scenario; it is a scenario file itself</summary>\n<pre class=\"code\">{}</pre>\n</details>\n",
        escape(&bentpipe_scenario::to_toml(outcome.scenario))
    );
}

/// Writes a table with its heading. `rest` is the file with all rows.
pub(crate) fn table(
    out: &mut String,
    heading: &str,
    head: &[impl AsRef<str>],
    rows: &[Vec<String>],
    rest: &str,
) {
    let _ = write!(out, "<section>\n<h2>{}</h2>\n", escape(heading));
    rows_of(out, heading, head, rows, rest);
    out.push_str("</section>\n");
}

/// Writes at most [`MOST_ROWS`] rows of a table.
fn rows_of(out: &mut String, label: &str, head: &[impl AsRef<str>], rows: &[Vec<String>], rest: &str) {
    let _ = write!(
        out,
        "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n<thead><tr>",
        escape(label)
    );
    for cell in head {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(cell.as_ref()));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows.iter().take(MOST_ROWS) {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    if rows.len() > MOST_ROWS {
        let _ = writeln!(
            out,
            "<p class=\"small\">The first {MOST_ROWS} of {}; all are in <a href=\"{rest}\">{rest}</a>.</p>",
            rows.len()
        );
    }
}

/// Escapes text for the content of an element or attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
