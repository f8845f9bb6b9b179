//! Several runs on one page.

mod plots;
mod read;

pub use read::{SavedRun, ShowError, read_all};

use crate::html::{escape, foot, head, section, table};
use crate::pictures::{self, Picture};
use crate::{Error, file, limits};
use bentpipe_plot::{Formats, Mode, Strip};
use bentpipe_report::{FlowReport, aligned, decimals};
use bentpipe_sim::Record;
use core::fmt::Write as _;
use plots::{bars, courses, distributions};
use std::path::{Path, PathBuf};

/// Maximum number of runs on a page.
pub(crate) const MOST_RUNS: usize = 12;
/// Longest cell of the text; the page has all of it.
const MOST_CHARACTERS: usize = 30;
/// The page.
pub const PAGE: &str = "show.html";

const HEAD: [&str; 7] =
    ["run", "TCP", "flows", "goodput, Mbit/s", "RTT median, ms", "RTT 99 %, ms", "resent, %"];

/// Writes the page, and its pictures in `formats`, into a folder. Returns the paths, the page first.
///
/// # Errors
/// A file cannot be written.
pub fn write(dir: &Path, runs: &[SavedRun], formats: Formats) -> Result<Vec<PathBuf>, Error> {
    file::make_folder(dir)?;
    let mut paths = vec![file::write_file(dir, PAGE, page(runs).as_bytes())?];
    let plots = courses(runs).into_iter().chain(distributions(runs)).chain(bars(runs));
    let strip = strip(runs).map(|strip| ("limits".to_owned(), Picture::Strip(strip)));
    let plots = plots.map(|p| (p.title.clone(), Picture::Plot(p)));
    let named: Vec<(String, Picture)> = strip.into_iter().chain(plots).collect();
    paths.extend(pictures::write(dir, &named, formats)?);
    Ok(paths)
}

/// The runs in text: for each a headline, what limited its flows over time, and a row; and what they differ
/// in. `ascii` is for terminals that show nothing else.
pub fn in_words(runs: &[SavedRun], ascii: bool) -> String {
    let beginning = |run: &SavedRun| {
        let lines = limits::limits_in_lines(&run.record, ascii);
        format!("{}: {}\n{lines}", run.name, run.report.headline())
    };
    let mut out: String = runs.iter().map(beginning).collect();
    out.push('\n');
    let to_rows = |head: Vec<String>, rows: Vec<Vec<String>>| [vec![head], rows].concat();
    out += &aligned(&to_rows(HEAD.map(str::to_owned).to_vec(), runs.iter().map(row).collect()), &[0, 1]);
    let (head, mut differing) = differences(runs);
    for cell in differing.iter_mut().flatten().filter(|cell| cell.chars().count() > MOST_CHARACTERS) {
        *cell = cell.chars().take(MOST_CHARACTERS - 1).chain(['…']).collect();
    }
    if !differing.is_empty() {
        out.push('\n');
        out += &aligned(&to_rows(head, differing), &[0]);
    }
    out
}

fn page(runs: &[SavedRun]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = if let [name] = names.as_slice() {
        (*name).to_owned()
    } else {
        format!("{} runs: {}", runs.len(), names.join(", "))
    };
    let mut out = head(&title);
    for run in runs {
        let (name, words) = (escape(&run.name), escape(&run.report.headline()));
        let _ = writeln!(out, "<p><strong>{name}</strong>: {words}</p>");
    }
    let limits = strip(runs).map(|strip| strip.to_svg(Mode::Inline));
    section(&mut out, "Throughput, and latency under load", limits, &courses(runs));
    section(&mut out, "Distributions", None, &distributions(runs));
    section(&mut out, "Schemes", None, &bars(runs));
    table(&mut out, "Runs", &HEAD, &runs.iter().map(row).collect::<Vec<_>>(), "");
    let (columns, rows) = differences(runs);
    if !rows.is_empty() {
        table(&mut out, "What differs", &columns, &rows, "");
    }
    out + &foot()
}

fn strip(runs: &[SavedRun]) -> Option<Strip> {
    if let [run] = runs {
        return limits::strip(&[("", &run.record)]);
    }
    let named: Vec<(&str, &Record)> = runs.iter().map(|run| (run.name.as_str(), &run.record)).collect();
    limits::strip(&named)
}

/// The row of a run in the table of runs.
fn row(run: &SavedRun) -> Vec<String> {
    let report = &run.report;
    let mut schemes: Vec<&str> = report.flows.iter().map(FlowReport::scheme).collect();
    schemes.sort_unstable();
    schemes.dedup();
    let sum = |of: fn(&FlowReport) -> u64| report.flows.iter().map(of).sum::<u64>();
    let (sent, resent) = (sum(|f| f.tcp_or_zeros().segments_sent), sum(|f| f.tcp_or_zeros().retransmits));
    let shown = |v: Option<f64>, digits| v.map_or_else(|| "–".to_owned(), |v| decimals(v, digits));
    vec![
        run.name.clone(),
        schemes.join(", "),
        report.flows.len().to_string(),
        shown(Some(report.total.goodput_bps / 1e6), 3),
        shown(plots::mean_of(report, |q| q.p50), 1),
        shown(plots::mean_of(report, |q| q.p99), 1),
        shown((sent > 0).then(|| 100.0 * resent as f64 / sent as f64), 2),
    ]
}

/// Scenario, seed, version and parameters in which the runs differ: a column for each run.
fn differences(runs: &[SavedRun]) -> (Vec<String>, Vec<Vec<String>>) {
    let head = core::iter::once("what differs".to_owned()).chain(runs.iter().map(|run| run.name.clone()));
    let mut keys: Vec<&str> =
        runs.iter().flat_map(|run| run.report.parameters.keys().map(String::as_str)).collect();
    let mut seen = std::collections::BTreeSet::new();
    keys.retain(|key| seen.insert(*key));
    let cells = |name: &str, of: &dyn Fn(&SavedRun) -> Option<String>| -> Vec<String> {
        let values = runs.iter().map(|run| of(run).unwrap_or_else(|| "–".to_owned()));
        core::iter::once(name.to_owned()).chain(values).collect()
    };
    let text = |v: &serde_json::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let mut rows = vec![
        cells("scenario", &|run| Some(run.report.scenario.clone())),
        cells("seed", &|run| run.report.seed.map(|seed| seed.to_string())),
        cells("time, s", &|run| Some(decimals(run.report.simulated_s, 3))),
        cells("packets", &|run| {
            Some(if run.report.live.is_some() { "real" } else { "simulated" }.to_owned())
        }),
        cells("bentpipe", &|run| Some(run.report.version.clone())),
    ];
    rows.extend(keys.iter().map(|key| cells(key, &|run| run.report.parameters.get(*key).map(text))));
    rows.retain(|row| row[1..].iter().any(|cell| *cell != row[1]));
    (head.collect(), rows)
}
