//! The kernel's side: packet ports, clock and waiting, namespaces, netlink, TCP's own figures. The one crate with unsafe code.
//!
//! Everything here is a thin, typed door; what is done with it stands in `live` and `emulate`. Linux only.

pub mod clock;
pub mod port;

pub use clock::Clock;
pub use port::{PacketPort, PortDrops, Received};
