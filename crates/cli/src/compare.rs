//! `bentpipe compare`, and `bentpipe emulate SCENARIO` without a command: the scenario's own flows with this machine's TCP.

use crate::Failure;
use crate::args::{Compare, Emulate};
use crate::input;
use bentpipe_emulate::compare::Comparison;
use bentpipe_emulate::measure::{self, Measured, Plan};
use bentpipe_scenario::{Scenario, Stop};
use std::io::{self, Write as _};

/// Exit status of a program that a signal has ended is this and the signal's number.
pub(crate) const BY_SIGNAL: i32 = 128;

impl From<measure::Error> for Failure {
    fn from(error: measure::Error) -> Self {
        if error.is_refusal() { Self::Input(error.to_string()) } else { Self::Run(error.to_string()) }
    }
}

/// Runs both sides; what goes to standard output.
pub(crate) fn run(options: &Compare) -> Result<String, Failure> {
    let scenario = input::load(&options.input)?;
    let plan = Plan {
        title: title(&options.input.file),
        name: None,
        speed: 1.0,
        realtime: !options.no_realtime,
        journal: None,
        out: options.out.as_ref().map(|dir| dir.join("emulated")),
        scenario,
    };
    let announce = || {
        let at_most = if plan.scenario.stop == Stop::Finished { "at most " } else { "" };
        say(&format!("emulating {at_most}{} in real time", plan.scenario.duration));
    };
    let measured = emulate(&plan, &announce)?;
    if let Some(signal) = measured.interrupted {
        return Err(Failure::Run(format!("error: signal {} ended the emulated run", signal.as_raw())));
    }
    let simulated = match &options.out {
        None => bentpipe_sim::run(&plan.scenario),
        Some(dir) => {
            let folder = dir.join("simulated");
            let failed = |error| Failure::Run(format!("error: {error}"));
            bentpipe_results::run(&folder, &plan.scenario).map_err(failed)?.0
        }
    };
    let comparison = Comparison::new(simulated, measured.report);
    Ok(if options.json { comparison.to_json() + "\n" } else { comparison.to_text() })
}

/// Runs the scenario's own flows; gives the exit status, with the report on standard output.
pub(crate) fn flows(options: &Emulate, scenario: Scenario, title: String) -> Result<u8, Failure> {
    let plan = Plan {
        scenario,
        title,
        name: options.name.clone(),
        speed: options.speed,
        realtime: !options.no_realtime,
        journal: options.journal.clone(),
        out: options.out.clone(),
    };
    let measured = emulate(&plan, &|| ())?;
    if let Some(dir) = &options.out {
        say(&format!("{} files in {}", measured.files.len(), dir.display()));
    }
    let report = &measured.report;
    crate::print(&if options.json { report.to_json() + "\n" } else { report.to_text() })?;
    let status = measured.interrupted.map_or(0, |signal| BY_SIGNAL + signal.as_raw());
    Ok(u8::try_from(status).unwrap_or(1))
}

fn emulate(plan: &Plan, begun: &dyn Fn()) -> Result<Measured, Failure> {
    Ok(measure::run(plan, &mut || begun(), &mut |line| say(line))?)
}

fn say(line: &str) {
    // Nothing is left to tell a user whose standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

fn title(file: &std::path::Path) -> String {
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
