//! Explicit rate for sockets of the kernel's TCP: they send at the rate that an agent was granted for them.
//!
//! A congestion control in BPF (`bpf/rate.bpf.c`) paces sockets, and a program of a control group gives it
//! to those that have a rate. Nothing else on the machine uses it, and it needs no undoing: when the agent
//! ends, however it ends, its sockets go on under the kernel's CUBIC within two seconds, and the kernel
//! removes what was loaded with the last of them. [`guard`] is what keeps structures from the kernel's TCP
//! meanwhile.
//!
//! All this needs the feature `bpf`. Without it [`KernelRate::check`] says so.

pub mod guard;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(not(feature = "bpf"))]
mod missing;
#[cfg(any(feature = "bpf", test))]
mod tuple;

use bentpipe_base::{Duration, Prefix, Rate};
use core::net::SocketAddr;
#[cfg(feature = "bpf")]
pub use loaded::KernelRate;
#[cfg(not(feature = "bpf"))]
pub use missing::KernelRate;
use std::path::PathBuf;

/// Name of the congestion control, as the kernel lists it; those of further agents end in a number.
pub const NAME: &str = "bent_rate";

/// Which sockets may get a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Mount point of the cgroup hierarchy, version 2, or a group in it: sockets of its processes. `None`:
    /// all processes of the machine.
    pub cgroup: Option<PathBuf>,
    /// Addresses of the peers.
    pub peers: Vec<Prefix>,
}

/// A TCP connection, seen from its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// The socket's address and port.
    pub local: SocketAddr,
    /// Those of the peer.
    pub remote: SocketAddr,
}

/// What a socket was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The rate in bit/s of IP packets.
    pub rate: Rate,
    /// The round-trip time, for sockets that have not measured one; zero if it is not known.
    pub rtt: Duration,
    /// Bytes that the agent adds to each data packet: 16 in IPv6.
    pub extra: u16,
    /// Share of lost packets above which the rate is not trusted, in 1/1000: 100, for radio 200.
    pub threshold: u16,
}

/// What happened to sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// They got a rate.
    pub adopted: u64,
    /// More was lost than a rate explains, or nobody answered.
    pub fell_back: u64,
    /// Their rate ended, or the agent did.
    pub left: u64,
    /// The kernel did not let them have it.
    pub refused: u64,
}

/// Why the kernel cannot do this.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// It is not in this program.
    #[error("this program was built without BPF: build it with the feature `bpf`")]
    NotBuilt,
    /// The kernel lacks something.
    #[error("the kernel {lacks}: {hint}")]
    Kernel {
        /// What.
        lacks: &'static str,
        /// What helps.
        hint: &'static str,
    },
    /// The control group cannot be opened.
    #[error("the control group {} cannot be opened: {source}", path.display())]
    Group {
        /// Its path.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The kernel refuses the program.
    #[error("the kernel refuses to {what}: {error}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// Its error.
        error: String,
    },
    /// There are too many sockets or prefixes.
    #[error("no room for another {0}")]
    Full(&'static str),
}
