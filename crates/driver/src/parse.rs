//! Parses bytes to the [`Packet`] that the gateway's node works on.
//!
//! A packet becomes `Proto::Tcp` only if all of it can be parsed and its checksums are correct: the gateway
//! may send it again, and must not repeat damaged data. All others get an [`UnreadReason`]: they pass byte
//! for byte, and the receiver handles them.

use crate::frame::{Link, Unit};
use bentpipe_base::{Body, Dscp, Flags, IpVersion, OtherOptions, Packet, ProbeOption, Proto, report_enum};
use bentpipe_wire::offload::{TCP_CHECKSUM, VnetHeader};
use bentpipe_wire::{AddressPair, Fault, Ipv4, Layout, OptionKind, Options, WireError, ecn, read_tcp};

/// Space for a rewritten header: link layer (at most 34 bytes), IP and TCP (255), 40 for more options, and 32
/// for signalling.
pub const HEADER_SPACE: usize = 368;
/// TCP options by their numbers: MD5 signatures (RFC 2385), TCP-AO (RFC 5925), MPTCP (RFC 8684), fast open
/// (RFC 7413, and its experimental form).
const MD5: u8 = 19;
const AO: u8 = 29;
const MPTCP: u8 = 30;
const FAST_OPEN: u8 = 34;
const EXPERIMENTAL: [u8; 2] = [253, 254];
const FAST_OPEN_MAGIC: [u8; 2] = [0xf9, 0x89];

report_enum! {
    /// Why a packet is not handled by the gateway.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UnreadReason {
        /// Not IP, or behind an unknown header.
        NotIp = "not_ip",
        /// Another transport protocol than TCP.
        Protocol = "not_tcp",
        /// An IP fragment.
        Fragment = "fragment",
        /// A source route (RFC 791, RFC 8200), or headers too long to rewrite.
        Header = "header",
        /// An inconsistent header, or options that cannot be parsed.
        Malformed = "malformed",
        /// A wrong checksum.
        Checksum = "checksum",
        /// The virtio header does not fit the packet.
        Offload = "offload",
        /// It opens a connection with rate signalling, and no node here reads that.
        Signalling = "signalling",
    }
}

/// Offsets of the parts of a TCP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOffsets {
    pub(crate) link: Link,
    /// Offset of the TCP header in the unit.
    pub(crate) transport: usize,
    /// Offset of the payload in the unit.
    pub(crate) payload: usize,
}

impl TcpOffsets {
    /// Offset of the IP header in the unit.
    pub const fn ip(&self) -> usize {
        self.link.len
    }
}

/// A parsed TCP packet, without its address numbers and slot.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The packet; `src`, `dst` and the slot in `body.off` are 0.
    pub packet: Packet,
    /// Its addresses.
    pub ends: AddressPair,
    /// Offsets of its parts.
    pub shape: TcpOffsets,
}

/// Parses a unit of a port.
///
/// # Errors
/// When the gateway does not handle it.
pub fn parse(bytes: &[u8], vnet: &VnetHeader, unit: Unit) -> Result<Parsed, UnreadReason> {
    let link = Link::of(bytes, unit).ok_or(UnreadReason::NotIp)?;
    let ip = bytes.get(link.len..).ok_or(UnreadReason::NotIp)?;
    let layout = Layout::of(ip).map_err(|e| unread_reason(&e))?;
    let network = &layout.network;
    let shape = TcpOffsets {
        link,
        transport: link.len + network.transport,
        payload: link.len + layout.payload.start,
    };
    let header_len = u8::try_from(layout.payload.start).map_err(|_| UnreadReason::Header)?;
    if !has_plain_route(ip, &layout) {
        return Err(UnreadReason::Header);
    }
    let segment = segment(vnet, &layout, link)?;
    checksums(ip, vnet, &layout, &shape, segment)?;
    let (sport, dport, mut tcp) = read_tcp(ip, &layout).map_err(|e| unread_reason(&e))?;
    tcp.probe = ProbeOption::None; // kept as an unknown option
    let options = ip.get(layout.options.clone()).unwrap_or_default();
    let foreign = foreign(options, tcp.flags.has(Flags::SYN))?;
    let packet = Packet {
        sport,
        dport,
        proto: Proto::Tcp,
        ip: match network.ends {
            AddressPair::V4 { .. } => IpVersion::V4,
            AddressPair::V6 { .. } => IpVersion::V6,
        },
        header_len,
        hops: network.hops,
        dscp: Dscp::new(network.traffic_class >> 2).unwrap_or_default(),
        ecn: ecn(network.traffic_class),
        segment,
        other_options: foreign,
        tcp,
        body: Body { off: 0, len: layout.payload.len() as u32 },
        ..Packet::default()
    };
    Ok(Parsed { packet, ends: network.ends, shape })
}

const fn unread_reason(error: &WireError) -> UnreadReason {
    match error.fault {
        Fault::Protocol(_) => UnreadReason::Protocol,
        Fault::Fragment => UnreadReason::Fragment,
        Fault::Version(_) => UnreadReason::NotIp,
        _ => UnreadReason::Malformed,
    }
}

