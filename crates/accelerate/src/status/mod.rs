//! Status of a gateway: counters, measured gain, flow records, the control socket, and metrics for
//! Prometheus.

pub mod comparison;
mod flow;
mod messages;
mod prometheus;
mod records;

pub use comparison::{Comparison, Groups, Verdict};
pub use flow::{FlowPage, FlowStats};
pub use messages::{GatewayCounters, NodeFigures, PAGE, Reply, Request, Status, WindowStats};
pub use prometheus::metrics;
pub use records::Records;
