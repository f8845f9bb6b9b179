//! A session: the namespaces around a live link, and the programs in them.
//!
//! ```text
//!  near (bent0)           mid: the relay                far (bent0)
//!      \______ veth ______ p0  link  p1 ______ veth ______/
//! ```
//!
//! Each host has a network namespace of its own without a name; the relay has one too, with the other ends of
//! the hosts' interfaces. Nothing else is in it, so that no packet finds a way around the link. Every `bent0`
//! has the same hardware address and no ARP: what a host sends to itself in the sense of Ethernet comes out
//! at the other side, and nothing but IP crosses the link. The relay's ends have another one, so that the
//! kernel there drops what the relay reads before it looks at it.

mod end;
mod nested;
mod open;
mod programs;
mod routes;
mod up;

pub(crate) use programs::listen;
pub use programs::{Ended, News, Stand, check_program};
pub use up::wait_until_up;

use crate::registry::Entry;
use crate::uplink::Uplink;
use bentpipe_os::netlink::{Mac, Metrics};
use bentpipe_service::{Lock, Registry};
use core::net::IpAddr;
use std::os::fd::OwnedFd;

/// Hardware address of the interfaces in hosts; locally administered.
pub const HOST_MAC: Mac = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x01];
/// Hardware address of the relay's ends. Frames from hosts are not for it, so the kernel's own IP stack
/// leaves them alone.
pub const PORT_MAC: Mac = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x02];
/// Longest packet of every interface, in bytes.
pub const MTU: u32 = 1500;
/// The interface of a host that leads to the link.
pub const INTERFACE: &str = "bent0";

/// The session within which a program runs.
pub const SESSION_VARIABLE: &str = "BENTPIPE_SESSION";
/// A path that opens the network behind the outermost link.
pub const FAR_VARIABLE: &str = "BENTPIPE_FAR";

/// What a session is to be.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Its name; `None` makes one from the title.
    pub name: Option<String>,
    /// The link or scenario, for people.
    pub title: String,
    /// Its hosts.
    pub hosts: Vec<HostLayout>,
    /// Which of them is `near`: where commands run.
    pub near: usize,
    /// Which of them is `far`: the other end. With an uplink or within another session it is not made here.
    pub far: usize,
    /// The far end is this machine's own network.
    pub uplink: bool,
}

/// A host that is to be.
#[derive(Clone, Debug, Default)]
pub struct HostLayout {
    /// A name that resolves inside.
    pub name: String,
    /// Kernel settings: path below /proc/sys, and value.
    pub settings: Vec<(String, String)>,
    /// What its TCP connections start with.
    pub metrics: Metrics,
}

/// A host that is there.
#[derive(Debug)]
pub struct HostEnd {
    /// Its name.
    pub name: String,
    /// Where its programs run.
    pub network: OwnedFd,
    /// Tells that network apart from others.
    pub inode: u64,
    /// Made here and gone with the session; false for the far end of an uplink and of a link within a link.
    pub own: bool,
    /// IPv4, and IPv6 where the kernel has it.
    pub addresses: Vec<IpAddr>,
    /// The relay's interface that leads to it, in the network namespace in which [`Session::open`] leaves the
    /// thread.
    pub port: String,
    /// The other end of that.
    pub interface: String,
}

/// A running session. Dropping it ends everything in it.
#[derive(Debug)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// Its hosts, in the order of the layout.
    pub hosts: Vec<HostEnd>,
    /// Which of them is `near`.
    pub near: usize,
    /// Which of them is `far`.
    pub far: usize,
    /// How many links it lies within.
    pub depth: u8,
    /// What a user should hear of, a line each.
    pub notes: Vec<String>,
    /// True when it was made inside a user namespace of its own.
    pub rootless: bool,
    /// The network in which it was started.
    home: OwnedFd,
    registry: Registry,
    entry: Entry,
    programs: Vec<programs::Running>,
    uplink: Option<Uplink>,
    /// Held while the session is being made.
    lock: Option<Lock>,
    ended: bool,
}

impl Session {
    /// Path of the control socket; nothing is there yet.
    pub fn socket_path(&self) -> std::path::PathBuf {
        self.registry.file(&self.id, "sock")
    }

    /// The host of this name; `near` and `far` are always there.
    pub fn host(&self, name: &str) -> Option<usize> {
        let named = self.hosts.iter().position(|h| h.name == name);
        named.or(match name {
            "near" => Some(self.near),
            "far" => Some(self.far),
            _ => None,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
