//! Bytes of a simulated packet as on the wire.
//!
//! Host n of the simulation has the addresses 10.0.0.0 + n + 1 and, in IPv6 packets, fd00:: and the same 32
//! bits. The byte at position p of a stream is p mod 251: with a prime, data that is misplaced by a power of
//! two is detected. A datagram starts with its number and its sending time in nanoseconds, eight bytes each
//! in network byte order, as far as they fit. A message about a packet quotes its first bytes; its source is
//! the packet's destination, since links have no address. Structures of in-band signalling are the end of
//! the payload in IPv4, and the hop-by-hop header in IPv6. Options of signalling are the last ones of their
//! header.

use bentpipe_base::{Addr, IpVersion, Packet, Proto, Signal, TooBig};
use bentpipe_wire::{
    AddressPair, Ipv4Header, Ipv6Header, Segment, Sum, TCP, UDP, UdpHeader, WireError, add_hop_by_hop,
    add_ipv4_options, add_tcp_options, emit, pseudo_header,
};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::io;
use zerocopy::IntoBytes;

/// Protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// "Don't fragment" (RFC 791, section 3.1).
const DONT_FRAGMENT: u16 = 0x4000;

pub(crate) const fn address(addr: Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | (addr.0.wrapping_add(1) & 0x00ff_ffff))
}

const fn address_v6(addr: Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfd00 << 112 | address(addr).to_bits() as u128)
}

fn ends(ip: IpVersion, src: Addr, dst: Addr) -> AddressPair {
    match ip {
        IpVersion::V4 => AddressPair::V4 { src: address(src), dst: address(dst) },
        IpVersion::V6 => AddressPair::V6 { src: address_v6(src), dst: address_v6(dst) },
    }
}

/// Replaces `out` by the bytes of the packet. `payload` is scratch space.
pub(crate) fn bytes(packet: &Packet, payload: &mut Vec<u8>, out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    payload.clear();
    let ends = ends(packet.ip, packet.src, packet.dst);
    if let Some(said) = packet.too_big() {
        return message(packet, said, out);
    }
    let signal = packet.signal.as_deref();
    let structures = signal.map_or(&[][..], Signal::bytes);
    if packet.proto == Proto::Udp {
        datagram_payload(packet, payload);
    } else {
        stream(packet.body.off, u64::from(packet.body.len), payload);
    }
    if packet.ip == IpVersion::V4 {
        payload.extend_from_slice(structures);
    }
    if packet.proto == Proto::Udp {
        datagram(packet, &ends, payload, out)?;
    } else {
        let segment = Segment {
            ends,
            sport: packet.sport,
            dport: packet.dport,
            hops: packet.hops,
            dscp: packet.dscp,
            ecn: packet.ecn,
            tcp: packet.tcp.clone(),
            payload,
        };
        emit(&segment, out).map_err(wrong)?;
    }
    let (ip_options, tcp_options) = signal.map_or((&[][..], &[][..]), |s| (s.ip_options(), s.tcp_options()));
    if !tcp_options.is_empty() && packet.proto == Proto::Tcp {
        add_tcp_options(tcp_options, out).map_err(wrong)?;
    }
    match packet.ip {
        IpVersion::V4 if !ip_options.is_empty() => add_ipv4_options(ip_options, out).map_err(wrong),
        IpVersion::V6 if !structures.is_empty() => add_hop_by_hop(structures, out).map_err(wrong),
        IpVersion::V6 if !ip_options.is_empty() => add_hop_by_hop(ip_options, out).map_err(wrong),
        _ => Ok(()),
    }
}

fn wrong(error: WireError) -> io::Error {
    invalid(&error.to_string())
}

fn stream(from: u64, len: u64, out: &mut Vec<u8>) {
    out.extend((from..from.saturating_add(len)).map(|p| (p % 251) as u8));
}

