//! Runs an agent on this machine: checks, set-up and clean-up.
//!
//! Sequence: [`check()`], then [`run()`]: takes the lock, writes the session file, carries out the plan,
//! starts the watcher, gives up capabilities, runs the data path until a signal, and undoes all changes. If
//! the agent is killed, the watcher ([`mourn()`]) resets its connections at both ends. [`undo()`] undoes the
//! changes of a killed agent. With the method `kernel` a table of rules may outlive it (`guard.rs`).

mod check;
mod guard;
mod ports;
mod run;
mod session;
mod stop;
mod watcher;
mod way;

pub use check::{Check, check};
pub use run::{Deployment, run};
pub use session::{Session, choose};
pub use stop::undo;
pub use watcher::mourn;

use bentpipe_service::{ClientError, SystemError};

/// Says if sockets of this machine's kernel can have rates, as the method `kernel` needs it.
///
/// # Errors
/// What is missing.
pub fn rates() -> Result<(), Error> {
    Ok(bentpipe_kernel_rate::KernelRate::check()?)
}

/// An error of an agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One of this name is running.
    #[error("agent `{name}` is running (process {pid})\nhelp: sudo kill {pid}, or choose another `name`")]
    Runs {
        /// Its name.
        name: String,
        /// Its process.
        pid: i32,
    },
    /// The changes left behind are in another network namespace.
    #[error("agent `{0}` was started in another network namespace\nhelp: run `bentpipe agent undo` there")]
    OtherNamespace(String),
    /// None is running.
    #[error("no agent is running\nhelp: sudo bentpipe agent run FILE")]
    NoneRuns,
    /// Several are running and none was named.
    #[error("there are {} agents: choose one with --name\nhelp: {}", .0.len(), .0.join(", "))]
    Several(Vec<String>),
    /// There is none of this name.
    #[error("there is no agent `{0}`")]
    Unknown(String),
    /// A port cannot be opened.
    #[error(transparent)]
    Port(#[from] bentpipe_os::PortError),
    /// A check failed, before anything was changed, or a step of the plan.
    #[error(transparent)]
    Site(#[from] bentpipe_accelerate::deploy::Error),
    /// The kernel does not let its sockets have rates.
    #[error(transparent)]
    Rates(#[from] bentpipe_kernel_rate::Reason),
    /// Netlink.
    #[error(transparent)]
    Netlink(#[from] bentpipe_os::netlink::Error),
    /// Communication with a running agent.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The data path.
    #[error("the data path: {0}")]
    Path(String),
    /// A session file or its folder, the control socket, or another error of the system.
    #[error(transparent)]
    System(#[from] SystemError),
}

impl Error {
    /// True if the user's input, permissions or machine are at fault, not this program: exit status 2.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::Site(error) => error.is_refusal(),
            Self::Rates(_)
            | Self::Unknown(_)
            | Self::Several(_)
            | Self::NoneRuns
            | Self::OtherNamespace(_) => true,
            other => matches!(other, Self::Runs { .. }),
        }
    }

    fn system(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::System(SystemError::new(what, source))
    }
}
