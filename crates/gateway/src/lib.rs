//! The gateway before a satellite hop: makes unmodified hosts fast, and keeps TCP's promise.
//!
//! It is one [`Node`](bentpipe_base::Node) with two ports, the same in simulation and live. It writes no packet of its own: what it sends is a packet that it
//! received, held for a while, copied, cut, or with some fields of its header changed. So a driver that has real bytes needs nothing but edits.

mod config;
#[allow(dead_code, reason = "the node passes everything so far")]
mod counters;
mod gateway;
#[allow(dead_code, reason = "the node passes everything so far")]
mod report;

pub use config::{Config, Copies, Limits, Mode, Timeouts};
pub use counters::{Cause, Counters, Why};
pub use gateway::{Gateway, LAN, SATELLITE};
pub use report::{End, FlowReport, GatewayReport, Group, State};
