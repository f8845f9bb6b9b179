//! Runs a gateway on this machine: checks, set-up and clean-up.
//!
//! Sequence: [`check()`] (findings, and a rehearsal in a separate network namespace), then [`run()`]: takes
//! the lock, writes the session file, carries out the plan, gives up capabilities, runs the data path
//! behind [`Engine`] until a signal, and undoes all changes. [`undo()`] undoes the changes of a killed
//! gateway.

mod check;
mod deployment;
mod divert;
mod engine;
mod error;
mod firewall;
mod gateway_engine;
mod gateway_node;
mod plan;
mod prestart;
mod privileges;
mod rate_routers;
mod record_file;
#[cfg(test)]
mod record_file_tests;
mod reload;
mod resume;
mod run;
#[cfg(test)]
mod run_tests;
mod sandbox;
mod session;
mod setup;
mod stop;
mod watch;
mod watch_rules;

pub use check::{Check, check, check_host, check_site};
pub use deployment::Deployment;
pub use engine::{Engine, EngineConfig, Event, Level, PassThrough, Start};
pub use error::Error;
pub use gateway_engine::GatewayEngine;
pub use plan::{Plan, Step, VETH_MAC};
pub use privileges::give_up as give_up_privileges;
pub use record_file::RecordFile;
pub use run::run;
pub use sandbox::Sandbox;
pub use session::{RUN_FOLDER, Session, choose};
pub use setup::apply;
pub use stop::{stop, undo};
