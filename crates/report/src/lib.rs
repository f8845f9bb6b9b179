//! The report of a run, the same type for simulated and live runs.
//!
//! [`Report`] is the content of `report.json`; reading and writing it gives the same bytes. [`Metric`]
//! selects a value by name. Reports are filled elsewhere: from a simulated network in `bentpipe-sim`, from
//! kernel sockets in `bentpipe-emulate`.

mod application;
mod csv;
mod flow;
mod gateway;
mod instrument;
mod link;
mod live;
pub mod metric;
mod node;
mod number;
mod probes;
mod quantiles;
mod reference;
mod report;
mod text;
mod unit;
mod words;

pub use application::{DelayReport, RequestsReport, TelnetReport, TransferReport, UdpReport};
pub use csv::csv;
pub use flow::{FallbackReport, FlowContext, FlowKind, FlowReport, LimitedBy, TcpReport, rate_bps};
pub use gateway::{GatewayFlows, GatewayReport};
pub use instrument::InstrumentReport;
pub use link::{Counts, LinkReport, QueueReport};
pub use live::{LatenessReport, LiveReport, PortDropsReport};
pub use metric::Metric;
pub use node::NodeReport;
pub use probes::ProbesReport;
pub use quantiles::Quantiles;
pub use reference::ReferenceReport;
pub use report::{ReadError, Report, Total};
pub use unit::Unit;
pub use words::{aligned, decimals};
