//! The two sides of a gateway.

use bentpipe_base::Port;

/// The side of the sending hosts.
pub const LAN: Port = Port(0);
/// The side of the satellite hop.
pub const SATELLITE: Port = Port(1);
