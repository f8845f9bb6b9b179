//! UDP datagrams, for nodes that follow them ([`Node::reads_signalling`](bentpipe_base::Node)).
//!
//! A datagram is an opaque packet with the numbers of its addresses. It leaves as it came, with one
//! exception: if it begins with a SCONE packet (draft-ietf-scone-protocol), the first bytes of that are in
//! [`Packet::signal`], and a signal that a node lowered is written back at its place.
//!   checksum' = ~(~checksum - old + new) (RFC 1624); 0 means that there is none and stays (RFC 768)
//! Here these bytes are part of the payload, so they are not counted as header. A super-packet of
//! which one datagram begins so is cut before it is read.

use crate::emit::Emitted;
use crate::frame::{Link, Unit};
use crate::parse::HEADER_SPACE;
use crate::store::StoredUnit;
use bentpipe_advice::scone;
use bentpipe_base::{IpVersion, Packet, Signal};
use bentpipe_wire::offload::{VnetHeader, read_word, write_word};
use bentpipe_wire::{AddressPair, Network, Sum, UDP};
use core::ops::Range;

/// Bytes of a UDP header, and the offsets of two of its fields.
pub(crate) const HEADER: usize = 8;
const LENGTH: usize = 4;
const CHECKSUM: usize = 6;

/// A whole UDP datagram, or a super-packet of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Its addresses.
    pub(crate) ends: AddressPair,
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
            payload: link.len + payload,
            end: link.len + end,
        })
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

/// Writes a lowered signal of `packet` into the unit that leaves as `emitted` says. `at`: where the payload
/// begins in the stored unit.
pub(crate) fn write_back(
    held: &StoredUnit<'_>,
    packet: &Packet,
    at: usize,
    (mut emitted, out): (Emitted, &mut [u8; HEADER_SPACE]),
) -> Emitted {
    if let Some(rest) = lowered(held, packet, at, (&emitted, out)) {
        emitted.header_len = at + scone::START;
        emitted.payload = rest;
    }
    emitted
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
mod tests;
