//! Super-packets of every kind, as from a kernel.

use bentpipe_base::{Dscp, Ecn, Flags, Instant, Seq, TcpHeader};
use bentpipe_driver::{Hosts, LiveNetwork};
use bentpipe_live::relay::{Names, network};
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{AddressPair, Segment, UDP, emit, pseudo_header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Payload of a segment: fits behind the headers of IPv6 with room to spare.
pub(crate) const MSS: usize = 1400;

const V4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 55, 0, 1), Ipv4Addr::new(10, 55, 0, 2)];
const V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd55, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd55, 0, 0, 0, 0, 0, 0, 2)];

/// Kind of packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    TcpV4,
    TcpV6,
    UdpV4,
    UdpV6,
    /// With a checksum completed by its sender.
    Finished,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::TcpV4, Self::TcpV6, Self::UdpV4, Self::UdpV6, Self::Finished];
}

pub(crate) fn scenario(link: &str) -> Scenario {
    let text = format!(
        "schema = 1\ntitle = \"fed by hand\"\nduration = \"100 s\"\n\
         [[hosts]]\nname = \"far\"\n[[hosts]]\nname = \"near\"\n\
         [[links]]\nname = \"link\"\nfrom = \"far\"\nto = \"near\"\n{link}\n\
         [[flows]]\nname = \"f\"\nfrom = \"far\"\nto = \"near\"\n"
    );
    load(&Source::new("test", text.as_str()), &[], None).unwrap_or_else(|d| panic!("{d}"))
}

pub(crate) fn net(scenario: &Scenario) -> (LiveNetwork, Names) {
    let hosts = (0..2).flat_map(|i| [(i, IpAddr::from(V4[i])), (i, IpAddr::from(V6[i]))]);
    network(scenario, Hosts::new(hosts, None))
}

/// Feeds `payload` bytes from far to near, to be cut at the MSS.
pub(crate) fn give(net: &mut LiveNetwork, at: Instant, kind: Kind, payload: usize) {
    let (bytes, vnet) = match kind {
        Kind::TcpV4 | Kind::TcpV6 => tcp(kind, at.0 as u32, payload),
        Kind::UdpV4 | Kind::UdpV6 => udp(kind, payload),
        Kind::Finished => (tcp(kind, at.0 as u32, MSS).0, VnetHeader::default()),
    };
    assert!(net.store.borrow_mut().write(&bytes));
    net.advance(at);
    assert!(net.accept(0, bytes.len(), &vnet));
}

fn note(gso: u8, start: usize, (header, offset): (usize, u16), payload: usize) -> VnetHeader {
    let cut = payload > MSS;
    VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: if cut { gso } else { VnetHeader::GSO_NONE },
        hdr_len: header as u16,
        gso_size: if cut { MSS as u16 } else { 0 },
        csum_start: start as u16,
        csum_offset: offset,
    }
}

fn ends(v6: bool) -> AddressPair {
    if v6 { AddressPair::V6 { src: V6[0], dst: V6[1] } } else { AddressPair::V4 { src: V4[0], dst: V4[1] } }
}

fn tcp(kind: Kind, seq: u32, payload: usize) -> (Vec<u8>, VnetHeader) {
    let v6 = matches!(kind, Kind::TcpV6);
    let data: Vec<u8> = (0..payload).map(|i| (i % 251) as u8).collect();
    let flags = Flags::ACK.with(Flags::PSH);
    let header = TcpHeader { seq: Seq(seq), flags, window: 1000, ..TcpHeader::default() };
    let segment = Segment {
        ends: ends(v6),
        sport: 4000,
        dport: 5000,
        hops: 64,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        tcp: header,
        payload: &data,
    };
    let mut packet = Vec::new();
    emit(&segment, &mut packet).unwrap();
    let ip = if v6 { 40 } else { 20 };
    let gso = if v6 { VnetHeader::GSO_TCPV6 } else { VnetHeader::GSO_TCPV4 };
    if !matches!(kind, Kind::Finished) {
        partial(&mut packet, &segment.ends, ip, (bentpipe_wire::TCP, 16));
    }
    (packet, note(gso, ip, (ip + 20, 16), payload))
}

fn udp(kind: Kind, payload: usize) -> (Vec<u8>, VnetHeader) {
    let v6 = matches!(kind, Kind::UdpV6);
    // take the IP header of an empty segment, with another protocol and length
    let (mut packet, _) = tcp(if v6 { Kind::TcpV6 } else { Kind::TcpV4 }, 0, 0);
    let ip = if v6 { 40 } else { 20 };
    packet.truncate(ip);
    let len = 8 + payload;
    if v6 {
        packet[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        packet[6] = UDP;
    } else {
        packet[2..4].copy_from_slice(&((ip + len) as u16).to_be_bytes());
        packet[9] = UDP;
        packet[10..12].fill(0);
        let sum = bentpipe_wire::Sum::of(&packet).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    for field in [6000_u16, 7000, len as u16, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend((0..payload).map(|i| (i % 253) as u8));
    partial(&mut packet, &ends(v6), ip, (UDP, 6));
    (packet, note(VnetHeader::GSO_UDP_L4, ip, (ip + 8, 6), payload))
}

/// Writes the sum of the pseudo-header to the checksum field, as a kernel does for a network card.
fn partial(packet: &mut [u8], ends: &AddressPair, ip: usize, (protocol, offset): (u8, usize)) {
    let sum = pseudo_header(ends, protocol, packet.len() - ip).fold();
    packet[ip + offset..ip + offset + 2].copy_from_slice(&sum.to_be_bytes());
}
