//! How a command ends: output and exit status.

use crate::locale;
use bentpipe_accelerate::deploy;
use bentpipe_agent::deploy as agent;
use bentpipe_emulate::Error;
use bentpipe_emulate::client::FindError;
use bentpipe_scenario::Diagnostic;
use bentpipe_service::ClientError;
use core::fmt::Display;
use rustix::process::Signal;
use serde::Serialize;
use std::io::{self, Write as _};

/// Exit status: an input was rejected (file, option or value). clap uses it too.
pub(crate) const BAD_INPUT: u8 = 2;
/// Exit status: the run failed.
const FAILED: u8 = 1;
/// Exit status: the run is complete, but an expectation is not met, or a gateway stopped traffic.
pub(crate) const NOT_MET: u8 = 3;

/// Exit status: a search is complete, and found no crossing.
pub(crate) const NOT_FOUND: u8 = 4;

pub(crate) struct Failure {
    /// What is wrong and where, without a leading `error: `.
    pub(crate) text: String,
    /// Exit status.
    status: u8,
}

impl Failure {
    pub(crate) fn input(error: impl Display) -> Self {
        Self { text: error.to_string(), status: BAD_INPUT }
    }

    pub(crate) fn run(error: impl Display) -> Self {
        Self { text: error.to_string(), status: FAILED }
    }

    /// Returns an input error if `refusal`, otherwise a run error.
    fn of(error: impl Display, refusal: bool) -> Self {
        if refusal { Self::input(error) } else { Self::run(error) }
    }

    /// Prints the message on standard error; returns the exit status.
    pub(crate) fn report(&self) -> u8 {
        print_message(&format!("error: {}", self.text));
        self.status
    }
}

impl From<Box<Diagnostic>> for Failure {
    fn from(error: Box<Diagnostic>) -> Self {
        Self::input(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of(&error, error.is_refusal())
    }
}

impl From<deploy::Error> for Failure {
    fn from(error: deploy::Error) -> Self {
        match &error {
            deploy::Error::ChecksFailed(findings) => {
                let each: Vec<String> = findings.iter().map(ToString::to_string).collect();
                Self::input(each.join("\nerror: "))
            }
            deploy::Error::TrafficStopped(_) => Self { status: NOT_MET, ..Self::run(&error) },
            _ => Self::of(&error, error.is_refusal()),
        }
    }
}

impl From<agent::Error> for Failure {
    fn from(error: agent::Error) -> Self {
        match error {
            agent::Error::Site(error) => error.into(),
            other => Self::of(&other, other.is_refusal()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let refusal = matches!(error, ClientError::Refused(_));
        Self::of(error, refusal)
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Client(error) => error.into(),
            other => Self::input(other),
        }
    }
}

/// Returns the exit status of a run that was ended by a signal, as shells report it; 0 without a signal.
pub(crate) fn by_signal(signal: Option<Signal>) -> u8 {
    signal.map_or(0, |signal| u8::try_from(128 + signal.as_raw()).unwrap_or(1))
}

/// Formats a value as JSON for standard output.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(Failure::run)
}

/// Prints text for people, or results for programs as they are.
pub(crate) fn print_as(text: &str, is_data: bool) -> Result<(), Failure> {
    if is_data { print(text) } else { print(&locale::shown(text)) }
}

/// Prints results for programs.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The failure of a write to standard output.
pub(crate) fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        // the reader may stop early, as `head` does
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a message to standard error; errors are ignored, since there is nowhere to report them.
pub(crate) fn print_message(line: &str) {
    let _ = writeln!(io::stderr(), "{}", locale::shown(line));
}
