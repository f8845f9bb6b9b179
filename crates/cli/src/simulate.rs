//! Runs the simulator.

use crate::expect::{Expect, judge_all};
use crate::outcome::{Failure, NOT_MET, print_as, print_message};
use crate::{json, locale};
use bentpipe_report::Report;
use bentpipe_results::{Formats, limits_in_lines, record_for_lines};
use bentpipe_scenario::Scenario;
use bentpipe_sim::{Record, RecordOptions, run_each_packet};
use std::path::Path;

/// What is printed and written beside the report.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    /// The report as JSON.
    pub(crate) json: bool,
    /// Nothing is skipped.
    pub(crate) each_packet: bool,
    /// Folder for the results.
    pub(crate) out: Option<&'a Path>,
    /// Files of pictures in it.
    pub(crate) pictures: Formats,
}

/// Runs a scenario and prints the report as text or JSON. With a folder, all other output goes into it.
/// Returns the exit status, which says whether every expectation is met.
pub(crate) fn run(scenario: &Scenario, output: Output<'_>, expects: &[Expect]) -> Result<u8, Failure> {
    expects.iter().try_for_each(|expect| expect.check("--expect", scenario))?;
    let (report, record) = match output.out {
        None if output.json && output.each_packet => (run_each_packet(scenario), Record::default()),
        None if output.json => (bentpipe_sim::run(scenario), Record::default()),
        None => {
            let options = RecordOptions { each_packet: output.each_packet, ..record_for_lines(scenario) };
            bentpipe_sim::run_recorded(scenario, &options, |_| None)
        }
        Some(folder) => {
            let (report, record, files) =
                bentpipe_results::run_with(folder, scenario, output.pictures).map_err(Failure::run)?;
            print_message(&format!("{} files in {}", files.len(), folder.display()));
            (report, record)
        }
    };
    let all_met = judge_all(expects, &report, "");
    if output.json {
        json::print(&report)?;
    } else {
        print_as(&in_words(&report, &record), false)?;
    }
    Ok(if all_met { 0 } else { NOT_MET })
}

/// The report as text, with what limited the flows over time.
pub(crate) fn in_words(report: &Report, record: &Record) -> String {
    report.to_text_with(&limits_in_lines(record, !locale::is_utf8()))
}
