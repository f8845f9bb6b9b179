//! A session: the namespaces around a live link, and the programs in them.
//!
//! ```text
//!  near (bent0)           mid: the relay                far (bent0)
//!      \______ veth ______ p0  link  p1 ______ veth ______/
//! ```
//!
//! Each host has an unnamed network namespace; so has the relay, which holds the other ends of the hosts'
//! veth pairs and nothing else, so that no packet can bypass the link. All `bent0` interfaces have the same
//! hardware address and no ARP: frames that a host sends to its own address come out at the other side, and
//! only IP crosses the link. The relay's ends have another address, so that the kernel there drops the frames
//! that the relay reads.

mod end;
mod interfaces;
mod nested;
mod open;
mod programs;

pub use interfaces::wait_until_up;
pub(crate) use open::{ends, veth_pair};
pub(crate) use programs::{ProgramMode, check_program, listen};

use crate::registry::{Entry, HostEntry};
use crate::uplink::{Forwarder, Rootless};
use bentpipe_os::netlink::Mac;
use bentpipe_service::{Lock, Registry};
use std::os::fd::OwnedFd;

/// Hardware address of the interfaces in hosts; locally administered.
pub(crate) const HOST_MAC: Mac = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x01];
/// Hardware address of the relay's ends. Hosts do not send to it, so the kernel's IP stack ignores frames.
const PORT_MAC: Mac = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x02];
/// MTU of every interface, in bytes.
const MTU: u32 = 1500;
/// A host's interface to the link.
pub(crate) const INTERFACE: &str = "bent0";

/// Environment variable with the session in which a program runs.
pub(crate) const SESSION_VARIABLE: &str = "BENTPIPE_SESSION";
/// Environment variable with a path that opens the network behind the outermost link.
const FAR_VARIABLE: &str = "BENTPIPE_FAR";

/// A host of a running session.
#[derive(Debug)]
pub(crate) struct SessionHost {
    /// What others know of it. It has an IPv6 address where the kernel has IPv6.
    pub(crate) entry: HostEntry,
    /// Its index among the scenario's nodes.
    pub(crate) node: usize,
    /// Network namespace of its programs.
    pub(crate) network: OwnedFd,
    /// The relay's interface to it, in the network namespace in which [`Session::open`] leaves the thread.
    pub(crate) port: String,
}

/// A running session. Dropping it ends everything in it.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its name.
    pub(crate) id: String,
    /// In the order of the scenario.
    pub(crate) hosts: Vec<SessionHost>,
    /// Index of `near`, where commands run: the receiver of the scenario's first flow.
    pub(crate) near: usize,
    /// Index of `far`, the other end. With an uplink or within another session it is not created here.
    pub(crate) far: usize,
    /// Messages for the user, one line each.
    pub(crate) notes: Vec<String>,
    /// The network namespace in which it was started.
    home: OwnedFd,
    pub(crate) registry: Registry,
    entry: Entry,
    programs: Vec<programs::Running>,
    /// Answers questions about names behind an uplink.
    forwarder: Option<Forwarder>,
    /// Connects the far network of an ordinary user.
    connector: Option<Rootless>,
    /// Held while the session is being created.
    lock: Option<Lock>,
    ended: bool,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
