//! Errors that keep a scenario's flows from running as kernel sockets.

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
        /// The requested value.
        scheme: String,
        /// The available ones.
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
        /// The host.
        host: String,
        /// The first flow.
        one: String,
        /// The other flow.
        other: String,
    },
    /// A segment size outside the kernel's limits.
    #[error(
        "flow `{flow}` has segments of {bytes} B; the kernel takes {least} B to {most} B here\n\
         help: change `segment`, or run the scenario with `bentpipe sim`"
    )]
    Segment {
        /// The flow.
        flow: String,
        /// The requested value.
        bytes: u16,
        /// Minimum.
        least: u16,
        /// Maximum.
        most: u16,
    },
    /// Datagrams too short for a timestamp, or too long.
    #[error(
        "flow `{flow}` sends datagrams of {bytes} B; a real one carries its number and time and has {least} B to {most} B\n\
         help: change `size`, or run the scenario with `bentpipe sim`"
    )]
    Datagram {
        /// The flow.
        flow: String,
        /// The requested value.
        bytes: u64,
        /// Minimum.
        least: u64,
        /// Maximum.
        most: u64,
    },
    /// More sockets than the process may open.
    #[error(
        "{needed} sockets are needed, this process may have {limit} open files\n\
         help: raise the limit with `ulimit -n {needed}`, or run fewer flows"
    )]
    Descriptors {
        /// Files needed.
        needed: u64,
        /// Files allowed.
        limit: u64,
    },
    /// A kernel setting that cannot be changed.
    #[error("host `{host}`: the kernel setting {setting} cannot be {value}: {source}")]
    Setting {
        /// The host.
        host: String,
        /// Path below /proc/sys.
        setting: String,
        /// The value.
        value: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A route that cannot be set.
    #[error("host `{host}`: {source}")]
    Route {
        /// The host.
        host: String,
        /// The kernel's error.
        source: bentpipe_os::netlink::Error,
    },
    /// Another error of the system.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    pub(super) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// True if the scenario or the machine caused it, not this program: exit status 2.
    pub const fn is_refusal(&self) -> bool {
        !matches!(self, Self::Setting { .. } | Self::Route { .. } | Self::System { .. })
    }
}
