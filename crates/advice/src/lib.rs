//! Rates that a network tells the ends of a flow: how packets carry them, and what an end does with them.
//!
//! A sender puts a question into a packet, and each router on the path that understands it writes down what
//! it can give. There are four encodings: the structures of TIA-1039 ([`tia1039`]), SCONE in a QUIC datagram
//! ([`scone`]) and in a TCP option ([`scone_tcp`]), and the options of Quick-Start ([`quick_start`]).
//! [`negotiation`] is one end of a connection that asks and answers.
//!
//! All bytes may come from an attacker: what cannot be read is not there, and what a router does not
//! understand stays as it came. Nothing here decides how much a flow gets.

pub mod header_options;
pub mod negotiation;
mod options;
pub mod quick_start;
pub mod rate_field;
mod rewrite;
pub mod scone;
pub mod scone_tcp;
pub mod tia1039;

pub use rate_field::{RATE_UNIT_BPS, decode_rate, encode_rate, rounded};
pub use rewrite::Rewrite;
