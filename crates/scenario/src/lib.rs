//! Scenario files: TOML with units, parameters and errors that point at the guilty character.

pub mod types;

pub use types::*;
