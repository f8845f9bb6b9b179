//! The command line. Results go to standard output, messages to standard error.
//!
//! As a library it lets a program add its own kinds of nodes: call [`main`] with a [`Registry`].

mod args;
mod compare;
mod demo;
mod doctor;
mod emulate;
mod expect;
mod findings;
mod gateway;
mod input;
mod link;
mod links;
mod options;
mod outcome;
mod replay;
mod simulate;
mod sweep;
mod top;
mod transfer;

pub use bentpipe_scenario::{Registry, Scenario};

use args::{Args, Command, Page};
use clap::Parser as _;
use core::fmt;
use outcome::{Failure, NOT_MET, print};
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
    input::load(&input).map_err(|failure| LoadError(failure.text().to_owned()))
}

/// Executes the command line, with the kinds of nodes in `registry` in addition to the built-in ones.
pub fn main(registry: Registry) -> ExitCode {
    bentpipe_scenario::register(registry);
    let command = Args::parse().command;
    // These have an exit status of their own, or that of the program they run.
    let ended = match &command {
        Command::Emulate(options) => Some(emulate::run(options)),
        Command::Run(options) => Some(Ok(emulate::become_program(options))),
        Command::Gateway(gateway) => Some(gateway::run(gateway)),
        Command::Demo(demo) => Some(demo::run(demo)),
        _ => None,
    };
    let outcome = match ended {
        Some(Ok(status)) => return ExitCode::from(status),
        Some(Err(failure)) => Err(failure),
        None => run(&command),
    };
    match outcome.and_then(|(output, met)| print(&output).map(|()| met)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_MET),
        Err(failure) => ExitCode::from(failure.report()),
    }
}

/// Runs a command; returns the text for standard output, and true if all expectations are met.
fn run(command: &Command) -> Result<(String, bool), Failure> {
    let text = match command {
        Command::Sim { input, json, out, expect } => {
            return simulate::run(&input::load(input)?, *json, out.as_deref(), expect);
        }
        Command::Sweep(sweep) => sweep::run(sweep),
        Command::Merge { shards, out } => sweep::merge(shards, out),
        Command::Check { input } => input::load(input).map(|s| bentpipe_scenario::to_toml(&s)),
        Command::Links { json } => Ok(links::list(*json)),
        Command::Doctor { json, clean } => return doctor::run(*json, *clean),
        Command::Replay { file, json } => return replay::run(file, *json),
        Command::Compare(options) => compare::run(options),
        Command::Link(link) => link::run(link),
        Command::Top(top) => top::run(top),
        Command::Send(args) => transfer::send::send(args),
        Command::Receive(args) => transfer::receive::receive(args),
        Command::Generate { page } => Ok(match page {
            Page::Schema => bentpipe_scenario::schema(),
            Page::Reference => bentpipe_scenario::reference(),
            Page::GatewaySchema => bentpipe_scenario::gateway_file::schema(),
            Page::GatewayReference => bentpipe_scenario::gateway_file::reference(),
        }),
        // handled before
        Command::Emulate(_) | Command::Run(_) | Command::Gateway(_) | Command::Demo(_) => Ok(String::new()),
    }?;
    Ok((text, true))
}
