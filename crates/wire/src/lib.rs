//! Parses and writes real packet headers, and updates checksums without reading the payload.
//!
//! Three ways to look at the same packet, from cheap to convenient:
//! * [`Ipv4`], [`Ipv6`], [`Tcp`]: checked views over borrowed bytes, for reading or for writing;
//! * [`Layout`]: the offsets of the parts of a TCP packet;
//! * [`Segment`]: the header fields as values, for the engine ([`parse`], [`emit`]).
//!
//! ```
//! use bentpipe_wire::{AddressPair, Segment, emit, parse};
//! use bentpipe_base::{Dscp, Ecn, Flags, TcpHeader};
//!
//! let ends = AddressPair::V4 { src: [192, 0, 2, 1].into(), dst: [198, 51, 100, 2].into() };
//! let tcp = TcpHeader { flags: Flags::SYN, window: 64240, mss: Some(1460), ..TcpHeader::default() };
//! let syn = Segment { ends, sport: 40000, dport: 443, hops: 64, dscp: Dscp::DEFAULT, ecn: Ecn::NotEct, tcp,
//!   payload: b"" };
//! let mut packet = Vec::new();
//! emit(&syn, &mut packet)?;
//! assert_eq!(parse(&packet)?.tcp.mss, Some(1460));
//! # Ok::<(), bentpipe_wire::WireError>(())
//! ```
//!
//! No function here panics on any input. Bytes start at the IP header; the driver handles link-layer framing.

mod added;
mod checksum;
mod error;
mod ipv4;
mod ipv6;
mod layout;
pub mod offload;
mod options;
mod segment;
mod tcp;
mod udp;

pub use added::{add_ipv4_options, add_tcp_options};
pub use checksum::{Sum, pseudo_header};
pub use error::{Fault, WireError};
pub use ipv4::{Ipv4, Ipv4Header};
pub use ipv6::{ExtensionHeaders, HOP_BY_HOP, Ipv6, Ipv6Header, add_hop_by_hop, hop_by_hop};
pub use layout::{AddressPair, Fragment, Layout, Network};
pub use options::{OPTION_SPACE, OptionKind, Options, RawOption};
pub use segment::{Segment, ecn, emit, parse, read_tcp};
pub use tcp::{Tcp, TcpFixed};
pub use udp::UdpHeader;

/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
