//! Prediction: scenarios in simulated time.

mod app_report;
pub mod build;
mod flow;
mod flow_report;
mod gateway_report;
pub mod instrument;
mod live_report;
pub mod metric;
pub mod observe;
mod probe_report;
pub mod record;
mod recorder;
pub mod reference;
pub mod report;
mod resample;
pub mod routes;
pub mod run;
mod text;
pub mod world;

pub use instrument::Instruments;
pub use metric::Metric;
pub use observe::{Observe, Sampler};
pub use record::Record;
pub use report::Report;
pub use run::{SharedSink, link_reports, run, run_recorded};
pub use world::Simulation;

/// Version of what the simulator computes. A change of results that [`FINGERPRINTS`] do not show raises it.
pub const SEMANTICS: u32 = 2;

/// Fingerprints of the reports of known runs, and [`SEMANTICS`]: part of the name of every stored run of a sweep, so that runs of versions that
/// compute something else are made anew. `tests/golden.rs` holds it to be true.
pub const FINGERPRINTS: &str = include_str!("../tests/golden.txt");
