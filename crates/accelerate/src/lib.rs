//! Runs a gateway on real interfaces.

#![allow(clippy::missing_errors_doc, reason = "the errors are described where they are defined")]

pub mod deploy;
pub mod status;
