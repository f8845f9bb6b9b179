//! `bentpipe emulate`: runs a command behind a link.

use crate::input::{self, Beside, name_and_value};
use crate::outcome::{Failure, by_signal, print, print_message};
use crate::shipped;
use crate::simulate::in_words;
use bentpipe_emulate::plan::Plan;
use bentpipe_emulate::report::capture_everything;
use bentpipe_emulate::{emulation, measure, named, run as helper};
use bentpipe_scenario::profiles;
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe emulate geo-10m -- ping far
  bentpipe emulate winds-24m --far 'iperf3 -s' -- iperf3 -c far
  bentpipe emulate geo-10m --set loss=1e-3 --set rate=5Mbit/s
  sudo bentpipe emulate ka-band-t1 --uplink -- curl https://example.org";

const JSON_OF_FLOWS: &str =
    "--json prints the report of a scenario's own flows, and a command runs in their place
help: leave out the command and --far, or give a scenario file; --out DIR writes report.json of any session";

/// Options of `bentpipe emulate`.
#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// A named link, a scenario file, or the name of a scenario that comes with the program.
    pub(crate) link: String,
    /// The command with its own options, after those of `emulate`; without it a shell.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// A shell command line for the far end: started before the command, and stopped when that ends.
    #[arg(long, value_name = "LINE")]
    pub(crate) far: Option<OsString>,
    /// Change a named link (rate, delay, buffer, loss or ber, as `bentpipe link set` does), or a parameter of
    /// a scenario; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Seed of every random stream.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Run the scenario's timeline faster by this factor.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = bentpipe_live::speed::parse)]
    pub(crate) speed: f64,
    /// Use this machine's own network as the far end, with its route to the internet. Needs root.
    #[arg(long)]
    pub(crate) uplink: bool,
    /// Record every packet and every change of the link in this file, for `bentpipe replay`.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Write a page with pictures, tables and captures into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Capture packets in every direction of every link, not only where the scenario's `captures` say. Named
    /// links are always captured.
    #[arg(long, requires = "out")]
    pub(crate) capture: bool,
    /// If a scenario's own flows run: print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Name of the session, for `bentpipe link` and `bentpipe top`.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Do not use real-time priority, even where it is allowed.
    #[arg(long)]
    pub(crate) no_realtime: bool,
}

/// Arguments of the helper process of `emulate`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    #[arg(long)]
    pub(crate) net_fd: i32,
    #[arg(long)]
    pub(crate) report_fd: i32,
    #[arg(long)]
    pub(crate) parent: i32,
    #[arg(long)]
    pub(crate) hosts: PathBuf,
    #[arg(long)]
    pub(crate) resolv: Option<PathBuf>,
    #[arg(last = true)]
    pub(crate) argv: Vec<OsString>,
}

/// Runs the command; returns its exit status.
pub(crate) fn run(options: &Emulate) -> Result<u8, Failure> {
    if options.json && (!is_scenario(&options.link) || !options.command.is_empty() || options.far.is_some()) {
        return Err(Failure::input(JSON_OF_FLOWS));
    }
    let plan = plan(options)?;
    if options.command.is_empty() && options.far.is_none() && is_scenario(&options.link) {
        return flows(options, &plan);
    }
    notes(&plan, is_scenario(&options.link));
    let ended = emulation::run(&plan, &mut |line| print_message(line))?;
    for doubt in ended.timing.doubts.iter().filter(|_| !ended.timing.trusted) {
        print_message(&format!("warning: the figures of this run are not to be trusted: {doubt}"));
    }
    if let Some(dir) = &plan.out {
        print_message(&format!("{} files in {}", ended.files.len(), dir.display()));
    }
    Ok(ended.status)
}

/// Runs the helper process; returns only if it could not execute the program.
pub(crate) fn exec_program(options: &Run) -> u8 {
    let Run { net_fd, report_fd, parent, hosts, resolv, argv } = options;
    helper::run((*net_fd, *report_fd), *parent, hosts, resolv.as_deref(), argv)
}

fn plan(options: &Emulate) -> Result<Plan, Failure> {
    let (mut scenario, title) = if is_scenario(&options.link) {
        let path = Path::new(&options.link);
        let source = input::scenario(path)?;
        let scenario = bentpipe_scenario::load_with(&source, &options.sets, options.seed, &Beside(path))?;
        (scenario, input::title(path))
    } else {
        let mut scenario = named::profile_scenario(&options.link, options.seed)?;
        let words: Vec<String> = options.sets.iter().map(|(name, value)| format!("{name}={value}")).collect();
        named::change(&mut scenario, &bentpipe_scenario::parse_change(&words)?);
        (scenario, options.link.clone())
    };
    // a scenario file defines its captures itself
    if options.capture || (options.out.is_some() && !is_scenario(&options.link)) {
        capture_everything(&mut scenario);
    }
    Ok(Plan {
        name: options.name.clone(),
        uplink: options.uplink,
        speed: options.speed,
        realtime: !options.no_realtime,
        journal: options.journal.clone(),
        out: options.out.clone(),
        far: options.far.clone(),
        command: if options.command.is_empty() { vec![shell()] } else { options.command.clone() },
        ..Plan::new(scenario, &title)
    })
}

/// Runs the scenario's own flows and prints the report; returns the exit status.
fn flows(options: &Emulate, plan: &Plan) -> Result<u8, Failure> {
    let measured = measure::run(plan, &mut || (), &mut |line| print_message(line), &mut |_, _| ())?;
    if let Some(dir) = &options.out {
        print_message(&format!("{} files in {}", measured.files.len(), dir.display()));
    }
    let report = &measured.report;
    print(&if options.json { report.to_json() + "\n" } else { in_words(report, &measured.record) })?;
    Ok(by_signal(measured.interrupted))
}

/// Prints notes on behaviour that a user may not expect.
fn notes(plan: &Plan, from_file: bool) {
    if from_file {
        print_message("note: a command runs instead of the scenario's own flows");
    }
    for (name, has, wants) in named::small_queues(&plan.scenario) {
        print_message(&format!(
            "note: the queue of {name} holds {has}; what its rate carries in one round trip is {wants}"
        ));
    }
}

/// True if `link` is a scenario: it is not the name of a link, but that of a scenario, or it looks like a
/// path.
fn is_scenario(link: &str) -> bool {
    let named = profiles().iter().any(|p| p.name == link);
    let path = Path::new(link);
    let is_toml = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
    !named && (link.contains('/') || is_toml || path.is_file() || shipped::scenario(link).is_ok())
}

fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}