/// True unless the packet has a source route, or a fragment header although it is whole (RFC 6946).
fn has_plain_route(ip: &[u8], layout: &Layout) -> bool {
    const SOURCE_ROUTES: [u8; 2] = [131, 137];
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    let transport = layout.network.transport;
    match layout.network.ends {
        AddressPair::V4 { .. } if transport == 20 => true,
        // IPv4 options have the format of TCP options
        AddressPair::V4 { .. } => Options::new(ip.get(20..transport).unwrap_or_default())
            .all(|option| option.is_ok_and(|o| !SOURCE_ROUTES.contains(&o.kind().0))),
        AddressPair::V6 { .. } => {
            let (mut next, mut at) = (ip.get(6).copied(), 40);
            while at < transport {
                let Some([behind, len]) = ip.get(at..).and_then(|h| h.first_chunk().copied()) else {
                    return false;
                };
                if matches!(next, Some(ROUTING | FRAGMENT)) {
                    return false;
                }
                (next, at) = (Some(behind), at + 8 + usize::from(len) * 8);
            }
            true
        }
    }
}

/// Segment size of a super-packet; 0 if it is a single packet.
fn segment(vnet: &VnetHeader, layout: &Layout, link: Link) -> Result<u16, UnreadReason> {
    let is_v4 = matches!(layout.network.ends, AddressPair::V4 { .. });
    match (vnet.gso_type & !VnetHeader::GSO_ECN, is_v4) {
        (VnetHeader::GSO_NONE, _) => Ok(0),
        // the kernel sends no super-packets in a PPPoE session
        (VnetHeader::GSO_TCPV4, true) | (VnetHeader::GSO_TCPV6, false)
            if vnet.gso_size > 0 && !link.pppoe =>
        {
            let is_long = layout.payload.len() > usize::from(vnet.gso_size);
            Ok(if is_long { vnet.gso_size } else { 0 })
        }
        _ => Err(UnreadReason::Offload),
    }
}

/// Verifies the checksums, except one that the kernel or network card has verified or has still to complete.
fn checksums(
    ip: &[u8],
    vnet: &VnetHeader,
    layout: &Layout,
    shape: &TcpOffsets,
    segment: u16,
) -> Result<(), UnreadReason> {
    if matches!(layout.network.ends, AddressPair::V4 { .. })
        && !Ipv4::new(ip).is_ok_and(|header| header.checksum_holds())
    {
        return Err(UnreadReason::Checksum);
    }
    if vnet.is_partial() {
        let fits = (usize::from(vnet.csum_start), vnet.csum_offset) == (shape.transport, TCP_CHECKSUM);
        return if fits { Ok(()) } else { Err(UnreadReason::Offload) };
    }
    if vnet.flags & VnetHeader::DATA_VALID != 0 {
        return Ok(());
    }
    if segment > 0 {
        return Err(UnreadReason::Offload);
    }
    if layout.sum(ip).fold() == 0xffff { Ok(()) } else { Err(UnreadReason::Checksum) }
}

/// Returns which options are present that a [`bentpipe_base::TcpHeader`] does not hold.
pub(crate) fn foreign(options: &[u8], is_syn: bool) -> Result<OtherOptions, UnreadReason> {
    let mut foreign = OtherOptions::default();
    let (mut len, mut seen) = (0, 0u16);
    for option in Options::new(options) {
        let option = option.map_err(|_| UnreadReason::Malformed)?;
        if is_in_header(option.kind(), option.bytes.len(), is_syn) {
            let bit = 1 << option.kind().0;
            if seen & bit != 0 {
                return Err(UnreadReason::Malformed); // stacks disagree on which duplicate counts
            }
            seen |= bit;
            continue;
        }
        len += option.bytes.len();
        foreign.kinds |= match option.kind().0 {
            MD5 | AO => OtherOptions::SIGNED,
            MPTCP => OtherOptions::MULTIPATH,
            FAST_OPEN => OtherOptions::FAST_OPEN,
            kind if EXPERIMENTAL.contains(&kind) && option.value().starts_with(&FAST_OPEN_MAGIC) => {
                OtherOptions::FAST_OPEN
            }
            _ => OtherOptions::UNKNOWN,
        };
    }
    foreign.len = len.next_multiple_of(4) as u8;
    Ok(foreign)
}

/// True for an option that [`read_tcp`] stores in the header.
pub(crate) const fn is_in_header(kind: OptionKind, len: usize, is_syn: bool) -> bool {
    match kind {
        OptionKind::MSS => is_syn && len == 4,
        OptionKind::WINDOW_SCALE => is_syn && len == 3,
        OptionKind::SACK_PERMITTED => is_syn && len == 2,
        OptionKind::TIMESTAMPS => len == 10,
        OptionKind::SACK => len > 2 && len <= 34 && (len - 2).is_multiple_of(8),
        _ => false,
    }
}
