//! Nodes of a network: hosts with TCP, UDP and applications, and routers with static routes.

pub mod app;
mod ends;
pub mod host;
pub mod middlebox;
mod moved;
mod peers;
pub mod router;
pub mod udp;

pub use app::{
    ByteStream, Lasting, Paced, Reader, ReaderState, RequestClient, RequestServer, TelnetClient, Writer,
};
pub use ends::Endpoint;
pub use host::{ConnectRequest, Host, Listener};
pub use middlebox::{DscpRule, Middlebox, MiddleboxConfig, Unwanted};
pub use peers::Peers;
pub use router::Router;
pub use udp::{DatagramRate, DatagramSink, DatagramSource, DatagramStream, Departures, Pattern, WhenRefused};
