//! The basic types of bentpipe: time, units, sequence numbers, packets, nodes, and the context `Cx` through
//! which a node reads the time, draws random numbers, sends packets and requests wake-ups.
//!
//! Nothing in this crate, or in any crate between it and the drivers, reads a clock, opens a file or socket,
//! starts a thread or uses the system's randomness. `make check` enforces this.

mod address_record;
pub mod addresses;
pub mod cx;
pub mod events;
mod few;
mod growth;
mod heap;
pub mod histogram;
pub mod ids;
pub mod names;
pub mod node;
pub mod outbox;
pub mod packet;
mod prefix;
mod report_keys;
pub mod rng;
pub mod seq;
pub mod shift;
pub mod signal;
pub mod time;
mod too_big;
pub mod trace;
pub mod units;

pub use address_record::RECORD as ADDRESS_RECORD;
pub use addresses::Addresses;
pub use cx::{Cx, World};
pub use growth::push_back;
pub use ids::{NodeId, Port, Slot};
pub use node::{Input, Node};
pub use packet::{
    Addr, Body, Ecn, Flags, IpVersion, OtherOptions, Packet, Phase, Phases, Pkt, ProbeOption, Proto,
    SackList, TcpHeader, Timestamps, mix,
};
pub use prefix::Prefix;
pub use rng::{Purpose, Rng, RngSlot, fnv1a};
pub use seq::Seq;
pub use signal::Signal;
pub use time::{Duration, Instant};
pub use too_big::TooBig;
pub use units::{Dscp, Probability, Rate, Size};
