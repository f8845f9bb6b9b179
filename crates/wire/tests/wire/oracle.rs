//! Uses etherparse as the reference parser.

use bentpipe_wire::{AddressPair, Segment};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// True if etherparse finds a whole TCP packet in the bytes.
pub(crate) fn is_tcp(bytes: &[u8]) -> bool {
    SlicedPacket::from_ip(bytes)
        .is_ok_and(|p| !p.is_ip_payload_fragmented() && matches!(p.transport, Some(TransportSlice::Tcp(_))))
}

/// Compares our reading of a packet with etherparse's.
pub(crate) fn agrees(bytes: &[u8], ours: &Segment<'_>) -> Result<(), String> {
    let theirs = SlicedPacket::from_ip(bytes).map_err(|e| format!("etherparse refuses what we read: {e}"))?;
    let Some(TransportSlice::Tcp(tcp)) = &theirs.transport else {
        return Err("etherparse sees no TCP where we do".to_owned());
    };
    let same_ends = match (&theirs.net, &ours.ends) {
        (Some(NetSlice::Ipv4(ip)), AddressPair::V4 { src, dst }) => {
            ip.header().source_addr() == *src && ip.header().destination_addr() == *dst
        }
        (Some(NetSlice::Ipv6(ip)), AddressPair::V6 { src, dst }) => {
            ip.header().source_addr() == *src && ip.header().destination_addr() == *dst
        }
        _ => false,
    };
    let flags = tcp.slice()[13];
    let same = same_ends
        && (tcp.source_port(), tcp.destination_port()) == (ours.sport, ours.dport)
        && (tcp.sequence_number(), tcp.acknowledgment_number()) == (ours.tcp.seq.0, ours.tcp.ack.0)
        && (tcp.window_size(), flags) == (ours.tcp.window, ours.tcp.flags.0)
        && tcp.payload() == ours.payload;
    if same { Ok(()) } else { Err(format!("etherparse reads {tcp:?}, we {ours:?}")) }
}
