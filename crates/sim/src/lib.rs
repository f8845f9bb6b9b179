//! Runs scenarios in simulated time.

pub mod build;
pub mod exchange;
mod flow;
pub mod instrument;
pub mod observe;
pub mod record;
mod recorder;
pub mod reference;
pub mod report;
mod resample;
pub mod routes;
pub mod run;
pub mod steps;

pub use bentpipe_network::Network as Simulation;
pub use instrument::Instruments;
pub use observe::{RecordOptions, Sampler};
pub use record::Record;
pub use run::{SharedSink, run, run_each_event, run_each_packet, run_recorded, run_skipping, run_while};
pub use steps::Steps;

/// Version of the simulator's results. Increase it for changes that [`FINGERPRINTS`] do not show.
pub const SEMANTICS: u32 = 2;

/// Fingerprints of the reports of known runs. With [`SEMANTICS`] they are part of the name of every stored
/// run of a sweep, so that runs are repeated if results change. `tests/golden.rs` checks them.
pub const FINGERPRINTS: &str = include_str!("../tests/golden.txt");
