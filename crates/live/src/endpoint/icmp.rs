//! ICMP and ICMPv6 messages about packets that we sent.
//!
//! Reads "packet too big" (RFC 1191, RFC 8201), "destination unreachable" and "time exceeded" (RFC 792, RFC
//! 4443). The engine decides whether to believe a message (the quoted segment must be in flight, RFC 5927)
//! and what to do. Hard errors, for which retrying cannot help, are those of RFC 9293, section 3.9.2.2, and
//! RFC 5461, section 2: protocol unreachable, port unreachable; in IPv6 also administratively prohibited.

use super::socket::FourTuple;
use bentpipe_base::Seq;
use bentpipe_tcp::Icmp;
use bentpipe_wire::offload::addresses;
use bentpipe_wire::{Network, TCP};
use core::net::SocketAddr;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// MTU if a router gives none, as before RFC 1191: every host accepts this size (RFC 791).
const UNNAMED: u32 = 576;
/// Smallest MTU of each family: smaller values are not believed (RFC 1191, section 3; RFC 8201, section 4).
const LEAST: [u32; 2] = [68, 1280];
/// Bytes of headers before the payload, without options.
const HEADERS: [u32; 2] = [40, 60];

/// An ICMP message and the segment it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IcmpError {
    /// Connection of the quoted segment.
    pub(super) pair: FourTuple,
    /// Sequence number of the quoted segment.
    pub(super) seq: Seq,
    pub(super) what: Icmp,
}

impl IcmpError {
    /// Parses a packet that is not TCP; returns `None` if it holds no message of interest.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let network = Network::of(bytes).ok()?;
        let message = bytes.get(network.transport..network.end)?;
        let kind = message.first_chunk::<8>()?;
        let (pair, seq) = quoted(message.get(8..)?)?;
        let v6 = !pair.local().is_ipv4();
        let what = match (network.protocol, kind) {
            (ICMP, [3, 4, _, _, _, _, mtu @ ..]) if !v6 => too_big(u32::from(u16::from_be_bytes(*mtu)), v6)?,
            (ICMPV6, [2, 0, _, _, mtu @ ..]) if v6 => too_big(u32::from_be_bytes(*mtu), v6)?,
            (ICMP, [3, code, ..]) if !v6 => Icmp::Unreachable { hard: matches!(code, 2 | 3) },
            (ICMPV6, [1, code, ..]) if v6 => Icmp::Unreachable { hard: matches!(code, 1 | 4) },
            (ICMP, [11, ..]) if !v6 => Icmp::Unreachable { hard: false },
            (ICMPV6, [3, ..]) if v6 => Icmp::Unreachable { hard: false },
            _ => return None,
        };
        Some(Self { pair, seq, what })
    }
}

/// Returns the message with the longest segment that fits into a packet of `mtu` bytes.
fn too_big(mtu: u32, v6: bool) -> Option<Icmp> {
    let mtu = if mtu == 0 { UNNAMED } else { mtu };
    let segment = u16::try_from(mtu.saturating_sub(HEADERS[usize::from(v6)])).unwrap_or(u16::MAX);
    (mtu >= LEAST[usize::from(v6)]).then_some(Icmp::TooBig { segment })
}

/// Returns the connection and sequence number of a quoted segment of ours, which may be truncated.
fn quoted(packet: &[u8]) -> Option<(FourTuple, Seq)> {
    let (src, dst) = addresses(packet).ok()?;
    let (protocol, tcp) =
        if src.is_ipv4() { (packet[9], usize::from(packet[0] & 15) * 4) } else { (packet[6], 40) };
    let [a, b, c, d, seq @ ..] = packet.get(tcp..)?.first_chunk::<8>()?;
    let peer = SocketAddr::new(dst, u16::from_be_bytes([*c, *d]));
    let pair = FourTuple::between((src, u16::from_be_bytes([*a, *b])), peer)?;
    (protocol == TCP).then(|| (pair, Seq(u32::from_be_bytes(*seq))))
}
