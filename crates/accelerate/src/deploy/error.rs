//! What can keep a gateway from starting or from going on, in words that say what to do about it.

use bentpipe_os::netlink;
use bentpipe_service::{ClientError, FileError, Finding, ServerError};
use std::io;

/// A fault of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something is missing; nothing was changed.
    #[error("{}", listed(.0))]
    Missing(Vec<Finding>),
    /// It runs already.
    #[error(
        "error: gateway `{name}` is running (process {pid})\nhelp: bentpipe gateway stop, or run --replace"
    )]
    Runs {
        /// Its name.
        name: String,
        /// Its process.
        pid: i32,
    },
    /// It does not know how to leave its connections.
    #[error(
        "error: gateway `{0}` is of a version that cannot be asked to stop\nhelp: kill -9 it and run this one: it goes on with the connections"
    )]
    TooOld(String),
    /// A gateway of this name was killed.
    #[error("error: gateway `{0}` was killed and has left rules behind\nhelp: sudo bentpipe gateway undo")]
    Leftovers(String),
    /// What was left behind lies in another network namespace.
    #[error("error: gateway `{0}` was started in another network namespace\nhelp: undo it there")]
    Elsewhere(String),
    /// There is no gateway to speak to.
    #[error("error: no gateway is running\nhelp: sudo bentpipe gateway run FILE")]
    NoneRuns,
    /// More than one, and none was named.
    #[error("error: {} gateways are there: name one with --name\nhelp: {}", .0.len(), .0.join(", "))]
    Several(Vec<String>),
    /// None of this name.
    #[error("error: there is no gateway `{0}`")]
    Unknown(String),
    /// The folder of session files.
    #[error("error: {0}")]
    File(#[from] FileError),
    /// A step of the plan.
    #[error("error: {step}: {reason}")]
    Step {
        /// As a command.
        step: String,
        /// What the system says.
        reason: String,
    },
    /// A port cannot be opened.
    #[error("error: {0}")]
    Port(#[from] bentpipe_os::PortError),
    /// Netlink.
    #[error("error: {0}")]
    Netlink(#[from] netlink::Error),
    /// A running gateway.
    #[error("error: {0}")]
    Client(#[from] ClientError),
    /// The control socket.
    #[error("error: {0}")]
    Server(#[from] ServerError),
    /// The data path.
    #[error("error: the data path: {0}")]
    Engine(String),
    /// Traffic stopped with the gateway; everything was taken back.
    #[error(
        "error: with the gateway traffic has stopped: {0}\nhelp: everything is taken back; bentpipe gateway check names firewalls, `watch = \"0 s\"` in [deploy] turns this off"
    )]
    Harm(String),
    /// Everything else that the system refuses.
    #[error("error: {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

fn listed(findings: &[Finding]) -> String {
    let mut lines = Vec::new();
    for finding in findings {
        lines.push(format!("error: {finding}"));
    }
    lines.join("\n")
}

impl Error {
    pub(super) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// True when the user's input, permissions or machine are at fault, not this program: exit status 2.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Missing(_)
                | Self::Runs { .. }
                | Self::Leftovers(_)
                | Self::Elsewhere(_)
                | Self::NoneRuns
                | Self::Several(_)
                | Self::Unknown(_)
                | Self::TooOld(_)
        )
    }
}
