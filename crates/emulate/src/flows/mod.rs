//! A scenario's own flows as sockets of the kernel, in the namespaces of its hosts.
//!
//! The applications are those of the simulator, byte for byte and draw for draw (`bentpipe_nodes::app`); only
//! what they write to is another: a socket. What a scenario says about a host's TCP is told to the kernel by
//! settings, routes and socket options, as far as it listens ([`needs()`]); what it does, it says in
//! TCP_INFO, which is sampled.
//!
//! ```text
//!   needs -> sysctl and routes of each host -> sockets -> run (one thread, epoll) -> Outcome -> Report
//! ```

mod datagrams;
mod differs;
mod end;
mod error;
mod needs;
mod options;
mod outcome;
mod run;
mod sample;
mod setup;
mod stream;

pub use error::Error;
pub use needs::{HostNeeds, Kernel, Needs, needs};
pub use outcome::Outcome;
pub use run::{Flows, Progress};
pub(crate) use sample::Samples;
pub use setup::HostPlace;

use bentpipe_scenario::{App, FlowSpec};
use bentpipe_tcp::Config;

fn is_tcp(flow: &FlowSpec) -> bool {
    !matches!(flow.app, App::Udp { .. })
}

/// True when the data comes from the host that was called.
fn answers(flow: &FlowSpec) -> bool {
    matches!(flow.app, App::Requests { .. })
}

/// The host where the data comes from.
fn sends(flow: &FlowSpec) -> usize {
    if answers(flow) { flow.to } else { flow.from }
}

/// Both ends of a connection: the flow, the host, its configuration, and whether data of any size comes to
/// it.
fn ends_of(flow: &FlowSpec) -> [(&FlowSpec, usize, &Config, bool); 2] {
    let both = answers(flow);
    let (opens, accepts) = if both { (&flow.receiver, &flow.sender) } else { (&flow.sender, &flow.receiver) };
    [(flow, flow.from, opens, both), (flow, flow.to, accepts, true)]
}

/// True when `host` is where the data of `flow` comes from.
fn is_sender(flow: &FlowSpec, host: usize) -> bool {
    is_tcp(flow) && sends(flow) == host
}
