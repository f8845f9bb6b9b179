//! Nodes of a network: hosts with TCP and applications, and routers with static routes.

pub mod app;
pub mod host;
pub mod router;

pub use app::{Reader, Writer};
pub use host::{Call, Endpoint, Host, Listener};
pub use router::Router;
