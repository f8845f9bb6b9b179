//! Helpers for several tests.

use bentpipe_base::{Dscp, Ecn, Flags, Seq, TcpHeader};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{AddressPair, Segment, emit};

/// A super-packet with `payload` bytes of TCP between 10.55.0.1 and 10.55.0.2, to be cut into segments of
/// `size`. Each byte depends on its position in the stream.
pub(crate) fn super_packet(size: usize, seq: u32, payload: usize, forward: bool) -> (Vec<u8>, VnetHeader) {
    super_packet_as(size, seq, payload, forward, (1, Dscp::DEFAULT, Ecn::NotEct))
}

/// The same with a source port and code points.
pub(crate) fn super_packet_as(
    size: usize,
    seq: u32,
    payload: usize,
    forward: bool,
    (sport, dscp, ecn): (u16, Dscp, Ecn),
) -> (Vec<u8>, VnetHeader) {
    let bytes: Vec<u8> = (0..payload).map(|i| (seq as usize + i) as u8).collect();
    let (a, b) = ([10, 55, 0, 1].into(), [10, 55, 0, 2].into());
    let ends = if forward { AddressPair::V4 { src: a, dst: b } } else { AddressPair::V4 { src: b, dst: a } };
    let flags = Flags::ACK.with(Flags::PSH);
    let tcp = TcpHeader { seq: Seq(seq), flags, window: 1000, ..TcpHeader::default() };
    let segment = Segment { ends, sport, dport: 2, hops: 64, dscp, ecn, tcp, payload: &bytes };
    let mut packet = Vec::new();
    emit(&segment, &mut packet).expect("a packet that fits");
    let cut = payload > size;
    let vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: if cut { VnetHeader::GSO_TCPV4 } else { VnetHeader::GSO_NONE },
        hdr_len: 40,
        gso_size: if cut { size as u16 } else { 0 },
        csum_start: 20,
        csum_offset: 16,
    };
    (packet, vnet)
}
