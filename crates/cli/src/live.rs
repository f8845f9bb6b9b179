//! Live runs for figures. Each is made by a process of its own, this program with the hidden command
//! `__measure`: a process can open one session only, before it starts threads, and one that makes figures has
//! threads. It reads the resolved scenario from its standard input, and writes report and course to its
//! standard output.

use crate::outcome::{BAD_INPUT, Failure, print_message};
use bentpipe_emulate::measure;
use bentpipe_emulate::plan::Plan;
use bentpipe_report::Report;
use bentpipe_scenario::{Scenario, Source};
use bentpipe_sim::Record;
use bentpipe_sim::record::{Column, FLOW_COLUMNS, LINK_COLUMNS, Series};
use bentpipe_sweep::figure::{LiveError, LiveRun, LiveRunner};
use core::fmt::Display;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};

/// A run that is over soon, to find out whether the machine allows any.
const TRIAL: &str = "schema = 1\ntitle = \"trial\"\nduration = \"100 ms\"\n[dumbbell]\nrtt = \"10 ms\"\n\
                     rate = \"10 Mbit/s\"\nbuffer = \"10 packets\"\n\
                     access = { rate = \"10 Mbit/s\", delay = \"1 ms\", buffer = \"10 packets\" }\n\
                     [[flows]]\nname = \"flow\"\nfrom = \"src1\"\nto = \"dst1\"\n";

/// Runs scenarios with the kernel's TCP and ours, in network namespaces.
#[derive(Debug)]
pub(crate) struct RealPackets(());

impl RealPackets {
    /// Makes a short run, so that a machine that allows none is found before the first simulated run.
    pub(crate) fn new() -> Result<Self, Failure> {
        let scenario = bentpipe_scenario::load(&Source::new("trial", TRIAL), &[], None)?;
        match run(&scenario) {
            Ok(_) => Ok(Self(())),
            Err(error) if error.refused => Err(Failure::input(error)),
            Err(error) => Err(Failure::run(error)),
        }
    }
}

impl LiveRunner for RealPackets {
    fn check(&self, scenario: &Scenario) -> Result<(), LiveError> {
        measure::check(scenario).map_err(|e| LiveError { text: e.to_string(), refused: e.is_refusal() })
    }

    fn run(&self, scenario: &Scenario) -> Result<LiveRun, LiveError> {
        run(scenario)
    }
}

fn run(scenario: &Scenario) -> Result<LiveRun, LiveError> {
    let failed = |what: &dyn Display| LiveError { text: format!("a live run: {what}"), refused: false };
    let output = of_child(&bentpipe_scenario::to_toml(scenario)).map_err(|e| failed(&e))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let text = said.trim().trim_start_matches("error: ");
        let text = if text.is_empty() { output.status.to_string() } else { text.to_owned() };
        let refused = output.status.code() == Some(BAD_INPUT.into());
        return Err(LiveError { text: format!("a live run: {text}"), refused });
    }
    said.lines().for_each(print_message);
    let seen: Seen = serde_json::from_slice(&output.stdout).map_err(|e| failed(&e))?;
    Ok(seen.into())
}

/// Runs the command with this scenario.
fn of_child(scenario: &str) -> io::Result<Output> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("__measure").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // it ends by itself if the pipe breaks, and says why
    let _ = child.stdin.take().map(|mut input| input.write_all(scenario.as_bytes()));
    child.wait_with_output()
}

/// The hidden command: runs the scenario on standard input, and returns its results as JSON.
pub(crate) fn measure() -> Result<String, Failure> {
    // a figure that is killed leaves no live run behind
    let end_with_parent = || set_parent_process_death_signal(Some(Signal::TERM));
    end_with_parent().map_err(Failure::run)?;
    let text = io::read_to_string(io::stdin()).map_err(Failure::run)?;
    let scenario = bentpipe_scenario::load(&Source::new("the resolved scenario", text), &[], None)?;
    let plan = Plan::new(scenario, "figure");
    // a new user namespace may have cleared it
    let mut begun = || {
        let _ = end_with_parent();
    };
    let measured = measure::run(&plan, &mut begun, &mut |line| print_message(line), &mut |_, _| ())?;
    if let Some(signal) = measured.interrupted {
        return Err(Failure::run(format!("signal {} ended it", signal.as_raw())));
    }
    let seen = Seen::from(LiveRun { report: measured.report, record: measured.record });
    serde_json::to_string(&seen).map(|text| text + "\n").map_err(Failure::run)
}

/// Results between the two processes.
#[derive(Serialize, Deserialize)]
struct Seen {
    report: Report,
    time_s: Vec<f64>,
    flows: Vec<SeenSeries>,
    links: Vec<SeenSeries>,
}

#[derive(Serialize, Deserialize)]
struct SeenSeries {
    name: String,
    columns: Vec<(String, Vec<Option<f64>>)>,
}

impl From<LiveRun> for Seen {
    fn from(LiveRun { report, record }: LiveRun) -> Self {
        let series = |all: Vec<Series>| all.into_iter().map(SeenSeries::from).collect();
        Self { report, time_s: record.time_s, flows: series(record.flows), links: series(record.links) }
    }
}

impl From<Series> for SeenSeries {
    fn from(of: Series) -> Self {
        // JSON has no NaN
        let known = |values: Vec<f64>| values.into_iter().map(|v| Some(v).filter(|v| !v.is_nan())).collect();
        let column = |column: Column| (column.key.to_owned(), known(column.values));
        Self { name: of.name, columns: of.columns.into_iter().map(column).collect() }
    }
}

impl From<Seen> for LiveRun {
    fn from(seen: Seen) -> Self {
        let series = |all: Vec<SeenSeries>| all.into_iter().map(Series::from).collect();
        let record = Record {
            time_s: seen.time_s,
            flows: series(seen.flows),
            links: series(seen.links),
            ..Record::default()
        };
        Self { report: seen.report, record }
    }
}

impl From<SeenSeries> for Series {
    fn from(of: SeenSeries) -> Self {
        let column = |(key, values): (String, Vec<Option<f64>>)| {
            let key = FLOW_COLUMNS.iter().chain(&LINK_COLUMNS).find(|known| **known == key)?;
            Some(Column { key, values: values.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect() })
        };
        Self { name: of.name, columns: of.columns.into_iter().filter_map(column).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_pass_from_one_process_to_the_other() {
        let report = Report { simulated_s: 2.5, ..Report::default() };
        let series = |name: &str, keys: &[&'static str]| {
            let mut series = Series::new(name, keys);
            series.push(&vec![1.5; keys.len()]);
            series.push(&vec![f64::NAN; keys.len()]);
            series
        };
        let record = Record {
            time_s: vec![0.1, 0.2],
            flows: vec![series("flow", &FLOW_COLUMNS)],
            links: vec![series("hop", &LINK_COLUMNS)],
            ..Record::default()
        };
        let sent = serde_json::to_string(&Seen::from(LiveRun { report, record })).unwrap();
        let LiveRun { report, record } = serde_json::from_str::<Seen>(&sent).unwrap().into();
        assert_eq!((report.simulated_s, &record.time_s[..]), (2.5, &[0.1, 0.2][..]));
        for (of, name, keys) in [(&record.flows, "flow", FLOW_COLUMNS), (&record.links, "hop", LINK_COLUMNS)]
        {
            assert_eq!(of[0].name, name);
            for key in keys {
                let values = of[0].column(key).unwrap_or_else(|| panic!("{key} is lost"));
                assert!(values[0].to_bits() == 1.5_f64.to_bits() && values[1].is_nan(), "{key}: {values:?}");
            }
        }
    }
}
