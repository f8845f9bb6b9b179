//! Structures of TIA-1039 that are alone in a datagram.
//!
//! Source: TIA-1039 (2006), L. G. Roberts' description: the first packet of a flow of datagrams is the
//! structure alone. It does not say what becomes of it at a host that knows of no structures: there the
//! program behind the port would get 16 bytes that nobody has sent to it. Here:
//!   IPv4: the payload is one or two structures, DSCP 3. IPv6: a hop-by-hop header with structures, no
//!   payload, DSCP 3.
//!   What an agent or a router makes is *sealed*: its UDP checksum is wrong by a constant,
//!     sum over pseudo-header, UDP header and payload = ~SEAL instead of ~0
//!   so a host that knows of no structures discards it (RFC 1122, section 4.1.3.4; RFC 8200, section 8.1),
//!   and a damaged structure is still recognised: its sum is neither.
//! A structure with a correct checksum, as a program may send it, is read too, and leaves with one; so does
//! the answer to it. IPv4 options or further extension headers: left alone.
//! A node has no bytes of its own: a datagram that it makes is a copy of one of the same flow, or of the one
//! that it answers, without the data. It has the hop limit of that, and as an answer 64; in IPv4 it is an
//! atomic datagram (RFC 6864), so its identification means nothing.

use crate::datagram::{CHECKSUM, Datagram, DatagramShape, HEADER, LENGTH};
use crate::emit::Emitted;
use crate::parse::HEADER_SPACE;
use crate::signal::signal_header;
use crate::store::StoredUnit;
use bentpipe_advice::tia1039::{self, QOS_SIGNAL};
use bentpipe_base::{Dscp, Flags, IpVersion, Packet, Signal};
use bentpipe_wire::offload::{VnetHeader, read_word, write_word};
use bentpipe_wire::{AddressPair, HOP_BY_HOP, Network, Sum, UDP, pseudo_header};

/// By how much the checksum of a sealed datagram is wrong.
const SEAL: u16 = 0x1039;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
/// Hop limit of an answer.
const HOPS: u8 = 64;
/// "Don't fragment".
const ATOMIC: u16 = 0x4000;
const ETHERNET_ADDRESS: usize = 6;

impl Datagram {
    /// The structures that the datagram consists of, and whether it is sealed.
    pub(crate) fn structures(&self, bytes: &[u8], vnet: &VnetHeader, dscp: Dscp) -> Option<(Signal, bool)> {
        let ip = bytes.get(self.link.len..).filter(|_| dscp == QOS_SIGNAL)?;
        let network = Network::of(ip).ok()?;
        let udp = ip.get(network.transport..network.end)?;
        let payload = udp.get(HEADER..).filter(|_| usize::from(read_word(udp, LENGTH)) == udp.len())?;
        let signal = match self.ip() {
            IpVersion::V4 => {
                // as in a SYN, they are all of it
                let is_one = network.transport == V4_HEADER && tia1039::at_end(Flags::SYN, payload) > 0;
                Signal::new(payload).filter(|_| is_one)?
            }
            IpVersion::V6 => {
                let signal = signal_header(ip).filter(|_| payload.is_empty())?;
                (network.transport == V6_HEADER + signal.bytes().len()).then_some(signal)?
            }
        };
        let sum = pseudo_header(&self.ends, UDP, udp.len()).bytes(udp).fold();
        let has_none = read_word(udp, CHECKSUM) == 0 && self.ip() == IpVersion::V4;
        match sum {
            _ if vnet.is_partial() || has_none => Some((signal, false)),
            0xffff => Some((signal, false)),
            sum if sum == !SEAL => Some((signal, true)),
            _ => None,
        }
    }
}

