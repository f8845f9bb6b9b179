//! `bentpipe compare`: runs a scenario in the simulator and in real time.

use crate::expect::{self, Expect};
use crate::input::{self, Input};
use crate::outcome::{Failure, print_message};
use crate::show::Pictures;
use bentpipe_emulate::compare::Comparison;
use bentpipe_emulate::measure;
use bentpipe_emulate::plan::Plan;
use bentpipe_scenario::Stop;
use clap::Args;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe compare scenarios/window.toml --set duration='60 s'
  bentpipe compare scenarios/transfer.toml --set size='10 kB' --json
  bentpipe compare scenarios/sharing.toml --set tcp=cubic --set loss=1e-2 --out results/";

/// Options of `bentpipe compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print both reports and their comparison as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the pages of both runs into the subfolders `simulated` and `emulated` of this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pictures: Pictures,
    /// A condition on both runs, such as 'goodput > 1 Mbit/s'; may be repeated.
    ///
    /// Exit status 3 if one is not met.
    #[arg(long, value_name = "EXPECTATION", value_parser = Expect::parse)]
    pub(crate) expect: Vec<Expect>,
    /// Do not use real-time priority, even where it is allowed.
    #[arg(long)]
    pub(crate) no_realtime: bool,
}

/// Returns the text to print, and true if both runs meet every expectation.
pub(crate) fn run(options: &Compare) -> Result<(String, bool), Failure> {
    let scenario = input::load(&options.input)?;
    options.expect.iter().try_for_each(|expect| expect.check("--expect", &scenario))?;
    let plan = Plan {
        realtime: !options.no_realtime,
        out: options.out.as_ref().map(|dir| dir.join("emulated")),
        pictures: options.pictures.formats(),
        ..Plan::new(scenario, &input::title(&options.input.file))
    };
    let announce = || {
        let at_most = if plan.scenario.stop == Stop::Finished { "at most " } else { "" };
        print_message(&format!("emulating {at_most}{} in real time", plan.scenario.duration));
    };
    let measured = measure::run(&plan, &mut || announce(), &mut |line| print_message(line), &mut |_, _| ())?;
    if let Some(signal) = measured.interrupted {
        return Err(Failure::run(format!("signal {} ended the emulated run", signal.as_raw())));
    }
    let simulated = match &options.out {
        None => bentpipe_sim::run(&plan.scenario),
        Some(dir) => {
            let folder = dir.join("simulated");
            bentpipe_results::run_with(&folder, &plan.scenario, plan.pictures).map_err(Failure::run)?.0
        }
    };
    let comparison = Comparison::new(simulated, measured.report);
    let met = [("simulated: ", &comparison.simulated), ("emulated: ", &comparison.emulated)]
        .map(|(which, report)| expect::judge_all(&options.expect, report, which));
    let text = if options.json { comparison.to_json() + "\n" } else { comparison.to_text() };
    Ok((text, met == [true, true]))
}
