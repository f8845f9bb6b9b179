//! Bytes of a simulated packet as on the wire.
//!
//! Host n of the simulation has the address 10.0.0.0 + n + 1. The byte at position p of a stream is p mod
//! 251: with a prime, data that is misplaced by a power of two is detected. A datagram starts with its
//! number and its sending time in nanoseconds, eight bytes each in network byte order, as far as they fit.

use bentpipe_base::{Addr, Packet, Proto};
use bentpipe_wire::{AddressPair, Ipv4Header, Segment, Sum, UDP, UdpHeader, emit, pseudo_header};
use core::net::Ipv4Addr;
use std::io;
use zerocopy::IntoBytes;

/// "Don't fragment" (RFC 791, section 3.1).
const DONT_FRAGMENT: u16 = 0x4000;

pub(crate) const fn address(addr: Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | (addr.0.wrapping_add(1) & 0x00ff_ffff))
}

/// Replaces `out` by the bytes of the packet. `payload` is scratch space.
pub(crate) fn bytes(packet: &Packet, payload: &mut Vec<u8>, out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    payload.clear();
    let ends = AddressPair::V4 { src: address(packet.src), dst: address(packet.dst) };
    if packet.proto == Proto::Udp {
        return datagram(packet, &ends, payload, out);
    }
    stream(packet.body.off, u64::from(packet.body.len), payload);
    let segment = Segment {
        ends,
        sport: packet.sport,
        dport: packet.dport,
        hops: packet.hops,
        dscp: packet.dscp,
        ecn: packet.ecn,
        tcp: packet.tcp,
        payload,
    };
    emit(&segment, out).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))
}

fn stream(from: u64, len: u64, out: &mut Vec<u8>) {
    out.extend((from..from.saturating_add(len)).map(|p| (p % 251) as u8));
}

fn datagram(packet: &Packet, ends: &AddressPair, payload: &mut Vec<u8>, out: &mut Vec<u8>) -> io::Result<()> {
    let (index, sent) = packet.datagram().map_or((packet.body.off, 0), |(i, at)| (i, at.0));
    payload.extend(index.to_be_bytes());
    payload.extend(sent.to_be_bytes());
    stream(16, u64::from(packet.body.len).saturating_sub(16), payload);
    payload.truncate(packet.body.len as usize);
    let too_long =
        |_| io::Error::new(io::ErrorKind::InvalidData, "a datagram longer than an IPv4 packet can be");
    let udp_len = u16::try_from(payload.len() + size_of::<UdpHeader>()).map_err(too_long)?;
    let total_len = u16::try_from(usize::from(udp_len) + size_of::<Ipv4Header>()).map_err(too_long)?;
    let mut ip = Ipv4Header {
        version_ihl: 0x45,
        traffic_class: packet.dscp.get() << 2 | packet.ecn as u8,
        total_len: total_len.into(),
        id: 0.into(),
        fragment: DONT_FRAGMENT.into(),
        ttl: packet.hops,
        protocol: UDP,
        checksum: 0.into(),
        src: address(packet.src).octets(),
        dst: address(packet.dst).octets(),
    };
    ip.checksum = Sum::of(ip.as_bytes()).finish().into();
    let mut udp = UdpHeader {
        sport: packet.sport.into(),
        dport: packet.dport.into(),
        len: udp_len.into(),
        checksum: 0.into(),
    };
    let sum = pseudo_header(ends, UDP, usize::from(udp_len)).bytes(udp.as_bytes()).bytes(payload).finish();
    // 0 would mean "no checksum" (RFC 768)
    udp.checksum = (if sum == 0 { 0xffff } else { sum }).into();
    out.extend_from_slice(ip.as_bytes());
    out.extend_from_slice(udp.as_bytes());
    out.extend_from_slice(payload);
    Ok(())
}
