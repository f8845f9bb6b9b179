//! The TCP engine: both directions of a connection, without I/O and without a clock.

pub mod cc;
pub mod config;
pub mod scheme;

pub use config::{Config, DelayedAck, Jitter, JitterKind, Options, ReceiveBuffer, RtoConfig, Validation};
pub use scheme::{Detection, Growth, RecoveryParams, Reduction, Scheme};
