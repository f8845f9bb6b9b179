//! The table of flows: what is kept of which packet, for how long, and under a flood.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod conservation;
mod flood;
mod keep_alive;
mod pass_classes;
mod restart;

#[path = "../table_rig/mod.rs"]
mod table_rig;
