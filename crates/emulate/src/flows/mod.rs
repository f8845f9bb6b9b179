//! A scenario's flows as kernel sockets, in the namespaces of its hosts.
//!
//! A TCP flow that the kernel cannot run, because it has no such congestion control or because the flow
//! signals rates, has the engine at both ends (`own.rs`), beside the kernel's flows.
//!
//! The applications are those of the simulator, byte for byte and draw for draw (`bentpipe_nodes::app`), but
//! they write to kernel sockets. The scenario's TCP options are set in the kernel by sysctls, routes and
//! socket options, as far as it supports them ([`kernel_requirements`]). The figures come from samples of
//! TCP_INFO.
//!
//! ```text
//!   needs -> sysctl, routes of each host -> sockets, endpoints -> run (one thread, epoll) -> FlowResults
//! ```

mod datagrams;
mod differs;
mod end;
mod engine;
mod needs;
mod own;
mod run;
mod sample;
mod setup;
mod stream;

pub use needs::{HostRequirements, KernelRequirements, kernel_requirements};
pub use run::Flows;
pub(crate) use sample::Samples;
pub use setup::HostNamespace;

use crate::error::Error;
use bentpipe_base::Duration;
use bentpipe_report::FlowReport;
use bentpipe_scenario::{App, FlowSpec};
use bentpipe_sim::build::FlowEnds;
use bentpipe_sim::record::Record;
use bentpipe_tcp::Config;

/// Results of the flows of a live run: those of the scenario, or those of programs.
#[derive(Clone, Debug, Default)]
pub struct FlowResults {
    /// A report for each.
    pub reports: Vec<FlowReport>,
    /// Their time series, on a time axis of their own.
    pub record: Record,
    /// Problems, one line each: connections refused or given up, datagrams that the kernel did not accept.
    pub faults: Vec<String>,
    /// Differences between the kernel and the scenario, and flows without the kernel's TCP, one line each.
    pub differs: Vec<String>,
    /// True if they are the scenario's own flows, in its order.
    pub of_scenario: bool,
}

/// Largest minimum RTO and longest delay of an ACK that the kernel takes (`TCP_RTO_MIN`, `TCP_DELACK_MAX`).
const KERNEL_LONGEST: Duration = Duration::from_millis(200);
/// Largest window without the window scale option.
const UNSCALED: u64 = 65_535;

fn is_tcp(flow: &FlowSpec) -> bool {
    !matches!(flow.app, App::Udp { .. })
}

/// True if the acceptor of the connection sends the data.
const fn acceptor_sends(flow: &FlowSpec) -> bool {
    matches!(flow.app, App::Requests { .. })
}

/// Both ends of a connection: flow, host, configuration, and whether this end receives data.
fn ends_of(flow: &FlowSpec) -> [(&FlowSpec, usize, &Config, bool); 2] {
    let both = acceptor_sends(flow);
    let (opens, accepts) = if both { (&flow.receiver, &flow.sender) } else { (&flow.sender, &flow.receiver) };
    [(flow, flow.from, opens, both), (flow, flow.to, accepts, true)]
}

/// True if `host` sends the data of `flow`.
fn is_sender(flow: &FlowSpec, host: usize) -> bool {
    is_tcp(flow) && host == if acceptor_sends(flow) { flow.to } else { flow.from }
}

/// Ports of the end that opens and of the one that accepts: the simulator's, so that captures of both can be
/// compared. `ends` names the sender first.
const fn ports_of(flow: &FlowSpec, ends: &FlowEnds) -> (u16, u16) {
    if acceptor_sends(flow) { (ends.to.2, ends.from.2) } else { (ends.from.2, ends.to.2) }
}
