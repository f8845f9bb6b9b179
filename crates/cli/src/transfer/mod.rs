//! `bentpipe send` and `bentpipe receive`: the engine as a real TCP, from this host to any peer and back.

mod common;
mod progress;
pub(crate) mod receive;
pub(crate) mod send;
