//! A TCP packet as values, as the engine reads and sends it.

use crate::checksum::Sum;
use crate::error::{Fault, WireError};
use crate::ipv4::{DONT_FRAGMENT, Ipv4Header};
use crate::ipv6::Ipv6Header;
use crate::layout::{AddressPair, Layout};
use crate::options::{OPTION_SPACE, OptionKind, Options, RawOption};
use crate::tcp::{Tcp, TcpFixed};
use bentpipe_base::{Dscp, Ecn, Flags, ProbeOption, SackList, Seq, TcpHeader, Timestamps};
use zerocopy::IntoBytes;

/// Identifier that distinguishes the probe option from other experiments (RFC 6994, section 3).
const PROBE_EXPERIMENT: [u8; 2] = [0x5a, 0x70];
/// Bit of the number that is set in an echo and clear in a probe.
const ECHO: u16 = 1 << 15;

/// A TCP packet as values.
///
/// It has only what the engine understands: no unknown options, urgent pointer, reserved bits or IP options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The addresses.
    pub ends: AddressPair,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Hops left.
    pub hops: u8,
    /// Differentiated-services code point.
    pub dscp: Dscp,
    /// ECN field.
    pub ecn: Ecn,
    /// The TCP header. MSS, window scale and SACK-permitted count on a SYN only (RFC 9293, section 3.2).
    pub tcp: TcpHeader,
    /// The payload.
    pub payload: &'a [u8],
}

/// Parses a TCP packet. Checksums are not verified, because they may be offloaded to the network card (see
/// [`Layout::sum`]).
///
/// If an option occurs twice, the later one counts. A known option with a wrong length is ignored like an
/// unknown one. Common stacks do the same.
///
/// # Errors
/// If [`Layout::of`] fails or the options are malformed.
pub fn parse(bytes: &[u8]) -> Result<Segment<'_>, WireError> {
    let layout = Layout::of(bytes)?;
    let (sport, dport, tcp) = read_tcp(bytes, &layout)?;
    let network = &layout.network;
    Ok(Segment {
        ends: network.ends,
        sport,
        dport,
        hops: network.hops,
        dscp: Dscp::new(network.traffic_class >> 2).unwrap_or_default(),
        ecn: ecn(network.traffic_class),
        tcp,
        payload: bytes.get(layout.payload).unwrap_or_default(),
    })
}

/// Returns source port, destination port and TCP header of a packet whose layout is known, as [`parse`] does.
///
/// # Errors
/// If the options are malformed, or the layout is that of another packet.
pub fn read_tcp(bytes: &[u8], layout: &Layout) -> Result<(u16, u16, TcpHeader), WireError> {
    let network = &layout.network;
    let segment = bytes.get(network.transport..network.end).unwrap_or_default();
    let tcp = Tcp::new(segment).map_err(|e| e.shifted_by(network.transport))?;
    let header = &tcp.header;
    let mut value = TcpHeader {
        seq: Seq(header.seq.get()),
        ack: Seq(header.ack.get()),
        window: header.window.get(),
        flags: header.flags(),
        ..TcpHeader::default()
    };
    for option in Options::new(tcp.options) {
        read_option(&mut value, &option.map_err(|e| e.shifted_by(layout.options.start))?);
    }
    Ok((header.sport.get(), header.dport.get(), value))
}

