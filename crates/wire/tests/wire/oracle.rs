//! What others say about the same bytes: etherparse on headers, a plain loop on checksums.

use bentpipe_wire::{Ends, Segment};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// RFC 1071, section 4.1, word by word.
pub(crate) fn plain_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The pseudo-header of TCP as bytes (RFC 9293, section 3.1; RFC 8200, section 8.1).
pub(crate) fn pseudo_header(ends: &Ends, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    match ends {
        Ends::V4 { src, dst } => {
            bytes.extend(src.octets());
            bytes.extend(dst.octets());
            bytes.extend([0, 6]);
            bytes.extend((len as u16).to_be_bytes());
        }
        Ends::V6 { src, dst } => {
            bytes.extend(src.octets());
            bytes.extend(dst.octets());
            bytes.extend((len as u32).to_be_bytes());
            bytes.extend([0, 0, 0, 6]);
        }
    }
    bytes
}

/// True when etherparse finds a whole TCP packet in the bytes.
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
        (Some(NetSlice::Ipv4(ip)), Ends::V4 { src, dst }) => {
            ip.header().source_addr() == *src && ip.header().destination_addr() == *dst
        }
        (Some(NetSlice::Ipv6(ip)), Ends::V6 { src, dst }) => {
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
