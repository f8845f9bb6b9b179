//! Errors that prevent a gateway from starting or running, with help on what to do.

use bentpipe_os::netlink;
use bentpipe_service::{ClientError, Finding, SystemError};
use std::io;

/// An error of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A check failed; nothing was changed.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    ChecksFailed(Vec<Finding>),
    /// It is already running.
    #[error("gateway `{name}` is running (process {pid})\nhelp: bentpipe gateway stop, or run --replace")]
    Runs {
        /// Its name.
        name: String,
        /// Its process.
        pid: i32,
    },
    /// Its version is too old to leave its connections to the next gateway.
    #[error(
        "gateway `{0}` is an old version that cannot hand over its connections when asked to stop\nhelp: end it with kill -9 and start this one, which continues the connections"
    )]
    TooOld(String),
    /// The changes left behind are in another network namespace.
    #[error(
        "gateway `{0}` was started in another network namespace\nhelp: run `bentpipe gateway undo` there"
    )]
    OtherNamespace(String),
    /// No gateway is running.
    #[error("no gateway is running\nhelp: sudo bentpipe gateway run FILE")]
    NoneRuns,
    /// Gateways were killed, and what they changed on this machine is still there.
    #[error(
        "no gateway is running: {} was killed, and its rules, routes and settings are left on this machine\n\
         help: sudo bentpipe gateway undo, or start it again: sudo bentpipe gateway run FILE",
        .0.join(" and ")
    )]
    Killed(Vec<String>),
    /// Several are running and none was named.
    #[error("there are {} gateways: choose one with --name\nhelp: {}", .0.len(), .0.join(", "))]
    Several(Vec<String>),
    /// There is none of this name.
    #[error("there is no gateway `{0}`")]
    Unknown(String),
    /// A changed file cannot be loaded while the gateway is running.
    #[error("{0}")]
    Reload(String),
    /// A step of the plan failed.
    #[error("{step}: {reason}")]
    Step {
        /// The step as a command.
        step: String,
        /// The system's error.
        reason: String,
    },
    /// A port cannot be opened.
    #[error(transparent)]
    Port(#[from] bentpipe_os::PortError),
    /// Netlink.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// Communication with a running gateway.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The data path.
    #[error("the data path: {0}")]
    Engine(String),
    /// Traffic stopped after the gateway's start; all changes were undone.
    #[error(
        "traffic stopped after the gateway started: {0}\nhelp: all changes were reverted; `bentpipe gateway check` shows firewalls that block traffic, `watch = \"0 s\"` in [deploy] turns this test off"
    )]
    TrafficStopped(String),
    /// A session file or its folder, the control socket, or another error of the system.
    #[error(transparent)]
    System(#[from] SystemError),
}

impl Error {
    pub(super) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System(SystemError::new(what, source))
    }

    /// True if the user's input, permissions or machine are at fault, not this program: exit status 2.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::ChecksFailed(_)
                | Self::Runs { .. }
                | Self::OtherNamespace(_)
                | Self::NoneRuns
                | Self::Killed(_)
                | Self::Several(_)
                | Self::Unknown(_)
                | Self::TooOld(_)
        )
    }
}
