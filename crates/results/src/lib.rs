//! Writes the results of a run to a folder: a page with plots, tables, packet captures and a manifest.

mod alike;
mod capture;
mod exchange;
mod figures;
mod file;
mod html;
mod instruments;
mod limits;
mod marks;
mod packet;
mod pcapng;
mod pictures;
mod series;
pub mod show;
mod tables;

pub use bentpipe_plot::Formats;
pub use capture::{CaptureFiles, CapturedPacket, FinishedCapture};
pub use file::{Error, make_folder};
pub use limits::{limits_in_lines, record_for_lines};

use bentpipe_report::Report;
use bentpipe_scenario::Scenario;
use bentpipe_sim::run::SharedSink;
use bentpipe_sim::{Record, RecordOptions, run_recorded};
use serde_json::json;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Number of flows with time-sequence plots.
const SEQUENCES: usize = 4;

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The report.
    pub report: &'a Report,
    /// The time series.
    pub record: &'a Record,
    /// Capture files written.
    pub captures: &'a [FinishedCapture],
}

/// Runs `scenario` and writes all results to `dir`. Returns the report and the files, the page first.
///
/// # Errors
/// A file cannot be written. Existing files are complete.
pub fn run(dir: &Path, scenario: &Scenario) -> Result<(Report, Vec<PathBuf>), Error> {
    run_with(dir, scenario, Formats::default()).map(|(report, _, files)| (report, files))
}

/// As [`run`], and writes the pictures in `formats`. Also returns the record.
///
/// # Errors
/// As for [`run`].
pub fn run_with(
    dir: &Path,
    scenario: &Scenario,
    formats: Formats,
) -> Result<(Report, Record, Vec<PathBuf>), Error> {
    file::make_folder(dir)?;
    let watch = RecordOptions { sequences: SEQUENCES, ..RecordOptions::default() };
    let mut sink = Ok(None);
    let (report, record) = run_recorded(scenario, &watch, |net| {
        if scenario.captures.is_empty() {
            return None;
        }
        let made = capture::CaptureSink::create(dir, scenario, &net.links).map(|s| Rc::new(RefCell::new(s)));
        let shared = made.as_ref().ok().map(|s| Rc::clone(s) as SharedSink);
        sink = made.map(Some);
        shared
    });
    let captures = sink?.map_or_else(|| Ok(Vec::new()), |sink| sink.borrow_mut().files.finish())?;
    let outcome = Outcome { scenario, report: &report, record: &record, captures: &captures };
    let files = write(dir, &outcome, formats)?;
    Ok((report, record, files))
}

/// Writes all files except captures, which exist already, to `dir`, with the pictures in `formats`. Returns
/// paths, page first, captures and pictures last.
///
/// # Errors
/// A file cannot be written. Existing files are complete, and files with other names remain.
pub fn write(dir: &Path, outcome: &Outcome<'_>, formats: Formats) -> Result<Vec<PathBuf>, Error> {
    file::make_folder(dir)?;
    let report = outcome.report;
    let mut texts = vec![
        ("report.json".to_owned(), report.to_json() + "\n"),
        ("series.csv".to_owned(), tables::series(outcome.record)),
        ("flows.csv".to_owned(), tables::flows(report)),
        ("links.csv".to_owned(), tables::links(report)),
    ];
    if !report.gateways.is_empty() {
        texts.push(("gateways.csv".to_owned(), tables::gateways(&report.gateways)));
    }
    if !report.flow_routers.is_empty() {
        texts.push(("flow-routers.csv".to_owned(), tables::flow_routers(&report.flow_routers)));
    }
    if !report.references.is_empty() {
        texts.push(("references.csv".to_owned(), tables::references(&report.references)));
    }
    for (ladder, name) in exchange::ladders(report, outcome.record).iter().zip(["exchange.svg"]) {
        texts.push((name.to_owned(), ladder.to_svg(bentpipe_plot::Mode::Standalone)));
    }
    let mut taken: Vec<String> = Vec::new();
    for instrument in &report.instruments {
        let mut name = capture::safe_file_name(&instrument.name);
        while taken.contains(&name) {
            name.push('-');
        }
        texts.push((format!("instrument-{name}.csv"), tables::instrument(instrument)));
        taken.push(name);
    }
    let mut names: Vec<String> = texts.iter().map(|(name, _)| name.clone()).collect();
    let capture_name = |c: &FinishedCapture| c.path.file_name().map(|n| n.to_string_lossy().into_owned());
    names.extend(outcome.captures.iter().filter_map(capture_name));
    names.push("manifest.json".to_owned());
    let drawn = if formats == Formats::default() {
        Vec::new()
    } else {
        pictures::write(dir, &pictures::of_run(report, outcome.record), formats)?
    };
    let file_name = |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
    names.extend(drawn.iter().filter_map(file_name));
    texts.insert(0, ("report.html".to_owned(), html::page(outcome, &names)));
    names.insert(0, "report.html".to_owned());
    // written last, so that a folder with a manifest is complete
    texts.push(("manifest.json".to_owned(), manifest(outcome, &names)));
    let written = texts.iter().map(|(name, text)| file::write_file(dir, name, text.as_bytes()));
    let mut paths = written.collect::<Result<Vec<PathBuf>, Error>>()?;
    paths.extend(outcome.captures.iter().map(|c| c.path.clone()));
    paths.extend(drawn);
    Ok(paths)
}

/// Returns the page alone, for those who keep no folder: it names no files.
pub fn page(outcome: &Outcome<'_>) -> String {
    html::page(outcome, &[])
}

/// Returns `manifest.json`: what is needed to repeat the run. It does not depend on machine and clock if the
/// run is simulated.
fn manifest(outcome: &Outcome<'_>, files: &[String]) -> String {
    let report = outcome.report;
    let captures: Vec<_> = (outcome.captures.iter())
        .map(|c| {
            let mut entry = json!({
                "link": c.link,
                "point": c.point,
                "file": c.path.file_name().map(|n| n.to_string_lossy().into_owned()),
                "packets": c.packets,
                "missing": c.missing,
            });
            if c.lost > 0 {
                entry["lost"] = c.lost.into();
            }
            entry
        })
        .collect();
    let mut manifest = json!({
        "schema": 1,
        "program": "bentpipe",
        "version": report.version,
        "scenario": report.scenario,
        "seed": report.seed,
        "simulated_s": report.simulated_s,
        "parameters": report.parameters,
        "interval_s": outcome.record.every.as_secs_f64(),
        "files": files,
        "captures": captures,
        "resolved_scenario": bentpipe_scenario::to_toml(outcome.scenario),
    });
    if let Some(live) = &report.live {
        manifest["live"] = json!({ "kernel": live.kernel, "trusted": live.trusted });
    }
    format!("{manifest:#}\n")
}
