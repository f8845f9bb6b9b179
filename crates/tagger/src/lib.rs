//! Explicit rate for hosts whose TCP does not signal: a node with two ports beside the host.
//!
//! It adds the structures of TIA-1039 to the host's packets, removes them from the packets that the host
//! gets, and tells its driver which rate each flow was granted. It has no I/O and no clock. All its state is
//! bounded, and it creates no packets: what it sends is a packet that it received, changed or copied.
//! [`Tagger`] does so for TCP, [`DatagramTagger`] for UDP.

mod changes;
mod config;
mod datagrams;
mod flow;
mod peers;
mod room;
mod rules;
mod table;
mod tagger;
mod track;
mod usage;
mod view;

pub use changes::RateNews;
pub use config::{ConfigError, TaggerConfig};
pub use datagrams::{DatagramConfig, DatagramRule, DatagramTagger, DatagramView};
pub use rules::{Opener, Ports, Rule};
pub use table::FlowKey;
pub use tagger::{HOST, NETWORK, Tagger};
pub use view::{FlowPhase, FlowView};
