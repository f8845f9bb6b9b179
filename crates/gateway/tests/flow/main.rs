//! Connections through the gateway: dialogues, transfers, ends, and hostile hosts.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod dialogue;
mod ends;
mod flow_rig;
mod hostile;
mod promise;
mod rest;
mod super_packets;
mod transfer;

#[path = "../table_rig/mod.rs"]
mod table_rig;
