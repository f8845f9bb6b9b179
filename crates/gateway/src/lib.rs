//! The gateway in front of a satellite hop: accelerates the TCP connections of unmodified hosts and keeps TCP
//! end to end.
//!
//! It is one [`Node`](bentpipe_base::Node) with two ports, the same in simulation and live. It creates no
//! packets: everything it sends is a packet that it received, possibly delayed, duplicated, cut, or with
//! changed header fields. So a driver with real bytes only has to edit packets.

mod census;
mod config;
mod counters;
mod flow;
mod gateway;
mod memory;
mod policy;
mod report;
mod sides;
mod table;

pub use census::WindowClass;
pub use config::{Config, Copies, Limits, Mode, Timeouts};
pub use counters::{Counters, PassReason};
pub use gateway::{Gateway, Restored};
pub use memory::buffer_size;
pub use policy::{Action, Policy, PortRange, Rule, Side, SynProperties};
pub use report::{EndReason, FlowReport, GatewayReport, GoodputStats, State};
pub use sides::{LAN, SATELLITE};
pub use table::persist::{RECORD, Record, RecordError, SavedState};
