//! `bentpipe send` and `bentpipe receive`: the TCP engine as a real TCP from this host to any peer.

mod common;
mod progress;
pub(crate) mod receive;
pub(crate) mod send;
