//! Runs a gateway on real interfaces.

pub mod path;
