//! How a command ends: what it prints, and its exit status.

use bentpipe_emulate::client::FindError;
use bentpipe_emulate::{Error, measure};
use bentpipe_service::ClientError;
use rustix::process::Signal;
use std::io::{self, Write as _};

/// The input was refused: a file, an option or a value. Also what clap exits with.
pub(crate) const BAD_INPUT: u8 = 2;
/// The run itself failed.
pub(crate) const FAILED: u8 = 1;
/// The run is done, but an expectation is not met.
pub(crate) const NOT_MET: u8 = 3;

/// Why a command ended early.
pub(crate) enum Failure {
    /// The user's input is at fault; the text says where.
    Input(String),
    /// Something else went wrong.
    Run(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_refusal() { Self::Input(error.to_string()) } else { Self::Run(error.to_string()) }
    }
}

impl From<measure::Error> for Failure {
    fn from(error: measure::Error) -> Self {
        if error.is_refusal() { Self::Input(error.to_string()) } else { Self::Run(error.to_string()) }
    }
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

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Client(error) => error.into(),
            other => Self::Input(format!("error: {other}")),
        }
    }
}

/// The exit status of a run that a signal has ended, as shells report it; else 0.
pub(crate) fn by_signal(signal: Option<Signal>) -> u8 {
    signal.map_or(0, |signal| u8::try_from(128 + signal.as_raw()).unwrap_or(1))
}

/// Data goes to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads our output may stop early, as `head` does.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("error: standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Talk goes to standard error. Nothing is left to tell a user who closed it.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
