//! A flow router: it tells flows that ask with TIA-1039 signalling what rate they may send at.
//!
//! It is one [`Node`](bentpipe_base::Node) with two ports before one direction of a link, the same in
//! simulation and live. It keeps state for each flow into that direction, lowers the rates in passing
//! requests to its fair share, and writes a lower rate into a packet of the flow when the share shrinks. It
//! creates none but the datagrams that tell flows of datagrams, holds none, and drops only what exceeds a
//! granted rate for longer than allowed. Flows without signalling pass unchanged and count as users of the
//! link. It marks packets for a queue that serves reserved rates and delay priorities first.

mod admission;
mod charges;
mod classes;
mod config;
mod encodings;
mod flow;
mod flows;
mod half_open;
mod offers;
mod plain_use;
mod police;
mod policy;
mod report;
mod router;
mod share;
mod telling;

pub use config::{ClassConfig, ConfigError, RouterConfig};
pub use encodings::{Encodings, RouterEncoding};
pub use policy::{Policy, Rule};
pub use router::{Fixed, FlowRouter, MANAGED, SENDERS};
