//! How a gateway tells how it is: figures, the proof of gain, flow records, the control socket, and metrics for Prometheus.

pub mod comparison;
mod http;
mod messages;
mod prometheus;
mod records;

pub use comparison::{Comparison, Groups, Verdict};
pub use http::Http;
pub use messages::{Figures, FlowFigures, FlowPage, PAGE, Reply, Request, Status};
pub use prometheus::metrics;
pub use records::Records;
