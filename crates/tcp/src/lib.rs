//! The TCP engine: both directions of a connection, without I/O and without a clock.
//!
//! Data flow of an acknowledgment: segment -> [`board`] -> [`recovery`] -> [`cc`] -> `Plan` -> [`pacer`] ->
//! next segment.

mod acks;
pub mod board;
pub mod cc;
pub mod config;
pub mod connection;
mod copy_selector;
pub mod delivery;
mod ecn;
pub mod grants;
mod handshake;
mod icmp;
mod input;
mod keep_alive;
pub mod limits;
mod linux;
mod moved;
mod nagle;
pub mod options;
mod output;
pub mod pacer;
mod prediction;
mod probe_output;
pub mod probes;
mod quick_acks_linux;
pub mod range_set;
pub mod receiver;
pub mod recovery;
pub mod rtt;
mod rtt_linux;
pub mod scheme;
mod signalling;
pub mod stamps;
mod state;
pub mod steady;
pub mod timers;
mod told;
mod tso_linux;
pub mod usage;
pub mod window;

/// The example in CONTRIBUTING compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
mod contributing {}

pub use bentpipe_advice::negotiation::{AskConfig, Encoding, RateAnswer, RateChange, RateState};
pub use cc::law::Growth;
pub use config::{
    Config, DelayedAck, EcnUse, Jitter, JitterKind, KeepAlive, Options, ReceiveBuffer, RtoConfig, Signalling,
    Stack, Validation,
};
pub use connection::Connection;
pub use grants::{FallbackScheme, GrantConfig};
pub use handshake::{Offer, reset_for, reset_in_listen};
pub use icmp::Icmp;
pub use limits::Limit;
pub use scheme::{Detection, RecoveryParams, Reduction, Scheme};
pub use signalling::RateView;
pub use state::{Event, RandomValues, State, Stats, Tuple};
