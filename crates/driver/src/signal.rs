//! Rate signalling in real packets: where it is.
//!
//! TIA-1039: in IPv4 structures are the end of the TCP payload of a packet with DSCP 3
//! ([`tia1039::at_end`]). In IPv6 they are options of the hop-by-hop header, which [`Packet::signal`] holds
//! as a whole. Packets whose bytes after the TCP header are not what they seem stay as they are: fragments
//! are never read here, a signature (RFC 2385, RFC 5925) covers what would have to be changed, and the data
//! of a fast-open SYN (RFC 7413) are data. A super-packet has one hop-by-hop header, the same for each of
//! its wire packets; in IPv4 each wire packet has an end of its own, so a super-packet with DSCP 3 is cut
//! before it is read. For a node that asks for it ([`bentpipe_base::Node::reads_all_ends`]), so is every IPv4
//! packet that ends like a structure.
//!
//! SCONE and Quick-Start: options of the TCP and IP headers ([`header_options`]), which stay where they are.
//! A super-packet has one set of options, which each of its wire packets repeats; so it is read and changed
//! whole. (The kernel joins only segments with equal options, and none with options in the IPv4 header.)

use crate::datagram::HEADER as UDP_HEADER;
use crate::parse::{Parsed, foreign};
use bentpipe_advice::{header_options, scone, tia1039};
use bentpipe_base::{Dscp, Flags, IpVersion, OtherOptions, Packet, Signal};
use bentpipe_wire::{AddressPair, Ipv4Header, Ipv6Header, Layout, Network, UDP, hop_by_hop};
use core::ops::Range;

/// Returns the signalling in the hop-by-hop header of an IPv6 packet that could be parsed.
pub fn signal_header(ip: &[u8]) -> Option<Signal> {
    hop_by_hop(ip).filter(|header| tia1039::is_signal_header(header)).and_then(Signal::new)
}

/// Returns the bytes of a payload that are structures if the packet has DSCP 3; `options` are those of its
/// TCP header.
pub fn signal_at_end(flags: Flags, options: &[u8], payload: &[u8]) -> Option<Signal> {
    let start = payload.len().checked_sub(tia1039::at_end(flags, payload))?;
    let signal = payload.get(start..).and_then(Signal::new)?;
    let others = foreign(options, flags.has(Flags::SYN)).ok()?;
    (!is_untouchable(others, flags)).then_some(signal)
}

/// Returns the signalling in the options of a TCP packet; none of one that must stay as it is.
pub fn signal_in_options(ip: &[u8], layout: &Layout, flags: Flags) -> Option<Signal> {
    let options = ip.get(layout.options.clone())?;
    let others = foreign(options, flags.has(Flags::SYN)).ok()?;
    let version = version(layout.network.ends);
    let network = ip.get(network_options(version, ip.get(..layout.network.transport)?))?;
    if is_untouchable(others, flags) { None } else { header_options::read(version, network, options) }
}

/// Writes the options of `packet` into the headers before TCP, `ip`, and the options of TCP, `transport`.
pub(crate) fn write_options(packet: &Packet, ip: &mut [u8], transport: &mut [u8]) {
    let has_any = packet.signal.as_deref().is_some_and(|signal| signal.bytes().is_empty());
    let place = network_options(packet.ip, ip);
    if has_any && let Some(network) = ip.get_mut(place) {
        header_options::write(packet, network, transport);
    }
}

/// Where the options of an IPv4 header are, or the hop-by-hop header, in the headers before TCP.
fn network_options(version: IpVersion, ip: &[u8]) -> Range<usize> {
    match version {
        IpVersion::V4 => size_of::<Ipv4Header>().min(ip.len())..ip.len(),
        IpVersion::V6 => {
            let start = size_of::<Ipv6Header>();
            start..start + hop_by_hop(ip).map_or(0, <[u8]>::len)
        }
    }
}

const fn version(ends: AddressPair) -> IpVersion {
    match ends {
        AddressPair::V4 { .. } => IpVersion::V4,
        AddressPair::V6 { .. } => IpVersion::V6,
    }
}

/// True for a packet whose payload and options must stay as they are.
const fn is_untouchable(others: OtherOptions, flags: Flags) -> bool {
    others.has(OtherOptions::SIGNED) || others.has(OtherOptions::FAST_OPEN) && flags.has(Flags::SYN)
}

/// True for a packet that opens a connection which signals: it can only be followed by who reads structures.
pub(crate) fn opens_signalling(packet: &Packet) -> bool {
    packet.dscp == tia1039::QOS_SIGNAL && packet.tcp.flags.has(Flags::SYN)
}

