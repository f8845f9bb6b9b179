//! Writes the headers of super-packets, whose segmentation and checksum are offloaded.
//!
//! They are what the kernel's TCP gives to a card with TSO (`tcp_gso_segment`, net/ipv4/tcp_offload.c):
//! lengths of the whole packet, the sum of the pseudo-header in the checksum field, and FIN and PSH, which
//! segmentation keeps in the last segment only.

use super::{TCP_CHECKSUM, VnetHeader, write_word};
use crate::error::WireError;
use crate::layout::AddressPair;
use crate::segment::{Segment, emit_headers};

/// Appends the headers of `segment` to `out`, for `payload` bytes that are to follow them; the segment's own
/// payload is ignored. Each wire packet gets `size` bytes of payload, the last one the rest. Returns the
/// matching [`VnetHeader`]. The checksum is completed after segmentation.
///
/// # Errors
/// If the options need more than 40 bytes or the packet is too long for IP; `out` is then unchanged.
pub fn emit_super_packet(
    segment: &Segment<'_>,
    payload: usize,
    size: u16,
    out: &mut Vec<u8>,
) -> Result<VnetHeader, WireError> {
    let start = out.len();
    let (transport, sum) = emit_headers(segment, payload, out)?;
    write_word(out, transport + usize::from(TCP_CHECKSUM), sum.fold());
    let is_cut = payload > usize::from(size);
    let kind = match segment.ends {
        AddressPair::V4 { .. } => VnetHeader::GSO_TCPV4,
        AddressPair::V6 { .. } => VnetHeader::GSO_TCPV6,
    };
    Ok(VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: if is_cut { kind } else { VnetHeader::GSO_NONE },
        hdr_len: (out.len() - start) as u16,
        gso_size: if is_cut { size } else { 0 },
        csum_start: (transport - start) as u16,
        csum_offset: TCP_CHECKSUM,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::{HEADER_SPACE, SuperPacket, complete};
    use crate::{emit, parse};
    use bentpipe_base::{Flags, Seq, TcpHeader, Timestamps};
    use core::net::{Ipv4Addr, Ipv6Addr};

    /// After segmentation and checksums the packets are those that would have been sent one by one.
    #[test]
    fn a_super_packet_is_cut_into_the_packets_it_stands_for() {
        let v4 = AddressPair::V4 { src: Ipv4Addr::new(10, 0, 0, 1), dst: Ipv4Addr::new(10, 0, 0, 2) };
        let v6 = AddressPair::V6 { src: Ipv6Addr::LOCALHOST, dst: Ipv6Addr::from(2) };
        let stream: Vec<u8> = (0..40_001_u32).map(|i| (i * 7 + i / 251) as u8).collect();
        for (ends, len) in [(v4, 40_001), (v6, 40_001), (v4, 1448), (v6, 1), (v4, 2896)] {
            let payload = &stream[..len];
            let tcp = TcpHeader {
                seq: Seq(u32::MAX - 5000),
                ack: Seq(77),
                window: 512,
                flags: Flags::ACK.with(Flags::PSH).with(Flags::FIN),
                timestamps: Some(Timestamps { value: 9, echo: 8 }),
                ..TcpHeader::default()
            };
            let whole = Segment {
                ends,
                sport: 1,
                dport: 2,
                hops: 64,
                dscp: bentpipe_base::Dscp::default(),
                ecn: bentpipe_base::Ecn::Ect0,
                tcp,
                payload: &[],
            };
            let mut bytes = Vec::new();
            let vnet = emit_super_packet(&whole, len, 1448, &mut bytes).unwrap();
            bytes.extend_from_slice(payload);
            let all = SuperPacket::parse(&bytes, &vnet).unwrap();
            assert_eq!(all.pieces(), len.div_ceil(1448));
            for i in 0..all.pieces() {
                let mut header = [0; HEADER_SPACE];
                let piece = all.piece(&bytes, i..i + 1, &mut header);
                let mut cut = [&header[..piece.header_len], &bytes[piece.payload]].concat();
                assert!(complete(&mut cut, &piece.vnet));
                let (from, to) = (i * 1448, len.min(i * 1448 + 1448));
                let mut expected = Segment { payload: &payload[from..to], ..whole.clone() };
                expected.tcp.seq = whole.tcp.seq.at(from as u64);
                if to < len {
                    expected.tcp.flags = Flags::ACK;
                }
                let mut alone = Vec::new();
                emit(&expected, &mut alone).unwrap();
                assert_eq!(parse(&cut), Ok(expected));
                // only the identification may differ (and with it the header's checksum): packets that may
                // not be fragmented need none
                let from = if ends == v4 { 12 } else { 0 };
                assert_eq!(cut[from..], alone[from..]);
            }
        }
    }

    #[test]
    fn what_no_header_can_say_is_refused_and_leaves_nothing_behind() {
        let ends = AddressPair::V4 { src: Ipv4Addr::LOCALHOST, dst: Ipv4Addr::BROADCAST };
        let (dscp, ecn) = (bentpipe_base::Dscp::default(), bentpipe_base::Ecn::NotEct);
        let (tcp, payload) = (TcpHeader::default(), &[][..]);
        let segment = Segment { ends, sport: 1, dport: 2, hops: 1, dscp, ecn, tcp, payload };
        let mut out = vec![1, 2, 3];
        assert!(emit_super_packet(&segment, 65_496, 1460, &mut out).is_err());
        assert_eq!(out, [1, 2, 3]);
        assert!(emit_super_packet(&segment, 65_495, 1460, &mut out).is_ok());
    }
}
