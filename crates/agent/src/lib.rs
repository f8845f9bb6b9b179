//! The host agent: asks the network for rates in the place of hosts that cannot.
//!
//! [`split`] is one data path: it ends the connections of the host and goes on with the engine, which
//! signals. [`path`] runs it between two packet ports. [`kernel`] is the other: it signals in the host's own
//! packets. [`deploy`] sets an agent up on a machine, and [`status`] has the messages of its control socket.

pub mod deploy;
pub mod kernel;
pub mod path;
pub mod split;
pub mod status;
