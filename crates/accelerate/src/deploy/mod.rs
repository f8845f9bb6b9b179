//! A gateway on this machine: what is set up, how it is taken back, and what is missing before anything is
//! changed.
//!
//! The way of a gateway: [`check()`] (findings, and a rehearsal in a network namespace of its own) ->
//! [`run()`]: lock, session file, [`Plan`] carried out, capabilities given up, the data path behind
//! [`Engine`], until a signal -> everything taken back. [`undo()`] takes back what a killed one has left.

mod before;
mod check;
mod deployment;
mod divert;
mod end;
mod engine;
mod error;
mod event;
mod firewall;
mod gateway_node;
mod kept;
#[cfg(test)]
mod kept_tests;
mod live;
mod plan;
mod privileges;
mod reload;
mod resume;
mod run;
#[cfg(test)]
mod run_tests;
mod sandbox;
mod session;
mod setup;
mod watch;
mod watch_rules;

pub use check::{Check, check};
pub use deployment::Deployment;
pub use end::{stop, undo};
pub use engine::{Bare, Engine, Inline, Orders, Start};
pub use error::Error;
pub use event::{Event, Level};
pub use kept::RecordFile;
pub use live::Live;
pub use plan::{Plan, Step};
pub use run::run;
pub use sandbox::Sandbox;
pub use session::{RUN_FOLDER, Session, choose};
