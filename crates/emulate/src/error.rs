//! Errors that keep a session or a scenario's flows from starting or continuing, with advice.

use bentpipe_os::namespace::UserError;
use bentpipe_os::netlink;
use bentpipe_scenario::SimulatedOnly;
use bentpipe_service::SystemError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An error of a session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An ordinary user cannot create a user namespace: the kernel's error, and lines of advice.
    #[error("{0}\n{1}")]
    UserNamespace(#[source] UserError, String),
    /// Network namespaces are refused although the process seemed privileged enough; with lines of advice.
    #[error("the kernel refuses a new network namespace: {0}\n{1}")]
    NetworkNamespace(#[source] io::Error, String),
    /// Interfaces, addresses or routes.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The relay's ports.
    #[error(transparent)]
    Port(#[from] bentpipe_os::PortError),
    /// The folder of results.
    #[error(transparent)]
    Results(#[from] bentpipe_results::Error),
    /// The link itself.
    #[error(transparent)]
    Live(#[from] bentpipe_live::Error),
    /// The registry, the control socket, a kernel setting, or another error of the system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// Only root may change the machine's network, and nothing is installed that connects an ordinary user's.
    #[error(
        "--uplink changes this machine's network and needs root; pasta or slirp4netns would do without\n\
         help: sudo apt-get install passt, or the package slirp4netns; or sudo bentpipe emulate ... --uplink"
    )]
    UplinkNeedsHelper,
    /// The uplink cannot be created.
    #[error("--uplink: {0}")]
    Uplink(String),
    /// A program that does not exist.
    #[error(
        "there is no program `{0}`\nhelp: after -- comes a command as in a shell: its name, then its arguments"
    )]
    NoProgram(String),
    /// A program that could not be started, and why.
    #[error("`{0}` cannot be started: {1}")]
    Start(String, String),
    /// The address for metrics cannot be used.
    #[error("metrics at {0}: {1}\nhelp: choose an address of this machine and a port that is free")]
    Metrics(SocketAddr, #[source] io::Error),
    /// The far program did not listen at the port that the command waits for: the port, and why not.
    #[error(
        "the far program did not open port {0}: {1}\nhelp: --far-within gives it longer, --far-ready off waits for nothing"
    )]
    FarNotReady(u16, String),
    /// A session of this name is running.
    #[error("a session called `{0}` is running\nhelp: choose another --name, or end that one")]
    Taken(String),
    /// A name that cannot be a file name.
    #[error("`{0}` cannot be the name of a session: use letters, digits, `-`, `_` and `.`, at most 40")]
    BadName(String),
    /// The runtime folder is not safe, and why.
    #[error("{0}: {1}\nhelp: remove it, or set XDG_RUNTIME_DIR to a folder that only you can write to")]
    Folder(PathBuf, String),
    /// A part of a scenario that exists in simulated time only.
    #[error("{}: {}\nhelp: run the scenario with `bentpipe sim`, or {}", .0.what, .0.why, .0.instead)]
    SimulatedOnly(SimulatedOnly),
    /// A flow of datagrams that is to signal rates.
    #[error(
        "flow `{0}` asks for rates for its datagrams, which a live flow cannot\n\
         help: run the scenario with `bentpipe sim`, or this flow without: `encoding = \"off\"`"
    )]
    Signalling(String),
    /// Too many nested links.
    #[error("too many nested links: {0}")]
    TooDeep(u8),
    /// More hosts than addresses.
    #[error("{0} hosts are too many for one session; the limit is {1}")]
    TooManyHosts(usize, usize),
    /// Two flows need different settings of one network namespace: the setting, the host, and the flows.
    #[error(
        "flows `{2}` and `{3}` differ in {0}, and host `{1}` has one setting for both\n\
         help: give one of them hosts of its own, or run the scenario with `bentpipe sim`"
    )]
    Shared(&'static str, String, String, String),
    /// A flow with a segment size outside the kernel's limits.
    #[error(
        "flow `{0}` has segments of {1} B; the kernel takes {2} B to {3} B here\n\
         help: change `segment`, or run the scenario with `bentpipe sim`"
    )]
    Segment(String, u16, u16, u16),
    /// A flow with datagrams too short for a timestamp, or too long.
    #[error(
        "flow `{0}` sends datagrams of {1} B; a real one carries its number and time and has {2} B to {3} B\n\
         help: change `size`, or run the scenario with `bentpipe sim`"
    )]
    Datagram(String, u64, u64, u64),
    /// More sockets are needed than the process may open.
    #[error(
        "{0} sockets are needed, this process may have {1} open files\n\
         help: raise the limit with `ulimit -n {0}`, or run fewer flows"
    )]
    Descriptors(u64, u64),
}

impl Error {
    /// Another error of the system.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System(SystemError::new(what, source))
    }

    /// A kernel setting, by its path below /proc/sys, that cannot be changed.
    pub(crate) fn setting(name: &str, value: &str, source: io::Error) -> Self {
        Self::system(format!("the kernel setting {name} cannot be set to {value}"), source)
    }

    /// True if the user's input, permissions or machine caused it, not this program: exit status 2.
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::Netlink(_) | Self::System(_) | Self::Live(_) | Self::Results(_) | Self::FarNotReady(..)
        )
    }
}
