//! Prediction: scenarios in simulated time.

pub mod build;
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
pub mod world;

pub use instrument::Instruments;
pub use observe::{Observe, Sampler};
pub use record::Record;
pub use run::{SharedSink, run, run_recorded};
pub use world::Simulation;

/// Version of what the simulator computes. A change of results that [`FINGERPRINTS`] do not show raises it.
pub const SEMANTICS: u32 = 2;

/// Fingerprints of the reports of known runs, and [`SEMANTICS`]: part of the name of every stored run of a
/// sweep, so that runs of versions that compute something else are made anew. `tests/golden.rs` holds it to
/// be true.
pub const FINGERPRINTS: &str = include_str!("../tests/golden.txt");
