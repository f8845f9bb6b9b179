//! The command line. Results go to standard output, messages to standard error.
//!
//! As a library it lets a program add its own kinds of nodes: call [`main`] with a [`Registry`].
//! [`library`] has what the Python package shares with the commands.

mod agent;
mod args;
mod compare;
mod demo;
mod doctor;
mod emulate;
mod expect;
mod figure;
mod find;
mod gateway;
mod generate;
mod input;
mod json;
pub mod library;
mod link;
mod links;
mod live;
mod locale;
mod new;
mod options;
mod outcome;
mod papers;
mod progress;
mod replay;
mod scenarios;
mod shipped;
mod show;
mod simulate;
mod sweep;
mod top;
mod transfer;

pub use bentpipe_scenario::{Registry, Scenario};

use args::{Args, Command};
use clap::Parser as _;
use core::fmt;
use outcome::{Failure, NOT_MET, print_as};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// An error in a scenario; the text shows the place and says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// Reads a scenario file as the commands do; `sets` are the values of `--set`.
///
/// # Errors
/// When the file cannot be read or has an error.
pub fn load(file: &Path, sets: &[(String, String)], seed: Option<u64>) -> Result<Scenario, LoadError> {
    let input = input::Input { file: file.to_owned(), seed, sets: sets.to_vec() };
    input::load(&input).map_err(|failure| LoadError(failure.text))
}

/// Executes the command line, with the kinds of nodes in `registry` in addition to the built-in ones.
pub fn main(registry: Registry) -> ExitCode {
    bentpipe_scenario::register(registry);
    ExitCode::from(run(&Args::parse().command).unwrap_or_else(|failure| failure.report()))
}

/// Executes the command line `words`, whose first one is the program's name, within another program that is
/// started as this one by the words `again`. Returns the exit status.
pub fn execute(words: &[OsString], again: Vec<OsString>) -> u8 {
    bentpipe_os::set_own_program(again);
    match Args::try_parse_from(words) {
        Ok(args) => run(&args.command).unwrap_or_else(|failure| failure.report()),
        Err(error) => {
            // help and the version are no errors; where neither can be printed there is nobody to tell
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(outcome::BAD_INPUT)
        }
    }
}

fn run(command: &Command) -> Result<u8, Failure> {
    let (text, met) = match command {
        // these print by themselves, and may have the exit status of a program they run
        Command::Emulate(options) => return emulate::run(options),
        Command::Run(options) => return Ok(emulate::exec_program(options)),
        Command::Measure => (live::measure()?, true),
        Command::Gateway(gateway) => return gateway::run(gateway),
        Command::Agent(agent) => return agent::run(agent),
        Command::Demo(demo) => return demo::run(demo),
        Command::New(options) => return new::run(options).map(|()| 0),
        Command::Find(args) => return find::run(args),
        Command::Send(args) => return transfer::send::send(args).map(|()| 0),
        Command::Receive(args) => return transfer::receive::receive(args).map(|()| 0),
        Command::Sim { input, json, no_fast_forward, out, pictures, expect } => {
            let (json, each_packet) = (*json, *no_fast_forward);
            let pictures = pictures.formats();
            let output = simulate::Output { json, each_packet, out: out.as_deref(), pictures };
            return simulate::run(&input::load(input)?, output, expect);
        }
        Command::Show(options) => (show::run(options)?, true),
        Command::Doctor { json, clean } => doctor::run(*json, *clean)?,
        Command::Replay { file, json } => replay::run(file, *json)?,
        Command::Sweep(sweep) => (sweep::run(sweep)?, true),
        Command::Figure(options) => figure::run(options)?,
        Command::Papers(options) => papers::run(options)?,
        Command::Merge(merge) => (sweep::merge(merge)?, true),
        Command::Check { input } => (bentpipe_scenario::to_toml(&input::load(input)?), true),
        Command::Links { json } => (links::list(*json), true),
        Command::Scenarios { name: Some(name), .. } => (scenarios::text(name)?, true),
        Command::Scenarios { name: None, json } => (scenarios::list(*json), true),
        Command::Compare(options) => compare::run(options)?,
        Command::Link(link) => (link::run(link)?, true),
        Command::Top(top) => (top::run(top)?, true),
        Command::Generate { page } => (generate::run(page)?, true),
    };
    print_as(&text, is_data(command))?;
    Ok(if met { 0 } else { NOT_MET })
}

/// True if a command prints what programs read: it is UTF-8 in every locale.
fn is_data(command: &Command) -> bool {
    match command {
        Command::Doctor { json, .. } | Command::Replay { json, .. } | Command::Links { json } => *json,
        Command::Scenarios { name, json } => name.is_some() || *json,
        Command::Compare(options) => options.json,
        Command::Link(link) => link.json,
        Command::Papers(options) => options.show.is_some(),
        Command::Check { .. } | Command::Measure | Command::Generate { .. } => true,
        _ => false,
    }
}
