//! Frames with VLAN tags or PPPoE headers, from one end of the wire to the other.

use crate::lab::{Lab, at};
use crate::nodes::SHIFT;
use bentpipe_base::{Dscp, Duration, Ecn, Flags, Instant, Seq, TcpHeader};
use bentpipe_driver::{Unit, parse};
use bentpipe_os::port::{MAX_SUPER, PacketPort as _};
use bentpipe_os::{Clock, FramePort, wait};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{AddressPair, Segment, emit, pseudo_header};
use std::io::IoSlice;
use std::net::IpAddr;

const SEQ: Seq = Seq(1000);
const WINDOW: u16 = 400;

/// A frame with the bytes `between` its addresses and its packet.
fn frame(v6: bool, between: &[u8], payload: &[u8]) -> (Vec<u8>, usize) {
    let ends = match (at(0, v6, 0).ip(), at(1, v6, 0).ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => AddressPair::V4 { src, dst },
        (IpAddr::V6(src), IpAddr::V6(dst)) => AddressPair::V6 { src, dst },
        _ => panic!("two families"),
    };
    let tcp = TcpHeader { seq: SEQ, window: WINDOW, flags: Flags::ACK, ..TcpHeader::default() };
    let (dscp, ecn) = (Dscp::default(), Ecn::NotEct);
    let segment = Segment { ends, sport: 7000, dport: 7001, hops: 64, dscp, ecn, tcp, payload };
    let mut packet = Vec::new();
    emit(&segment, &mut packet).expect("a packet");
    let mut bytes = [[0x06; 6], [0x0a; 6]].concat();
    bytes.extend(between);
    let link = bytes.len();
    bytes.extend(packet);
    if between.contains(&0x64) {
        let len = (bytes.len() - link + 2) as u16; // of the session, with the PPP protocol
        bytes[link - 4..link - 2].copy_from_slice(&len.to_be_bytes());
    }
    (bytes, link)
}

/// Returns the next frame with our addresses; ignores others of the hosts.
fn next(port: &mut FramePort) -> Option<(Vec<u8>, VnetHeader)> {
    let clock = Clock::start();
    let (mut buffer, deadline) = (vec![0; MAX_SUPER], Instant(3_000_000_000));
    while clock.now() < deadline {
        while let Some(got) = port.receive(&mut buffer).expect("a port that is there") {
            if buffer[..6] == [0x06; 6] {
                buffer.truncate(got.len);
                return Some((buffer, got.vnet));
            }
        }
        wait::wait(&[port.fd()], Some(deadline), &clock, Duration::ZERO).expect("to wait");
    }
    None
}

/// Sends frames of all kinds; with `changes` the path shifts the sequence numbers of the first host.
pub(crate) fn pass(lab: &Lab, changes: bool) {
    let (mut from, mut to) = (lab.far_end(0), lab.far_end(1));
    let v4: [&[u8]; 4] = [
        &[8, 0],
        &[0x81, 0, 0x20, 5, 8, 0],
        &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5, 8, 0],
        &[0x88, 0x64, 0x11, 0, 0, 7, 0, 0, 0, 0x21],
    ];
    let v6: [&[u8]; 3] = [
        &[0x86, 0xdd],
        &[0x81, 0, 0, 5, 0x86, 0xdd],
        &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 7, 0, 0, 0, 0x57],
    ];
    let both = v4.iter().map(|b| (false, *b)).chain(v6.iter().map(|b| (true, *b)));
    for (is_v6, between) in both {
        let (bytes, link) = frame(is_v6, between, b"as it is");
        assert!(from.send(&VnetHeader::default(), &[IoSlice::new(&bytes)]).expect("to send"));
        let (got, vnet) = next(&mut to).unwrap_or_else(|| panic!("{between:02x?} was lost"));
        assert_eq!(got[..link], bytes[..link]);
        let packet = parse(&got, &vnet, Unit::Frame).expect("a sound packet").packet;
        let (shift, halve) = if changes { (SHIFT, 1) } else { (0, 0) };
        assert_eq!((packet.tcp.seq.0, packet.tcp.window), (SEQ.0.wrapping_add(shift), WINDOW >> halve));
        assert!(got.ends_with(b"as it is"));
        assert!(changes || got == bytes);
    }
    // not IP: LLDP, PPPoE session control, an unknown type
    for other in [&[0x88, 0xcc][..], &[0x88, 0x64, 0x11, 0, 0, 7, 0, 40, 0xc0, 0x21], &[0x12, 0x34]] {
        let bytes = [&[0x06; 12], other, &[9; 60]].concat();
        assert!(from.send(&VnetHeader::default(), &[IoSlice::new(&bytes)]).expect("to send"));
        assert_eq!(next(&mut to).map(|(got, _)| got), Some(bytes));
    }
    for (is_v6, between) in [(false, v4[1]), (true, v6[1])] {
        super_packet(&mut from, &mut to, is_v6, between);
    }
}

/// A super-packet behind a tag arrives whole or segmented.
fn super_packet(from: &mut FramePort, to: &mut FramePort, v6: bool, between: &[u8]) {
    let payload: Vec<u8> = (0..10_000u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let (mut bytes, link) = frame(v6, between, &payload);
    let parsed = parse(&bytes, &VnetHeader::default(), Unit::Frame).expect("a sound packet");
    let transport = link + usize::from(parsed.packet.header_len) - 20;
    let sum = pseudo_header(&parsed.ends, 6, bytes.len() - transport).fold();
    bytes[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
    let vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: if v6 { VnetHeader::GSO_TCPV6 } else { VnetHeader::GSO_TCPV4 },
        hdr_len: (transport + 20) as u16,
        gso_size: 1300,
        csum_start: transport as u16,
        csum_offset: 16,
    };
    assert!(from.send(&vnet, &[IoSlice::new(&bytes)]).expect("to send"));
    let mut stream = Vec::new();
    while stream.len() < payload.len() {
        let (got, vnet) = next(to).expect("the rest of it");
        assert_eq!(got[..link], bytes[..link]);
        let packet = parse(&got, &vnet, Unit::Frame).expect("a sound packet").packet;
        let start = got.len() - packet.body.len as usize;
        stream.extend_from_slice(&got[start..]);
    }
    assert_eq!(stream, payload);
}
