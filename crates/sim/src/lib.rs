//! Prediction: scenarios in simulated time.

pub mod build;
pub mod report;
pub mod routes;
pub mod run;
mod text;
pub mod world;

pub use report::Report;
pub use run::run;
pub use world::Simulation;
