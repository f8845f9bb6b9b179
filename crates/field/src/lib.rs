//! A test bed for the gateway that does not use the project's own links: kernel hosts in namespaces, a
//! separate link emulator as the hop, and an analyser that matches packets at both ends of the hop.
//!
//! It checks the results of the project's emulator and simulator independently: other code serves the hop,
//! the hosts are kernel TCP stacks, another parser reads the headers, and the gateway is run as a program.

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
