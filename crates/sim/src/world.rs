//! The network in which a scenario runs.

pub use bentpipe_network::Network as Simulation;
