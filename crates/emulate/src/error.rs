//! Errors that keep a session from starting or continuing, with advice.

use crate::flows;
use bentpipe_os::namespace::UserError;
use bentpipe_os::netlink;
use std::io;
use std::path::PathBuf;

/// An error of a session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An ordinary user cannot create a user namespace.
    #[error("{source}\n{mend}")]
    UserNamespace {
        /// The kernel's error.
        source: UserError,
        /// Advice, one line each.
        mend: String,
    },
    /// Namespaces are refused although the process seemed privileged enough.
    #[error("the kernel refuses a new {what}: {source}\n{mend}")]
    Namespace {
        /// Kind of namespace.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
        /// Advice, one line each.
        mend: String,
    },
    /// Interfaces, addresses or routes.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// A kernel setting.
    #[error("the kernel setting {name} cannot be set to {value}: {source}")]
    Setting {
        /// Its path below /proc/sys.
        name: String,
        /// The value.
        value: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The relay's ports.
    #[error(transparent)]
    Port(#[from] bentpipe_os::PortError),
    /// The registry.
    #[error(transparent)]
    File(#[from] bentpipe_service::FileError),
    /// The control socket.
    #[error(transparent)]
    Server(#[from] bentpipe_service::ServerError),
    /// The folder of results.
    #[error(transparent)]
    Results(#[from] bentpipe_results::Error),
    /// The scenario's own flows.
    #[error(transparent)]
    Flows(#[from] flows::Error),
    /// The link itself.
    #[error(transparent)]
    Live(#[from] bentpipe_live::Error),
    /// Another error of the system.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// Only root may change the machine's network.
    #[error(
        "--uplink changes this machine's network and needs root\nhelp: sudo bentpipe emulate ... --uplink"
    )]
    UplinkNeedsRoot,
    /// The uplink cannot be created.
    #[error("--uplink: {0}")]
    Uplink(String),
    /// A program that does not exist.
    #[error(
        "there is no program `{0}`\nhelp: after -- comes a command as in a shell: its name, then its arguments"
    )]
    NoProgram(String),
    /// A program that could not be started.
    #[error("`{program}` cannot be started: {reason}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// A session of this name is running.
    #[error("a session called `{0}` is running\nhelp: choose another --name, or end that one")]
    Taken(String),
    /// A name that cannot be a file name.
    #[error("`{0}` cannot be the name of a session: use letters, digits, `-`, `_` and `.`, at most 40")]
    BadName(String),
    /// The runtime folder is not safe.
    #[error(
        "{folder}: {reason}\nhelp: remove it, or set XDG_RUNTIME_DIR to a folder that only you can write to"
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Too many nested links.
    #[error("{0} links within each other are too many")]
    TooDeep(u8),
    /// More hosts than addresses.
    #[error("{0} hosts are too many for one session; the limit is {1}")]
    TooManyHosts(usize, usize),
}

impl Error {
    /// Another error of the system.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// True if the user's input, permissions or machine caused it, not this program: exit status 2.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Flows(error) => error.is_refusal(),
            Self::Netlink(_)
            | Self::Setting { .. }
            | Self::System { .. }
            | Self::File(_)
            | Self::Live(_)
            | Self::Server(_)
            | Self::Results(_) => false,
            _ => true,
        }
    }
}
