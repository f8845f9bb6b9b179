//! How a command ends: output and exit status.

use bentpipe_accelerate::deploy;
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
pub(crate) const FAILED: u8 = 1;
/// Exit status: the run is complete, but an expectation is not met.
pub(crate) const NOT_MET: u8 = 3;

pub(crate) enum Failure {
    /// The user's input is wrong; the text says where, without a leading `error: `.
    Input(String),
    Run(String),
}

impl Failure {
    pub(crate) fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }

    pub(crate) fn run(error: impl Display) -> Self {
        Self::Run(error.to_string())
    }

    /// An input error if `refusal`, otherwise a run error.
    fn of(error: impl Display, refusal: bool) -> Self {
        if refusal { Self::input(error) } else { Self::run(error) }
    }

    pub(crate) fn text(&self) -> &str {
        let (Self::Input(text) | Self::Run(text)) = self;
        text
    }

    /// Prints the message on standard error; returns the exit status.
    pub(crate) fn report(&self) -> u8 {
        print_message(&format!("error: {}", self.text()));
        if matches!(self, Self::Input(_)) { BAD_INPUT } else { FAILED }
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
                Self::Input(each.join("\nerror: "))
            }
            _ => Self::of(&error, error.is_refusal()),
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

/// Exit status of a run that was ended by a signal, as shells report it; 0 without a signal.
pub(crate) fn by_signal(signal: Option<Signal>) -> u8 {
    signal.map_or(0, |signal| u8::try_from(128 + signal.as_raw()).unwrap_or(1))
}

/// A value as JSON for standard output.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(Failure::run)
}

pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader may stop early, as `head` does.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a message to standard error; errors are ignored, since there is nowhere to report them.
pub(crate) fn print_message(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
