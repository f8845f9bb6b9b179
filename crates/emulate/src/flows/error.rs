//! What keeps a scenario's flows from running as sockets of the kernel.

use std::io;

/// Why flows cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel lacks a congestion control.
    #[error(
        "flow `{flow}` asks for {scheme}, which this kernel does not have (it has {known})\n\
         help: load it as root with `modprobe tcp_{scheme}`, or choose another: --set tcp=cubic where the scenario has that parameter"
    )]
    Congestion {
        /// The flow.
        flow: String,
        /// What it asks for.
        scheme: String,
        /// What there is.
        known: String,
    },
    /// Two flows need different settings of one network namespace.
    #[error(
        "flows `{one}` and `{other}` differ in {what}, and host `{host}` has one setting for both\n\
         help: give one of them hosts of its own, or run the scenario with `bentpipe sim`"
    )]
    Shared {
        /// The setting.
        what: &'static str,
        /// Where.
        host: String,
        /// A flow.
        one: String,
        /// Another one.
        other: String,
    },
    /// A segment that does not fit the interface, or the kernel.
    #[error(
        "flow `{flow}` has segments of {bytes} B; the kernel takes {least} B to {most} B here\n\
         help: change `segment`, or run the scenario with `bentpipe sim`"
    )]
    Segment {
        /// The flow.
        flow: String,
        /// What it asks for.
        bytes: u16,
        /// Least.
        least: u16,
        /// Most.
        most: u16,
    },
    /// Datagrams that cannot say when they were sent.
    #[error(
        "flow `{flow}` sends datagrams of {bytes} B; a real one carries its number and time and has {least} B to {most} B\n\
         help: change `size`, or run the scenario with `bentpipe sim`"
    )]
    Datagram {
        /// The flow.
        flow: String,
        /// What it asks for.
        bytes: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// More sockets than this process may have.
    #[error(
        "{needed} sockets are needed, this process may have {limit} open files\n\
         help: raise the limit with `ulimit -n {needed}`, or run fewer flows"
    )]
    Descriptors {
        /// Needed.
        needed: u64,
        /// Allowed.
        limit: u64,
    },
    /// A kernel setting that cannot be made.
    #[error("host `{host}`: the kernel setting {setting} cannot be {value}: {source}")]
    Setting {
        /// The host.
        host: String,
        /// Path below /proc/sys.
        setting: String,
        /// What it should be.
        value: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// A route that cannot be made.
    #[error("host `{host}`: {source}")]
    Route {
        /// The host.
        host: String,
        /// What the kernel says.
        source: bentpipe_os::netlink::Error,
    },
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

    /// True when the scenario or the machine is at fault, not this program: exit status 2.
    pub const fn is_refusal(&self) -> bool {
        !matches!(self, Self::Setting { .. } | Self::Route { .. } | Self::System { .. })
    }
}
