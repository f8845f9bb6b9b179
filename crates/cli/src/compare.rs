//! `bentpipe compare`: runs a scenario in the simulator and in real time.

use crate::input::{self, Input};
use crate::outcome::{Failure, print_message};
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
    /// Do not use real-time priority, even where it is allowed.
    #[arg(long)]
    pub(crate) no_realtime: bool,
}

pub(crate) fn run(options: &Compare) -> Result<String, Failure> {
    let scenario = input::load(&options.input)?;
    let plan = Plan {
        realtime: !options.no_realtime,
        out: options.out.as_ref().map(|dir| dir.join("emulated")),
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
            bentpipe_results::run(&folder, &plan.scenario).map_err(Failure::run)?.0
        }
    };
    let comparison = Comparison::new(simulated, measured.report);
    Ok(if options.json { comparison.to_json() + "\n" } else { comparison.to_text() })
}
