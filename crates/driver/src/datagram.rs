//! UDP datagrams, for nodes that follow them ([`Node::reads_signalling`](bentpipe_base::Node)).
//!
//! A datagram is an opaque packet with the numbers of its addresses. It leaves as it came, with three
//! exceptions: its DSCP is the packet's; structures that are alone in a datagram (`datagram_signal.rs`); and
//! if it begins with a SCONE packet (draft-ietf-scone-protocol), the first bytes of that are in
//! [`Packet::signal`], and a signal that a node lowered is written back at its place.
//!   checksum' = ~(~checksum - old + new) (RFC 1624); 0 means that there is none and stays (RFC 768)
//! Here these bytes are part of the payload, so they are not counted as header. A super-packet of
//! which one datagram begins so is cut before it is read.

use crate::emit::Emitted;
use crate::frame::{Link, Unit};
use crate::parse::HEADER_SPACE;
use crate::store::StoredUnit;
use bentpipe_advice::scone;
use bentpipe_base::{Addr, Dscp, IpVersion, Packet, Signal};
use bentpipe_wire::offload::{VnetHeader, read_word, write_word};
use bentpipe_wire::{AddressPair, Network, Sum, UDP};
use core::ops::Range;

/// Bytes of a UDP header, and the offsets of two of its fields.
pub(crate) const HEADER: usize = 8;
pub(crate) const LENGTH: usize = 4;
pub(crate) const CHECKSUM: usize = 6;
const V4_CHECKSUM: usize = 10;

/// A whole UDP datagram, or a super-packet of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Its addresses.
    pub(crate) ends: AddressPair,
    /// What is before its IP header.
    pub(crate) link: Link,
    /// Offset of the payload in the unit.
    pub(crate) payload: usize,
    /// End of the payload of the first datagram.
    end: usize,
}

impl Datagram {
    /// Reads the headers of a unit; `None` if it is no UDP datagram, or a fragment of one.
    pub(crate) fn of(bytes: &[u8], vnet: &VnetHeader, unit: Unit) -> Option<Self> {
        let link = Link::of(bytes, unit)?;
        let ip = bytes.get(link.len..)?;
        let network = Network::of(ip).ok()?;
        if network.protocol != UDP || network.fragment.is_some_and(|fragment| fragment.is_partial()) {
            return None;
        }
        let header = ip.get(network.transport..network.end)?.get(..HEADER)?;
        let len = usize::from(read_word(header, LENGTH));
        let payload = network.transport + HEADER;
        let mut end = (network.transport + len).min(network.end);
        if vnet.gso_type == VnetHeader::GSO_UDP_L4 {
            // the length in the header may be that of all datagrams
            end = end.max(network.end).min(payload + usize::from(vnet.gso_size));
        }
        (len >= HEADER).then_some(Self {
            ends: network.ends,
            link,
            payload: link.len + payload,
            end: link.len + end,
        })
    }

    /// True if it carries nothing: for a node it has no data, whatever a frame is padded with.
    pub(crate) const fn is_empty(&self) -> bool {
        self.payload == self.end
    }

    pub(crate) const fn ip(&self) -> IpVersion {
        match self.ends {
            AddressPair::V4 { .. } => IpVersion::V4,
            AddressPair::V6 { .. } => IpVersion::V6,
        }
    }

    /// The first bytes of the SCONE packet with which the payload begins.
    pub(crate) fn scone_start(&self, bytes: &[u8]) -> Option<Signal> {
        let payload = bytes.get(self.payload..self.end)?;
        scone::read(payload)?;
        Signal::new(payload.get(..scone::START)?)
    }
}

/// A datagram as it was received: what it takes to write it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramShape {
    pub(crate) link: Link,
    /// Offset of the payload in the unit.
    pub(crate) payload: usize,
    /// It begins with a SCONE packet.
    pub(crate) has_scone: bool,
    /// Its source, in numbers of the network.
    pub(crate) from: (Addr, u16),
    pub(crate) dscp: Dscp,
    /// The structures that it consists of, and whether its checksum is sealed.
    pub(crate) structures: Option<(Signal, bool)>,
}

