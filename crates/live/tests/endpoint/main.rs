//! The endpoint in simulated time: real bytes in real packets over the simulator's links.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod alone;
mod duel;
mod ends;
mod hostile;
mod hosts;
mod path;
mod streams;
mod supers;
mod talk;
