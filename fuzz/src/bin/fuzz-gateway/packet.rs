//! Builds units from segments: complete, with checksum offload, or as a super-packet.

use crate::oracle::{Seg, flag, seal, unseal};
use crate::stage::Wire;
use bentpipe_wire::offload::VnetHeader;

fn options(seg: &Seg) -> Vec<u8> {
    let mut list = Vec::new();
    if let Some(mss) = seg.mss {
        list.extend([2, 4]);
        list.extend(mss.to_be_bytes());
    }
    if let Some(scale) = seg.scale {
        list.extend([1, 3, 3, scale]);
    }
    if seg.sack_ok {
        list.extend([1, 1, 4, 2]);
    }
    if let Some((value, echo)) = seg.stamps {
        list.extend([1, 1, 8, 10]);
        list.extend(value.to_be_bytes());
        list.extend(echo.to_be_bytes());
    }
    let room = 40usize.saturating_sub(list.len() + 4) / 8;
    let blocks = seg.sack.get(..room.min(seg.sack.len())).unwrap_or_default();
    if !blocks.is_empty() {
        list.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            list.extend(left.to_be_bytes());
            list.extend(right.to_be_bytes());
        }
    }
    list
}

fn header(seg: &Seg, options: &[u8]) -> Vec<u8> {
    let len = 20 + options.len() + seg.payload.len();
    let mut bytes = if seg.v6 {
        let mut ip = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 6, 64];
        for last in [seg.from, seg.to] {
            ip.extend([0xfd, 0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        ip
    } else {
        let len = len + 20;
        let mut ip = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
        ip.extend([10, 56, 0, seg.from, 10, 56, 0, seg.to]);
        ip
    };
    bytes.extend(seg.sport.to_be_bytes());
    bytes.extend(seg.dport.to_be_bytes());
    bytes.extend(seg.seq.to_be_bytes());
    bytes.extend(seg.ack.to_be_bytes());
    bytes.extend([((20 + options.len()) << 2) as u8, seg.flags]);
    bytes.extend(seg.window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(options);
    bytes
}

/// Builds a unit; it is a super-packet if longer than `size`.
pub(crate) fn build(seg: &Seg, size: u16, partial: bool) -> Wire {
    let options = options(seg);
    let mut bytes = header(seg, &options);
    let hdr_len = bytes.len() as u16;
    bytes.extend(&seg.payload);
    // cannot fail: the packet was just built
    let _ = seal(&mut bytes);
    let is_super = size > 0 && seg.payload.len() > usize::from(size);
    if !is_super && !partial {
        return Wire { vnet: VnetHeader::default(), bytes };
    }
    let Ok(at) = unseal(&mut bytes) else { return Wire { vnet: VnetHeader::default(), bytes } };
    let kind = if seg.v6 { VnetHeader::GSO_TCPV6 } else { VnetHeader::GSO_TCPV4 };
    let ecn = if seg.flags & flag::CWR > 0 { VnetHeader::GSO_ECN } else { 0 };
    let vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: if is_super { kind | ecn } else { VnetHeader::GSO_NONE },
        hdr_len,
        gso_size: if is_super { size } else { 0 },
        csum_start: at as u16,
        csum_offset: 16,
    };
    Wire { vnet, bytes }
}