impl Datagram {
    /// Moves what the datagram signals to `packet`, which has its labels.
    pub(crate) fn take_signal(&self, bytes: &[u8], vnet: &VnetHeader, packet: &mut Packet) -> DatagramShape {
        let structures = self.structures(bytes, vnet, packet.dscp);
        let scone = if structures.is_some() { None } else { self.scone_start(bytes) };
        if let Some((signal, _)) = &structures {
            packet.signal = Some(Box::new(*signal));
        }
        if structures.is_some() || self.is_empty() {
            (packet.body.len, packet.segment) = (0, 0);
            packet.seal();
        }
        let has_scone = scone.is_some();
        packet.signal = packet.signal.take().or(scone.map(Box::new));
        DatagramShape {
            link: self.link,
            payload: self.payload,
            has_scone,
            from: (packet.src, packet.sport),
            dscp: packet.dscp,
            structures,
        }
    }
}

impl DatagramShape {
    /// Writes what changed in the headers into the unit that leaves as `emitted` says: a lowered signal of
    /// SCONE, and the DSCP.
    pub(crate) fn write_back(
        &self,
        held: &StoredUnit<'_>,
        packet: &Packet,
        (mut emitted, out): (Emitted, &mut [u8; HEADER_SPACE]),
    ) -> Emitted {
        let at = self.payload;
        if self.has_scone
            && let Some(rest) = lowered(held, packet, at, (&emitted, out))
        {
            emitted.header_len = at + scone::START;
            emitted.payload = rest;
        }
        if packet.dscp != self.dscp {
            self.write_dscp(held, packet.dscp, (&mut emitted, out));
        }
        emitted
    }

    fn write_dscp(
        &self,
        held: &StoredUnit<'_>,
        dscp: Dscp,
        (emitted, out): (&mut Emitted, &mut [u8; HEADER_SPACE]),
    ) {
        let first = held.bytes.get(emitted.payload.start + self.link.len).filter(|_| emitted.header_len == 0);
        if let Some(first) = first {
            // with the addresses, which ports read in the first part of what they send
            let version = if first >> 4 == 6 { IpVersion::V6 } else { IpVersion::V4 };
            let end = self.link.len + usize::from(version.header());
            let from = emitted.payload.start..emitted.payload.start + end;
            let (Some(from), Some(to)) = (held.bytes.get(from), out.get_mut(..end)) else { return };
            to.copy_from_slice(from);
            emitted.header_len = end;
            emitted.payload.start += end;
        }
        let Some(ip) = out.get_mut(self.link.len..emitted.header_len) else { return };
        let old = read_word(ip, 0);
        let is_v4 = old >> 12 == 4;
        let new = if is_v4 {
            old & 0xff03 | u16::from(dscp.get()) << 2
        } else {
            old & 0xf03f | u16::from(dscp.get()) << 6
        };
        write_word(ip, 0, new);
        if is_v4 {
            let sum = Sum::ZERO.word(!read_word(ip, V4_CHECKSUM));
            write_word(ip, V4_CHECKSUM, sum.replace(Sum::ZERO.word(old), Sum::ZERO.word(new)).finish());
        }
    }
}

/// Returns what of the stored unit follows the written bytes; `None` if nothing is to be written.
fn lowered(
    held: &StoredUnit<'_>,
    packet: &Packet,
    at: usize,
    (emitted, out): (&Emitted, &mut [u8; HEADER_SPACE]),
) -> Option<Range<usize>> {
    let signal = packet.signal.as_deref()?;
    let advice = scone::read_start(signal.bytes())?;
    let end = at + scone::START;
    // a copy, since most packets leave as they came
    let mut changed = *out;
    let missing = end.saturating_sub(emitted.header_len);
    let from = emitted.payload.start..emitted.payload.start + missing;
    let rest = from.end..emitted.payload.end;
    if rest.is_empty() {
        return None;
    }
    changed.get_mut(emitted.header_len..end)?.copy_from_slice(held.bytes.get(from)?);
    let rewrite = scone::lower_start(changed.get_mut(at..end)?, advice)?;
    let checksum = at - HEADER + CHECKSUM;
    let stands = read_word(&changed, checksum);
    if stands != 0 && !emitted.vnet.is_partial() {
        let (old, new) = (Sum::of(&rewrite.old), Sum::of(&rewrite.new));
        let sum = Sum::ZERO.word(!stands).replace(old, new).finish();
        write_word(&mut changed, checksum, if sum == 0 { 0xffff } else { sum });
    }
    *out = changed;
    Some(rest)
}

#[cfg(test)]
#[path = "datagram_tests.rs"]
pub(crate) mod tests;
