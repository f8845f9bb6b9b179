//! Emulation sessions: namespaces around a live link, the programs in them, and reports.

pub mod client;
pub mod compare;
pub mod doctor;
pub mod emulation;
pub mod error;
mod etc;
pub mod far;
mod fixes;
pub mod flows;
pub mod leftovers;
pub mod measure;
pub mod metrics;
pub mod named;
mod panel;
pub mod plan;
pub mod registry;
pub mod report;
pub mod run;
mod session;
mod uplink;

pub use error::Error;
pub use session::wait_until_up;
