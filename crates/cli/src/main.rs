//! The command line: `bentpipe sim`, `bentpipe check`. Standard output is data, standard error is talk.

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
mod replay;
mod simulate;
mod sweep;
mod top;
mod transfer;

use args::{Args, Command, Page};
use bentpipe_service::ClientError;
use clap::Parser as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// The input was refused: a file, an option or a value. Also what clap exits with.
const BAD_INPUT: u8 = 2;
/// The run itself failed.
const FAILED: u8 = 1;

/// The run is done, but an expectation is not met.
const NOT_MET: u8 = 3;

/// Why a command ended early.
enum Failure {
    /// The user's input is at fault; the text says where.
    Input(String),
    /// Something else went wrong.
    Run(String),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) if refusal.message.starts_with("error: ") => {
                Self::Input(refusal.to_string())
            }
            ClientError::Refused(refusal) => Self::Input(format!("error: {refusal}")),
            other => Self::Run(format!("error: {other}")),
        }
    }
}

fn main() -> ExitCode {
    let command = Args::parse().command;
    // These end with an exit status of their own, or of somebody else.
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
    let (text, code) = match outcome.and_then(|(output, met)| print(&output).map(|()| met)) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => return ExitCode::from(NOT_MET),
        Err(Failure::Input(text)) => (text, BAD_INPUT),
        Err(Failure::Run(text)) => (text, FAILED),
    };
    // Nothing is left to tell a user whose standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(code)
}

/// Runs a command; returns what goes to standard output, and whether all that was expected is met.
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
        Command::Send(args) => transfer::send(args),
        Command::Receive(args) => transfer::receive(args),
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

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads our output may stop early, as `head` does.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("error: standard output: {error}")))
        }
        _ => Ok(()),
    }
}
