//! The fault model of explicit-rate signalling: packets that are lost, doubled, or arrive after their
//! successor, on every hop between two hosts with two sites of flow routers.
//!
//! After each run: every byte exact at both ends, each end has a rate or is an ordinary TCP, no router gave
//! more than it has from two round trips after the last fault on, and no router keeps state of a closed flow.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it has measured")]

mod combos;
mod end;
mod faults;
mod hostile;
mod lost;
mod net;
mod walks;
mod watch;
