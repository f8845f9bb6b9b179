//! The data path: real bytes become packets for the gateway's node, and what the node sends becomes bytes again.
//!
//! ```text
//! port -> scratch -> parse -> (bytes kept in a slot) Packet -> Gateway -> Packet -> emit: the slot's bytes, header edited -> port
//! ```
//!
//! The unit is the kernel's super-packet with its virtio header; what the node leaves alone goes out byte for byte. The node never sees bytes: its packets say
//! where they lie ([`Body::off`](bentpipe_base::Body) is slot and place in the payload), and the store counts who still holds them.

pub mod addresses;
pub mod buffers;
pub mod core;
pub mod counters;
pub mod drive;
pub mod emit;
mod frame;
mod kin;
mod moderation;
mod options;
pub mod parse;
mod record;
pub mod thread;

pub use self::core::{Core, Middle};
pub use addresses::Addresses;
pub use buffers::{Buffers, Held};
pub use counters::Counters;
pub use drive::{Attendant, Drive};
pub use emit::{Emitted, emit};
pub use frame::Unit;
pub use parse::{Other, Parsed, Shape, parse};
pub use record::RECORD;
pub use thread::{Errand, Outcome, Running, Setup};