/// The ECN field in the lower two bits of a traffic class.
pub const fn ecn(traffic_class: u8) -> Ecn {
    match traffic_class & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

fn read_option(into: &mut TcpHeader, option: &RawOption<'_>) {
    let syn = into.flags.has(Flags::SYN);
    match (option.kind(), option.value()) {
        (OptionKind::MSS, &[a, b]) if syn => into.mss = Some(u16::from_be_bytes([a, b])),
        (OptionKind::WINDOW_SCALE, &[shift]) if syn => into.window_scale = Some(shift),
        (OptionKind::SACK_PERMITTED, &[]) if syn => into.sack_permitted = true,
        (OptionKind::TIMESTAMPS, bytes) => {
            if let Ok(bytes) = bytes.try_into() {
                let (value, echo) = two_words(bytes);
                into.timestamps = Some(Timestamps { value, echo });
            }
        }
        (OptionKind::SACK, edges) => {
            if let Some(list) = sack_list(edges) {
                into.sack = list;
            }
        }
        (OptionKind::EXPERIMENT, &[a, b]) if syn && [a, b] == PROBE_EXPERIMENT => {
            into.probe = ProbeOption::Permitted;
        }
        (OptionKind::EXPERIMENT, &[a, b, high, low]) if !syn && [a, b] == PROBE_EXPERIMENT => {
            let number = u16::from_be_bytes([high, low]);
            let kind = if number & ECHO == 0 { ProbeOption::Probe } else { ProbeOption::Echo };
            into.probe = kind(number & !ECHO);
        }
        _ => {}
    }
}

fn two_words(bytes: [u8; 8]) -> (u32, u32) {
    let both = u64::from_be_bytes(bytes);
    ((both >> 32) as u32, both as u32)
}

/// `None` unless `edges` are one to four whole blocks.
fn sack_list(edges: &[u8]) -> Option<SackList> {
    let (blocks, rest) = edges.as_chunks::<8>();
    let mut list = SackList::default();
    for block in blocks {
        let (left, right) = two_words(*block);
        if !list.push(Seq(left), Seq(right)) {
            return None;
        }
    }
    (rest.is_empty() && !list.is_empty()).then_some(list)
}

/// Appends the packet to `out`, with correct checksums. On IPv4 it sets "don't fragment".
///
/// [`parse`] returns an equal value, provided that a segment without SYN carries no SYN-only option.
///
/// # Errors
/// If the options need more than 40 bytes or the packet is too long for IP; `out` is then unchanged.
pub fn emit(segment: &Segment<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    let (transport, sum) = emit_headers(segment, segment.payload.len(), out)?;
    out.extend_from_slice(segment.payload);
    let sum = sum.bytes(&out[transport..]);
    out[transport + 16..transport + 18].copy_from_slice(&sum.finish().to_be_bytes());
    debug_assert_eq!(Layout::of(&out[start..]).map(|l| l.payload.len()), Ok(segment.payload.len()));
    Ok(())
}

/// Appends the headers for `payload` bytes, without the TCP checksum. Returns where the TCP header begins and
/// the sum of the pseudo-header; it fails as [`emit`] does, and `out` is then unchanged.
pub(crate) fn emit_headers(
    segment: &Segment<'_>,
    payload: usize,
    out: &mut Vec<u8>,
) -> Result<(usize, Sum), WireError> {
    let tcp_len = usize::from(segment.tcp.wire_len());
    if tcp_len > size_of::<TcpFixed>() + OPTION_SPACE {
        return Err(WireError::new(Fault::OptionSpaceFull, out.len()));
    }
    emit_network(segment, tcp_len + payload, out)?;
    let transport = out.len();
    out.extend_from_slice(fixed_header(segment, tcp_len).as_bytes());
    emit_options(&segment.tcp, out);
    Ok((transport, crate::pseudo_header(&segment.ends, crate::TCP, tcp_len + payload)))
}

fn emit_network(segment: &Segment<'_>, transport_len: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let too_long = WireError::new(Fault::TooLong, out.len());
    let traffic_class = segment.dscp.get() << 2 | segment.ecn as u8;
    match segment.ends {
        AddressPair::V4 { src, dst } => {
            let total_len = u16::try_from(size_of::<Ipv4Header>() + transport_len).map_err(|_| too_long)?;
            let mut header = Ipv4Header {
                version_ihl: 0x45,
                traffic_class,
                total_len: total_len.into(),
                id: 0.into(), // a packet that may not be fragmented needs none (RFC 6864, section 4.1)
                fragment: DONT_FRAGMENT.into(),
                ttl: segment.hops,
                protocol: crate::TCP,
                checksum: 0.into(),
                src: src.octets(),
                dst: dst.octets(),
            };
            header.checksum = Sum::of(header.as_bytes()).finish().into();
            out.extend_from_slice(header.as_bytes());
        }
        AddressPair::V6 { src, dst } => {
            let header = Ipv6Header {
                version_class_label: (6 << 28 | u32::from(traffic_class) << 20).into(),
                payload_len: u16::try_from(transport_len).map_err(|_| too_long)?.into(),
                next_header: crate::TCP,
                hop_limit: segment.hops,
                src: src.octets(),
                dst: dst.octets(),
            };
            out.extend_from_slice(header.as_bytes());
        }
    }
    Ok(())
}

fn fixed_header(segment: &Segment<'_>, tcp_len: usize) -> TcpFixed {
    let tcp = &segment.tcp;
    TcpFixed {
        sport: segment.sport.into(),
        dport: segment.dport.into(),
        seq: tcp.seq.0.into(),
        ack: tcp.ack.0.into(),
        data_offset: (tcp_len as u8 / 4) << 4,
        flags: tcp.flags.0,
        window: tcp.window.into(),
        checksum: 0.into(),
        urgent: 0.into(),
    }
}

/// Appends the options in the order and with the padding of common stacks. They take `tcp.wire_len()` - 20
/// bytes.
fn emit_options(tcp: &TcpHeader, out: &mut Vec<u8>) {
    const NOP: u8 = OptionKind::NOP.0;
    let syn = tcp.flags.has(Flags::SYN);
    if let Some(mss) = tcp.mss.filter(|_| syn) {
        out.extend([OptionKind::MSS.0, 4]);
        out.extend(mss.to_be_bytes());
    }
    let permitted = syn && tcp.sack_permitted;
    if permitted || tcp.timestamps.is_some() {
        // SACK-permitted replaces the two padding bytes of the timestamps
        out.extend(if permitted && tcp.timestamps.is_some() {
            [OptionKind::SACK_PERMITTED.0, 2]
        } else {
            [NOP, NOP]
        });
    }
    match tcp.timestamps {
        Some(Timestamps { value, echo }) => {
            out.extend([OptionKind::TIMESTAMPS.0, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        }
        None if permitted => out.extend([OptionKind::SACK_PERMITTED.0, 2]),
        None => {}
    }
    if let Some(shift) = tcp.window_scale.filter(|_| syn) {
        out.extend([NOP, OptionKind::WINDOW_SCALE.0, 3, shift]);
    }
    emit_probe(tcp.probe, out);
    let blocks = tcp.sack.as_slice();
    if !blocks.is_empty() {
        out.extend([NOP, NOP, OptionKind::SACK.0, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            out.extend(left.0.to_be_bytes());
            out.extend(right.0.to_be_bytes());
        }
    }
}

fn emit_probe(probe: ProbeOption, out: &mut Vec<u8>) {
    let number = match probe {
        ProbeOption::None => return,
        ProbeOption::Permitted => {
            out.extend([OptionKind::EXPERIMENT.0, 4]);
            out.extend(PROBE_EXPERIMENT);
            return;
        }
        ProbeOption::Probe(number) => number & !ECHO,
        ProbeOption::Echo(number) => number | ECHO,
    };
    out.extend([OptionKind::NOP.0, OptionKind::NOP.0, OptionKind::EXPERIMENT.0, 6]);
    out.extend(PROBE_EXPERIMENT);
    out.extend(number.to_be_bytes());
}
