//! A bed for the gateway that shares nothing with the links of the project: kernel hosts in namespaces, a hop
//! with an emulator of its own, and an analyser that matches what entered the hop with what left it, packet
//! by packet.
//!
//! What the project's own emulator and simulator hold of the gateway is held here again by other means: the
//! hop is served by other code, the hosts are the kernel's, headers are read by another parser, and the
//! gateway is known only as a program.

#![allow(
    clippy::disallowed_methods,
    reason = "real programs are waited for, and hosts are threads in namespaces of their own"
)]

pub mod analyse;
pub mod bed;
pub mod cell;
pub mod datagrams;
pub mod gateway;
pub mod hop;
pub mod lines;
pub mod matrix;
pub mod namespace;
pub mod reader;
pub mod recognition;
pub mod report;
pub mod run;
pub mod scenario;
pub mod sender;
pub mod slow;
pub mod untouched;
pub mod watch;
