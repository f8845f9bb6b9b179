//! Runs a gateway on real interfaces.

pub mod deploy;
pub mod status;