/// True for IPv4 packets of which each may have a structure at its end, from their first byte on.
pub(crate) fn may_have_end(ip: &[u8]) -> bool {
    let dscp = ip.get(..2).filter(|b| b[0] >> 4 == 4).and_then(|b| Dscp::new(b[1] >> 2));
    dscp == Some(tia1039::QOS_SIGNAL)
}

/// True for an IPv4 super-packet of whose wire packets, with `size` bytes each, one ends like a structure.
pub(crate) fn has_end(ip: &[u8], size: u16) -> bool {
    let is_v4 = ip.first().is_some_and(|first| first >> 4 == 4);
    let Some(layout) = Layout::of(ip).ok().filter(|_| is_v4) else { return false };
    let payload = ip.get(layout.payload).unwrap_or_default();
    payload.chunks(usize::from(size.max(1))).any(|piece| tia1039::at_end(Flags::ACK, piece) > 0)
}

/// True for a UDP super-packet of whose datagrams, with `size` bytes each, one begins with a SCONE packet.
pub(crate) fn has_scone(ip: &[u8], size: u16) -> bool {
    let Ok(network) = Network::of(ip) else { return false };
    let datagrams = ip.get(network.transport..network.end).filter(|_| network.protocol == UDP);
    let payload = datagrams.and_then(|udp| udp.get(UDP_HEADER..)).unwrap_or_default();
    payload.chunks(usize::from(size.max(1))).any(|piece| scone::read(piece).is_some())
}

impl Parsed {
    /// Moves structures from the body to [`Packet::signal`]. `bytes` are those of the unit. A super-packet of
    /// IPv4 keeps its body.
    pub fn take_signal(&mut self, bytes: &[u8]) {
        let ip = bytes.get(self.shape.ip()..).unwrap_or_default();
        let packet = &mut self.packet;
        match self.ends {
            AddressPair::V6 { .. } => {
                if !is_untouchable(packet.other_options, packet.tcp.flags) {
                    packet.signal = signal_header(ip).map(Box::new);
                }
            }
            AddressPair::V4 { .. } if packet.dscp == tia1039::QOS_SIGNAL => self.take_end(bytes),
            AddressPair::V4 { .. } => {}
        }
    }

    /// Copies options of SCONE and Quick-Start to [`Packet::signal`], if there are no structures.
    pub fn take_options(&mut self, bytes: &[u8]) {
        let plain = usize::from(self.packet.ip.header());
        // those of Quick-Start are in longer IP headers, or unknown to TCP
        let may_have = self.shape.transport - self.shape.ip() > plain
            || self.packet.other_options.has(OtherOptions::UNKNOWN);
        if !may_have || self.packet.signal.is_some() {
            return;
        }
        let ip = bytes.get(self.shape.ip()..).unwrap_or_default();
        let Ok(layout) = Layout::of(ip) else { return };
        let Some(signal) = signal_in_options(ip, &layout, self.packet.tcp.flags) else { return };
        // they count once
        let other = &mut self.packet.other_options.len;
        *other = other.saturating_sub(signal.tcp_options().len() as u8);
        self.packet.signal = Some(Box::new(signal));
    }

    /// Moves what looks like a structure at the end of an IPv4 payload to [`Packet::signal`], whatever the
    /// DSCP says.
    pub fn take_end(&mut self, bytes: &[u8]) {
        let packet = &mut self.packet;
        if packet.ip != IpVersion::V4 || packet.segment > 0 || packet.signal.is_some() {
            return;
        }
        let ip = bytes.get(self.shape.ip()..).unwrap_or_default();
        let Ok(layout) = Layout::of(ip) else { return };
        let [options, payload] =
            [layout.options, layout.payload].map(|range| ip.get(range).unwrap_or_default());
        let Some(signal) = signal_at_end(packet.tcp.flags, options, payload) else { return };
        // longer headers than a byte can count leave the structure in the body
        let Some(header_len) = packet.header_len.checked_add(signal.len()) else { return };
        packet.header_len = header_len;
        packet.body.len = packet.body.len.saturating_sub(u32::from(signal.len()));
        packet.signal = Some(Box::new(signal));
    }
}

/// Bytes of signalling in the hop-by-hop header, and at the end of the payload.
pub(crate) fn parts(packet: &Packet) -> (&[u8], &[u8]) {
    let bytes = packet.signal.as_deref().map_or(&[][..], Signal::bytes);
    match packet.ip {
        IpVersion::V4 => (&[], bytes),
        IpVersion::V6 => (bytes, &[]),
    }
}
