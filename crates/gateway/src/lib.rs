//! The gateway before a satellite hop: makes unmodified hosts fast, and keeps TCP's promise.
//!
//! It is one [`Node`](bentpipe_base::Node) with two ports, the same in simulation and live. It writes no
//! packet of its own: what it sends is a packet that it received, held for a while, copied, cut, or with some
//! fields of its header changed. So a driver that has real bytes needs nothing but edits.

mod config;
mod counters;
mod flow;
mod gateway;
mod memory;
mod policy;
mod report;
mod sides;
mod table;

pub use config::{Config, Copies, Limits, Mode, Timeouts};
pub use counters::{Counters, Why};
pub use gateway::{Gateway, Restored};
pub use memory::buffer_size;
pub use policy::{Action, Opening, Policy, PortRange, Prefix, Rule, Side};
pub use report::{End, FlowReport, GatewayReport, Group, State};
pub use sides::{LAN, SATELLITE};
pub use table::persist::{Persist, RECORD, Record, RecordError};
