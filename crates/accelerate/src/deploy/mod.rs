//! Runs a gateway on this machine: checks, set-up and clean-up.
//!
//! Sequence: [`check()`] (findings, and a rehearsal in a separate network namespace), then [`run()`]: takes
//! the lock, writes the session file, carries out the plan, gives up capabilities, runs the data path
//! behind [`Engine`] until a signal, and undoes all changes. [`undo()`] undoes the changes of a killed
//! gateway.

mod before;
mod check;
mod deployment;
mod divert;
mod end;
mod engine;
mod error;
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
pub use engine::{Engine, EngineConfig, Event, Level, PassThrough, Start};
pub use error::Error;
pub use kept::RecordFile;
pub use live::GatewayEngine;
pub use run::run;
pub use sandbox::Sandbox;
pub use session::{RUN_FOLDER, Session, choose};
