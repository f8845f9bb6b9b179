//! What can keep a gateway from starting or from going on, in words that say what to do about it.

use bentpipe_os::netlink;
use bentpipe_service::{ClientError, FileError, Finding, ServerError};
use std::io;

/// A fault of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something is missing; nothing was changed.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Missing(Vec<Finding>),
    /// It runs already.
    #[error("gateway `{name}` is running (process {pid})\nhelp: bentpipe gateway stop, or run --replace")]
    Runs {
        /// Its name.
        name: String,
        /// Its process.
        pid: i32,
    },
    /// It does not know how to leave its connections.
    #[error(
        "gateway `{0}` is of a version that cannot be asked to stop\nhelp: kill -9 it and run this one: it goes on with the connections"
    )]
    TooOld(String),
    /// What was left behind lies in another network namespace.
    #[error("gateway `{0}` was started in another network namespace\nhelp: undo it there")]
    Elsewhere(String),
    /// There is no gateway to speak to.
    #[error("no gateway is running\nhelp: sudo bentpipe gateway run FILE")]
    NoneRuns,
    /// More than one, and none was named.
    #[error("{} gateways are there: name one with --name\nhelp: {}", .0.len(), .0.join(", "))]
    Several(Vec<String>),
    /// None of this name.
    #[error("there is no gateway `{0}`")]
    Unknown(String),
    /// The folder of session files.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file as it is now cannot take the place of the one in force.
    #[error("{0}")]
    Reload(String),
    /// A step of the plan.
    #[error("{step}: {reason}")]
    Step {
        /// As a command.
        step: String,
        /// What the system says.
        reason: String,
    },
    /// A port cannot be opened.
    #[error(transparent)]
    Port(#[from] bentpipe_os::PortError),
    /// Netlink.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// A running gateway.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The control socket.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The data path.
    #[error("the data path: {0}")]
    Engine(String),
    /// Traffic stopped with the gateway; everything was taken back.
    #[error(
        "with the gateway traffic has stopped: {0}\nhelp: everything is taken back; bentpipe gateway check names firewalls, `watch = \"0 s\"` in [deploy] turns this off"
    )]
    Harm(String),
    /// Everything else that the system refuses.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
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
                | Self::Elsewhere(_)
                | Self::NoneRuns
                | Self::Several(_)
                | Self::Unknown(_)
                | Self::TooOld(_)
        )
    }
}
