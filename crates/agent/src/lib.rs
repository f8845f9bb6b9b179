//! The host agent: asks the network for rates in the place of hosts that cannot.
//!
//! [`split`] is its data path: it ends the connections of the host and goes on with the engine, which
//! signals. [`path`] runs it between two packet ports, [`deploy`] sets it up on a machine, and [`status`] has
//! the messages of its control socket.

pub mod deploy;
pub mod path;
pub mod split;
pub mod status;
