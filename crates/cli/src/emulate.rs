//! `bentpipe emulate`: a command behind a link.

use crate::Failure;
use crate::args::{self, Emulate};
use crate::compare;
use crate::input::{self, Beside};
use bentpipe_emulate::emulation::{self, Plan};
use bentpipe_emulate::report::capture_everything;
use bentpipe_emulate::run::Run;
use bentpipe_emulate::{Error, named};
use bentpipe_scenario::{Diagnostic, Scenario, Source, profiles};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_refusal() { Self::Input(error.to_string()) } else { Self::Run(error.to_string()) }
    }
}

/// Runs the command; gives its exit status.
pub(crate) fn run(options: &Emulate) -> Result<u8, Failure> {
    let plan = plan(options)?;
    if options.command.is_empty() && options.far.is_none() && is_file(&options.link) {
        return compare::flows(options, plan.scenario, plan.title);
    }
    notes(&plan, is_file(&options.link));
    let ended = emulation::run(&plan, &mut |line| say(line))?;
    for doubt in ended.timing.doubts.iter().filter(|_| !ended.timing.trusted) {
        say(&format!("warning: the figures of this run are not to be trusted: {doubt}"));
    }
    if let Some(dir) = &plan.out {
        say(&format!("{} files in {}", ended.files.len(), dir.display()));
    }
    Ok(ended.status)
}

/// The helper: returns only when it could not become the program.
pub(crate) fn become_program(options: &args::Run) -> u8 {
    let args::Run { net_fd, report_fd, parent, hosts, resolv, argv } = options;
    let run = Run {
        network: *net_fd,
        report: *report_fd,
        parent: *parent,
        hosts: hosts.clone(),
        resolv: resolv.clone(),
        argv: argv.clone(),
    };
    run.run()
}

fn plan(options: &Emulate) -> Result<Plan, Failure> {
    let refused = |fault: Box<Diagnostic>| Failure::Input(fault.to_string());
    let (mut scenario, title) = if is_file(&options.link) {
        from_file(options)?
    } else {
        let mut scenario = named::named(&options.link, options.seed).map_err(refused)?;
        let words: Vec<String> = options.sets.iter().map(|(name, value)| format!("{name}={value}")).collect();
        named::change(&mut scenario, &bentpipe_scenario::change(&words).map_err(refused)?);
        (scenario, options.link.clone())
    };
    // a file says itself what is to be captured
    if options.capture || (options.out.is_some() && !is_file(&options.link)) {
        capture_everything(&mut scenario);
    }
    Ok(Plan {
        scenario,
        title,
        name: options.name.clone(),
        uplink: options.uplink,
        speed: options.speed,
        realtime: !options.no_realtime,
        journal: options.journal.clone(),
        out: options.out.clone(),
        far: options.far.clone(),
        command: if options.command.is_empty() { vec![shell()] } else { options.command.clone() },
    })
}

/// What a user may not expect.
fn notes(plan: &Plan, from_file: bool) {
    if from_file {
        say("note: a command runs instead of the scenario's own flows");
    }
    for (name, has, wants) in named::small_queues(&plan.scenario) {
        say(&format!(
            "note: the queue of {name} holds {has}; what its rate carries in one round trip is {wants}"
        ));
    }
}

fn say(line: &str) {
    // Nothing is left to tell a user whose standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

/// A name is a link's where there is one; everything that looks like a path is a file.
fn is_file(link: &str) -> bool {
    let named = profiles().iter().any(|p| p.name == link);
    let path = Path::new(link);
    let is_toml = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
    !named && (link.contains('/') || is_toml || path.is_file())
}

/// The scenario of a file, and what it is called.
fn from_file(options: &Emulate) -> Result<(Scenario, String), Failure> {
    let path = Path::new(&options.link);
    let source: Source = input::file(path)?;
    let scenario = bentpipe_scenario::load_with(&source, &options.sets, options.seed, &Beside(path))
        .map_err(|fault| Failure::Input(fault.to_string()))?;
    let title = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Ok((scenario, title))
}

/// The user's own shell.
fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}
