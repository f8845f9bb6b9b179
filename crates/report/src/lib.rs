//! The report of a run, the same type for simulated and live runs.
//!
//! [`Report`] is the content of `report.json`; reading and writing it gives the same bytes. [`Metric`]
//! selects a value by name. Reports are filled elsewhere: from a simulated network in `bentpipe-sim`, from
//! kernel sockets in `bentpipe-emulate`.

mod application;
mod flow;
mod gateway;
mod headline;
mod link;
mod live;
pub mod metric;
mod number;
mod rate;
mod reference;
mod report;
mod selection;
mod text;
mod unit;
mod words;

pub use application::{DelayReport, Quantiles, RequestsReport, TelnetReport, TransferReport, UdpReport};
pub use flow::{
    FallbackReport, FlowContext, FlowKind, FlowReport, LimitedBy, ProbesReport, TcpReport, rate_bps,
};
pub use gateway::{GatewayFlows, GatewayReport, NodeReport};
pub use link::{Counts, InstrumentReport, LinkReport, QueueReport};
pub use live::{LatenessReport, LiveReport, PortDropsReport};
pub use metric::Metric;
pub use rate::{ChargeReport, FlowRouterReport, RateChangeReport, RateReport};
pub use reference::ReferenceReport;
pub use report::{ReadError, Report, Total};
pub use selection::Selection;
pub use unit::Unit;
pub use words::{aligned, csv, decimals};