fn datagram_payload(packet: &Packet, payload: &mut Vec<u8>) {
    let (index, sent) = packet.datagram().map_or((packet.body.off, 0), |(i, at)| (i, at.0));
    payload.extend(index.to_be_bytes());
    payload.extend(sent.to_be_bytes());
    stream(16, u64::from(packet.body.len).saturating_sub(16), payload);
    payload.truncate(packet.body.len as usize);
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn too_long() -> io::Error {
    invalid("a packet longer than an IP packet can be")
}

fn datagram(packet: &Packet, ends: &AddressPair, payload: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let udp_len = u16::try_from(payload.len() + size_of::<UdpHeader>()).map_err(|_| too_long())?;
    network_header(packet, ends, (UDP, udp_len), out)?;
    let mut udp = UdpHeader {
        sport: packet.sport.into(),
        dport: packet.dport.into(),
        len: udp_len.into(),
        checksum: 0.into(),
    };
    let sum = pseudo_header(ends, UDP, usize::from(udp_len)).bytes(udp.as_bytes()).bytes(payload).finish();
    // 0 would mean "no checksum" (RFC 768)
    udp.checksum = (if sum == 0 { 0xffff } else { sum }).into();
    out.extend_from_slice(udp.as_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

/// ICMP "fragmentation needed" (RFC 792, RFC 1191) or "packet too big" (RFC 4443, section 3.2).
fn message(packet: &Packet, said: TooBig, out: &mut Vec<u8>) -> io::Result<()> {
    let (protocol, kind, code) = match packet.ip {
        IpVersion::V4 => (ICMP, 3, 4),
        IpVersion::V6 => (ICMP_V6, 2, 0),
    };
    let [high, low] = said.mtu.to_be_bytes();
    let mut text = vec![kind, code, 0, 0, 0, 0, high, low];
    let carries = if said.is_tcp { TCP } else { UDP };
    let len = said.len.0.saturating_sub(u64::from(packet.ip.header()));
    let len = u16::try_from(len).map_err(|_| too_long())?;
    network_header(packet, &ends(packet.ip, packet.dst, packet.src), (carries, len), &mut text)?;
    text.extend(packet.dport.to_be_bytes());
    text.extend(packet.sport.to_be_bytes());
    let last = if said.is_tcp { said.seq.0 } else { u32::from(len) << 16 };
    text.extend(last.to_be_bytes());
    let ends = ends(packet.ip, packet.src, packet.dst);
    let sum = match packet.ip {
        IpVersion::V4 => Sum::of(&text),
        IpVersion::V6 => pseudo_header(&ends, ICMP_V6, text.len()).bytes(&text),
    };
    text[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    network_header(packet, &ends, (protocol, text.len() as u16), out)?;
    out.extend_from_slice(&text);
    Ok(())
}

/// Appends the IP header before `len` bytes of a protocol.
fn network_header(
    packet: &Packet,
    ends: &AddressPair,
    (protocol, len): (u8, u16),
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let traffic_class = packet.dscp.get() << 2 | packet.ecn as u8;
    match *ends {
        AddressPair::V4 { src, dst } => {
            let total_len = usize::from(len) + size_of::<Ipv4Header>();
            let mut ip = Ipv4Header {
                version_ihl: 0x45,
                traffic_class,
                total_len: u16::try_from(total_len).map_err(|_| too_long())?.into(),
                id: 0.into(),
                fragment: DONT_FRAGMENT.into(),
                ttl: packet.hops,
                protocol,
                checksum: 0.into(),
                src: src.octets(),
                dst: dst.octets(),
            };
            ip.checksum = Sum::of(ip.as_bytes()).finish().into();
            out.extend_from_slice(ip.as_bytes());
        }
        AddressPair::V6 { src, dst } => {
            let ip = Ipv6Header {
                version_class_label: (6 << 28 | u32::from(traffic_class) << 20).into(),
                payload_len: len.into(),
                next_header: protocol,
                hop_limit: packet.hops,
                src: src.octets(),
                dst: dst.octets(),
            };
            out.extend_from_slice(ip.as_bytes());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Body, Dscp, Flags, Instant, TcpHeader};
    use bentpipe_wire::Layout;

    /// 16 bytes that are a hop-by-hop header with one option, to be skipped if unknown.
    const OPTION: [u8; 16] = [6, 1, 0x3e, 12, 0x5d, 0xa9, 0, 0, 0, 0, 0x50, 0, 0, 0x10, 0, 0];

    fn packet(ip: IpVersion, len: u32) -> Packet {
        let tcp = TcpHeader { flags: Flags::ACK, window: 100, ..TcpHeader::default() };
        let dscp = Dscp::new(3).unwrap();
        let body = Body { off: 250, len };
        let mut packet = Packet { src: Addr(0), dst: Addr(1), ip, dscp, tcp, body, ..Packet::default() };
        packet.signal = Signal::new(&OPTION).map(Box::new);
        packet.seal();
        packet
    }

    fn written(packet: &Packet) -> Vec<u8> {
        let mut out = Vec::new();
        bytes(packet, &mut Vec::new(), &mut out).unwrap();
        assert_eq!(out.len() as u64, packet.wire_len().0);
        out
    }

    #[test]
    fn signalling_is_the_end_of_the_payload_in_ipv4() {
        let out = written(&packet(IpVersion::V4, 3));
        let layout = Layout::of(&out).unwrap();
        assert_eq!(layout.sum(&out).fold(), 0xffff);
        assert_eq!((layout.network.traffic_class, layout.network.hops), (0x0c, 0));
        let payload = &out[layout.payload];
        assert_eq!((&payload[..3], &payload[3..]), (&[250, 0, 1][..], &OPTION[..]));
    }

    #[test]
    fn signalling_is_the_hop_by_hop_header_in_ipv6() {
        let out = written(&packet(IpVersion::V6, 3));
        let layout = Layout::of(&out).unwrap();
        assert_eq!((out[6], &out[40..56]), (0, &OPTION[..]), "the number of the hop-by-hop header");
        assert_eq!((layout.network.protocol, layout.network.transport), (TCP, 56));
        assert_eq!(layout.sum(&out).fold(), 0xffff);
        assert_eq!((layout.network.traffic_class, &out[layout.payload]), (0x0c, &[250, 0, 1][..]));
        let src = "fd00::a00:1".parse::<Ipv6Addr>().unwrap();
        assert_eq!(layout.network.ends.addresses().0, src);
    }

    #[test]
    fn a_datagram_has_either_header() {
        for (ip, protocol_at) in [(IpVersion::V4, 9), (IpVersion::V6, 6)] {
            let mut packet = packet(ip, 0);
            packet.signal = None;
            packet.set_datagram(7, Instant(9), 20);
            packet.seal();
            let out = written(&packet);
            assert_eq!((out[protocol_at], out.len()), (UDP, usize::from(ip.header()) + 28));
        }
    }

    #[test]
    fn a_message_quotes_the_packet_that_was_too_long() {
        for (ip, headers) in [(IpVersion::V4, 20), (IpVersion::V6, 40)] {
            let mut refused = packet(ip, 1728);
            (refused.signal, refused.sport, refused.dport) = (None, 7, 80);
            refused.tcp.seq = bentpipe_base::Seq(0x0102_0304);
            refused.seal();
            let mut told = Packet::default();
            told.set_too_big(&refused, 1500);
            let out = written(&told);
            assert_eq!(out.len(), usize::from(told.header_len));
            let message = &out[headers..];
            let kind = if ip == IpVersion::V4 { [3, 4] } else { [2, 0] };
            assert_eq!(
                (&message[..2], &message[4..8]),
                (&kind[..], &[0, 0, 1500_u16.to_be_bytes()[0], 220][..])
            );
            let quoted = &message[8..];
            assert_eq!(quoted[headers..], [0, 7, 0, 80, 1, 2, 3, 4]);
            // addresses of the packet: the other way round than those of the message
            let (len, half) = if ip == IpVersion::V4 { (8, 4) } else { (32, 16) };
            let at = headers - len;
            assert_eq!(quoted[at..at + half], out[at + half..at + len]);
            let sum = match ip {
                IpVersion::V4 => Sum::of(message),
                IpVersion::V6 => {
                    pseudo_header(&ends(ip, told.src, told.dst), ICMP_V6, message.len()).bytes(message)
                }
            };
            assert_eq!(sum.fold(), 0xffff);
        }
    }

    #[test]
    fn signalling_that_is_no_header_is_refused_in_ipv6() {
        let mut packet = packet(IpVersion::V6, 0);
        packet.signal = Signal::new(&OPTION[..12]).map(Box::new);
        packet.seal();
        assert!(bytes(&packet, &mut Vec::new(), &mut Vec::new()).is_err());
    }

    /// Type, length and content as RFC 4782 and RFC 6994 have them; no length or checksum is wrong.
    #[test]
    fn options_are_the_last_of_their_header() {
        let quick_start = [25, 8, 9, 200, 1, 2, 3, 4];
        let in_ipv6 = [6, 1, 0x26, 6, 9, 200, 1, 2, 3, 4, 1, 4, 0, 0, 0, 0];
        let in_tcp = [1, 1, 254, 6, 0x6F, 0x7D, 0x3F, 0xFF];
        for (ip, options, header) in [(IpVersion::V4, &quick_start[..], 20), (IpVersion::V6, &in_ipv6, 40)] {
            for (first, second) in [(options, &in_tcp[..]), (options, &[]), (&[], &in_tcp)] {
                let mut packet = packet(ip, 3);
                packet.signal = Signal::options(first, second).map(Box::new);
                packet.seal();
                let out = written(&packet);
                let layout = Layout::of(&out).unwrap();
                assert_eq!(layout.sum(&out).fold(), 0xffff);
                assert_eq!((layout.network.protocol, layout.network.transport), (TCP, header + first.len()));
                assert_eq!(&out[header..header + first.len()], first);
                assert_eq!(&out[header + first.len() + 20..][..second.len()], second);
                assert_eq!(out[layout.payload], [250, 0, 1]);
                if ip == IpVersion::V4 {
                    assert_eq!(Sum::of(&out[..20 + first.len()]).fold(), 0xffff);
                }
            }
        }
    }
}
