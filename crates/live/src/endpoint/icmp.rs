//! "Packet too big": a router cannot forward what we sent (RFC 1191, RFC 8201).
//!
//! The engine keeps the size of segments that it agreed on, so the path's MTU is not followed; but a transfer that such a router stops ends, and says why.
//! Whoever can send ICMP could end connections so (RFC 5927). So a message counts only if it quotes a segment of ours that is in flight (its section 4.1),
//! and it is acted on only if nothing is acknowledged and a retransmission times out after it (as in its section 7.2).

use super::socket::Pair;
use bentpipe_base::Seq;
use bentpipe_wire::{Ends, Network};
use core::net::{Ipv4Addr, Ipv6Addr};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const TCP: u8 = 6;
/// What a router means that names no size, as those before RFC 1191 did: what every host takes (RFC 791).
const UNNAMED: u32 = 576;

/// What a router says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooBig {
    /// Of the segment that it quotes.
    pub(super) pair: Pair,
    /// Where that begins.
    pub(super) seq: Seq,
    /// The longest packet that it takes.
    pub(super) mtu: u32,
}

impl TooBig {
    /// Reads a packet that is no TCP; `None` if it says something else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let network = Network::of(bytes).ok()?;
        let message = bytes.get(network.transport..network.end)?;
        let mtu = match (network.protocol, message.first_chunk::<8>()?) {
            (ICMP, [3, 4, _, _, _, _, mtu @ ..]) => u32::from(u16::from_be_bytes(*mtu)),
            (ICMPV6, [2, 0, _, _, mtu @ ..]) => u32::from_be_bytes(*mtu),
            _ => return None,
        };
        let (pair, seq) = quoted(message.get(8..)?)?;
        Some(Self { pair, seq, mtu: if mtu == 0 { UNNAMED } else { mtu } })
    }

    /// Longest segment that fits.
    pub(super) const fn segment(&self) -> u32 {
        self.mtu.saturating_sub(if self.pair.local().is_ipv4() { 40 } else { 60 })
    }
}

/// The connection and the place of a segment of ours, of which the beginning is there.
fn quoted(packet: &[u8]) -> Option<(Pair, Seq)> {
    let (ends, protocol, tcp) = match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<20>()?;
            let at = |i: usize| Ipv4Addr::new(header[i], header[i + 1], header[i + 2], header[i + 3]);
            let ends = Ends::V4 { src: at(12), dst: at(16) };
            (ends, header[9], packet.get(usize::from(header[0] & 15) * 4..)?)
        }
        6 => {
            let at = |i: usize| Some(Ipv6Addr::from(*packet.get(i..)?.first_chunk::<16>()?));
            (Ends::V6 { src: at(8)?, dst: at(24)? }, *packet.get(6)?, packet.get(40..)?)
        }
        _ => return None,
    };
    let [a, b, c, d, seq @ ..] = tcp.first_chunk::<8>()?;
    let ports = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
    (protocol == TCP).then(|| (Pair::of_ours(ends, ports), Seq(u32::from_be_bytes(*seq))))
}