impl DatagramShape {
    /// Writes a datagram that consists of structures; `None` for another, and for one that is as it came.
    pub(crate) fn write_signal(
        &self,
        held: &StoredUnit<'_>,
        packet: &Packet,
        out: &mut [u8; HEADER_SPACE],
    ) -> Option<Emitted> {
        let signal = packet.signal.as_deref().filter(|_| packet.body.len == 0)?;
        let is_answer = (packet.src, packet.sport) != self.from;
        let came = self.structures.as_ref();
        if !is_answer && packet.dscp == self.dscp && came.is_some_and(|(came, _)| came == signal) {
            return None;
        }
        let (link, ip) = held.bytes.split_at_checked(self.link.len)?;
        out.get_mut(..link.len())?.copy_from_slice(link);
        if is_answer && let Some(ends) = out.get_mut(..2 * ETHERNET_ADDRESS).filter(|_| !link.is_empty()) {
            ends.rotate_left(ETHERNET_ADDRESS);
        }
        let (_, rest) = out.split_at_mut(link.len());
        let network = Network::of(ip).ok()?;
        let made = Made { packet, signal, is_answer, was_alone: came.is_some(), hops: network.hops };
        let transport = match network.ends {
            AddressPair::V4 { .. } => made.v4(ip, rest)?,
            AddressPair::V6 { .. } => made.v6(ip, rest)?,
        };
        let is_sealed = came.is_none_or(|(_, is_sealed)| *is_sealed);
        let ports = ip.get(network.transport..)?.first_chunk::<4>()?;
        let end = made.udp(*ports, is_sealed, &network.ends, rest.get_mut(transport..)?)?;
        self.link.fit(out.get_mut(..link.len())?, u16::try_from(transport + end).ok()?);
        Some(Emitted {
            vnet: VnetHeader::default(),
            header_len: self.link.len + transport + end,
            payload: 0..0,
            tail: None,
            is_short: false,
        })
    }
}

/// A datagram of structures that is written.
struct Made<'a> {
    packet: &'a Packet,
    signal: &'a Signal,
    /// It goes back to where the one came from whose bytes it uses.
    is_answer: bool,
    /// That one consisted of structures too.
    was_alone: bool,
    hops: u8,
}

impl Made<'_> {
    fn hops(&self) -> u8 {
        if self.is_answer { HOPS } else { self.hops }
    }

    fn class(&self) -> u8 {
        self.packet.dscp.get() << 2 | self.packet.ecn as u8
    }

    /// Writes the IPv4 header; returns its length.
    fn v4(&self, ip: &[u8], out: &mut [u8]) -> Option<usize> {
        let header = out.get_mut(..V4_HEADER)?;
        header.copy_from_slice(ip.get(..V4_HEADER)?);
        write_word(header, 0, 0x4500 | u16::from(self.class()));
        write_word(header, 2, (V4_HEADER + HEADER + self.signal.bytes().len()) as u16);
        if self.is_answer || !self.was_alone {
            write_word(header, 6, ATOMIC);
        }
        header[8] = self.hops();
        if self.is_answer {
            header.get_mut(12..20)?.rotate_left(4);
        }
        write_word(header, 10, 0);
        let sum = Sum::of(header).finish();
        write_word(header, 10, sum);
        Some(V4_HEADER)
    }

    /// Writes the IPv6 header and the hop-by-hop header; returns their length.
    fn v6(&self, ip: &[u8], out: &mut [u8]) -> Option<usize> {
        let signal = self.signal.bytes();
        let (header, options) = out.get_mut(..V6_HEADER + signal.len())?.split_at_mut(V6_HEADER);
        header.copy_from_slice(ip.get(..V6_HEADER)?);
        let label = read_word(header, 0) & 0x000f;
        write_word(header, 0, 0x6000 | u16::from(self.class()) << 4 | if self.is_answer { 0 } else { label });
        if self.is_answer {
            // the label is the sender's
            write_word(header, 2, 0);
            header.get_mut(8..40)?.rotate_left(16);
        }
        write_word(header, 4, (signal.len() + HEADER) as u16);
        (header[6], header[7]) = (HOP_BY_HOP, self.hops());
        options.copy_from_slice(signal);
        *options.first_mut()? = UDP;
        Some(V6_HEADER + signal.len())
    }

    /// Writes the UDP header, and in IPv4 the structures; returns their length.
    fn udp(&self, ports: [u8; 4], is_sealed: bool, ends: &AddressPair, out: &mut [u8]) -> Option<usize> {
        let payload = match self.packet.ip {
            IpVersion::V4 => self.signal.bytes(),
            IpVersion::V6 => &[],
        };
        let udp = out.get_mut(..HEADER + payload.len())?;
        udp.get_mut(..4)?.copy_from_slice(&ports);
        if self.is_answer {
            udp.get_mut(..4)?.rotate_left(2);
        }
        write_word(udp, LENGTH, udp.len() as u16);
        write_word(udp, CHECKSUM, 0);
        udp.get_mut(HEADER..)?.copy_from_slice(payload);
        let sum = pseudo_header(ends, UDP, udp.len()).bytes(udp);
        let sum = if is_sealed { sum.word(SEAL) } else { sum }.finish();
        write_word(udp, CHECKSUM, if sum == 0 { 0xffff } else { sum });
        Some(udp.len())
    }
}

#[cfg(test)]
#[path = "datagram_signal_tests.rs"]
mod tests;
