//! Messages on the control socket: lines of JSON.

use crate::kernel::KernelView;
use crate::path::{DatagramStatus, Traffic};
use crate::split::{Counters, FlowView};
use bentpipe_accelerate::deploy::Sandbox;
use serde::{Deserialize, Serialize};

/// Most connections in an answer.
pub const MOST_FLOWS: usize = 1000;

/// A request to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Ask for its status.
    Status,
}

/// A reply to a request that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Its status.
    Status(Box<Status>),
}

impl bentpipe_service::Reply for Reply {
    type Request = Request;
    const SERVICE: &'static str = "agent";
}

/// Status of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name.
    pub name: String,
    /// Path of its file.
    pub file: String,
    /// `split` or `kernel`.
    pub method: String,
    /// `inline`, `routed` or `host`.
    pub kind: String,
    /// Seconds since the start.
    pub uptime_s: f64,
    /// True while it takes no new connections and waits for the end of those that it has.
    pub draining: bool,
    /// Connections that it has now.
    pub open: usize,
    /// The first of them, at most [`MOST_FLOWS`], with some that have just ended.
    pub flows: Vec<FlowView>,
    /// Counters since the start.
    pub counters: Counters,
    /// Counters of the ports.
    pub traffic: Traffic,
    /// Flows of datagrams; null without a rule for them.
    pub datagrams: Option<DatagramStatus>,
    /// Packets lost at the ports, by place.
    pub port_drops: Vec<(String, u64)>,
    /// Memory set aside for the connections, in use, and the limit, in bytes.
    pub memory: [u64; 3],
    /// State of the sandbox.
    pub sandbox: Sandbox,
    /// The process that resets the connections if the agent is killed, or keeps the guard for them; null if
    /// there is none any more.
    pub watcher: Option<i32>,
    /// With the method `kernel`, its state.
    #[serde(default)]
    pub kernel: Option<KernelView>,
}
