//! Nodes of a network: hosts with TCP, UDP and applications, and routers with static routes.

pub mod app;
mod ends;
pub mod host;
pub mod router;
pub mod udp;

pub use app::{Answerer, Asker, Duplex, Paced, Reader, Typist, Writer};
pub use ends::Endpoint;
pub use host::{Call, Host, Listener};
pub use router::Router;
pub use udp::{Departures, Pattern, Sink, Source, Stream};
