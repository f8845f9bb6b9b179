//! What can keep a session from starting or from going on, in words that say what to do about it.

use crate::flows;
use bentpipe_os::namespace::UserError;
use bentpipe_os::netlink;
use std::io;
use std::path::PathBuf;

/// A fault of a session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No user namespace for an ordinary user.
    #[error("{source}\n{mend}")]
    UserNamespace {
        /// What the kernel says.
        source: UserError,
        /// What to do, a line each.
        mend: String,
    },
    /// Namespaces are refused although this looked privileged enough.
    #[error("the kernel refuses a new {what}: {source}\n{mend}")]
    Namespace {
        /// Which kind.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
        /// What to do, a line each.
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
        /// What it should be.
        value: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// The relay's ends.
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
    /// Everything else that the system refuses.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// The host's network may only be touched by root.
    #[error(
        "--uplink changes this machine's network and needs root\nhelp: sudo bentpipe emulate ... --uplink"
    )]
    UplinkNeedsRoot,
    /// The uplink cannot be made.
    #[error("--uplink: {0}")]
    Uplink(String),
    /// A program that is not there.
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
    /// A session of this name runs.
    #[error("a session called `{0}` is running\nhelp: choose another --name, or end that one")]
    Taken(String),
    /// A name that cannot be a file name.
    #[error("`{0}` cannot be the name of a session: use letters, digits, `-`, `_` and `.`, at most 40")]
    BadName(String),
    /// The runtime folder is not to be trusted.
    #[error(
        "{folder}: {reason}\nhelp: remove it, or set XDG_RUNTIME_DIR to a folder that only you can write to"
    )]
    Folder {
        /// Where.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Links within links have an end.
    #[error("{0} links within each other are too many")]
    TooDeep(u8),
    /// More hosts than addresses.
    #[error("{0} hosts are too many for one session; the limit is {1}")]
    TooManyHosts(usize, usize),
}

impl Error {
    /// Something the system refused.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// True when the user's input, permissions or machine are at fault, not this program: exit status 2.
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
