//! Runs a gateway on real interfaces.

pub mod deploy;
pub mod path;
pub mod policy;
pub mod status;
