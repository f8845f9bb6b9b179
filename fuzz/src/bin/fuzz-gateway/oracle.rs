//! Parses packets as a strict receiver, independently of the code under test: RFC 791, RFC 8200, RFC 9293,
//! RFC 1071 by plain loops.

use crate::stage::Wire;
use std::collections::{BTreeMap, BTreeSet};

/// TCP flags.
pub(crate) mod flag {
    pub(crate) const FIN: u8 = 1;
    pub(crate) const SYN: u8 = 2;
    pub(crate) const RST: u8 = 4;
    pub(crate) const PSH: u8 = 8;
    pub(crate) const ACK: u8 = 16;
    pub(crate) const URG: u8 = 32;
    pub(crate) const CWR: u8 = 128;
}

/// How far an acknowledgment may be behind a higher one: more than any conversation here sends.
const BEHIND: u32 = 1 << 21;

/// A segment as parsed by its receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seg {
    pub(crate) v6: bool,
    /// Last bytes of its source and destination addresses, which identify the hosts.
    pub(crate) from: u8,
    pub(crate) to: u8,
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_ok: bool,
    pub(crate) stamps: Option<(u32, u32)>,
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) payload: Vec<u8>,
}

impl Seg {
    pub(crate) const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Its length in sequence space.
    pub(crate) fn len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }

    /// Sequence number of its first payload byte.
    pub(crate) fn first(&self) -> u32 {
        self.seq.wrapping_add(u32::from(self.has(flag::SYN)))
    }
}

/// True if `a` is before `b` in sequence space.
pub(crate) const fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// The payload at this place of the stream between these ports, by which any received byte is checked.
pub(crate) fn stream(sport: u16, dport: u16, seq: u32, len: usize) -> Vec<u8> {
    let key = u64::from(sport) << 48 | u64::from(dport) << 32;
    let byte = |i: usize| {
        let at = seq.wrapping_add(i as u32);
        let x = (key | u64::from(at >> 2)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (32 + 8 * (at & 3))) as u8
    };
    (0..len).map(byte).collect()
}

/// RFC 1071 checksum, folded.
pub(crate) fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u64::from(*b));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn word(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) << 16 | u32::from(word(bytes, at + 2))
}

/// Offset of the TCP header.
fn transport(bytes: &[u8]) -> Result<usize, String> {
    match bytes.first().map(|b| b >> 4) {
        Some(4) => {
            let at = usize::from(bytes[0] & 15) * 4;
            if at < 20 || bytes.len() < at || bytes[9] != 6 || word(bytes, 6) & 0x3fff != 0 {
                return Err("no whole TCP packet of IPv4".to_owned());
            }
            Ok(at)
        }
        Some(6) => {
            let (mut next, mut at) = (bytes.get(6).copied(), 40);
            while let Some(0 | 60) = next {
                next = bytes.get(at).copied();
                at += 8 + usize::from(bytes.get(at + 1).copied().unwrap_or(0)) * 8;
            }
            if next == Some(6) { Ok(at) } else { Err("no whole TCP packet of IPv6".to_owned()) }
        }
        _ => Err("no IP packet".to_owned()),
    }
}

/// Checksum of the pseudo-header for a TCP segment of `len` bytes.
fn pseudo(bytes: &[u8], len: usize) -> u16 {
    let addresses = if bytes[0] >> 4 == 4 { 12..20 } else { 8..40 };
    sum(&[&bytes[addresses], &(len as u32).to_be_bytes(), &[0, 6]])
}

/// Corrects the checksums of a packet and of its IP header.
pub(crate) fn seal(bytes: &mut [u8]) -> Result<(), String> {
    let at = transport(bytes)?;
    if bytes.len() < at + 20 {
        return Err("short".to_owned());
    }
    if bytes[0] >> 4 == 4 {
        bytes[10..12].fill(0);
        let check = !sum(&[&bytes[..at]]);
        bytes[10..12].copy_from_slice(&check.to_be_bytes());
    }
    bytes[at + 16..at + 18].fill(0);
    let check = !sum(&[&pseudo(bytes, bytes.len() - at).to_be_bytes(), &bytes[at..]]);
    bytes[at + 16..at + 18].copy_from_slice(&check.to_be_bytes());
    Ok(())
}

/// Leaves the checksum to offload, as the kernel does.
pub(crate) fn unseal(bytes: &mut [u8]) -> Result<usize, String> {
    let at = transport(bytes)?;
    let check = pseudo(bytes, bytes.len() - at);
    bytes.get_mut(at + 16..at + 18).ok_or("short")?.copy_from_slice(&check.to_be_bytes());
    Ok(at)
}

/// Parses a packet; its checksums must be correct and its lengths consistent.
pub(crate) fn read(bytes: &[u8]) -> Result<Seg, String> {
    let at = transport(bytes)?;
    let is_v4 = bytes[0] >> 4 == 4;
    let stated = if is_v4 { usize::from(word(bytes, 2)) } else { usize::from(word(bytes, 4)) + 40 };
    if stated != bytes.len() {
        return Err(format!("{stated} bytes are stated of {}", bytes.len()));
    }
    if is_v4 && sum(&[&bytes[..at]]) != 0xffff {
        return Err("the IP header's checksum is wrong".to_owned());
    }
    let tcp = bytes.get(at..).filter(|t| t.len() >= 20).ok_or("no room for a TCP header")?;
    let header = usize::from(tcp[12] >> 4) * 4;
    if header < 20 || header > tcp.len() {
        return Err(format!("a TCP header of {header} bytes"));
    }
    if sum(&[&pseudo(bytes, tcp.len()).to_be_bytes(), tcp]) != 0xffff {
        return Err("the TCP checksum is wrong".to_owned());
    }
    let mut seg = Seg {
        v6: !is_v4,
        from: if is_v4 { bytes[15] } else { bytes[23] },
        to: if is_v4 { bytes[19] } else { bytes[39] },
        sport: word(tcp, 0),
        dport: word(tcp, 2),
        seq: long(tcp, 4),
        ack: long(tcp, 8),
        flags: tcp[13],
        window: word(tcp, 14),
        payload: tcp[header..].to_vec(),
        ..Seg::default()
    };
    options(&tcp[20..header], &mut seg)?;
    Ok(seg)
}

fn options(mut rest: &[u8], seg: &mut Seg) -> Result<(), String> {
    while let Some((kind, behind)) = rest.split_first() {
        match kind {
            0 => break,
            1 => rest = behind,
            _ => {
                let len = behind.first().map_or(0, |len| usize::from(*len));
                let option = rest.get(..len).filter(|o| o.len() >= 2).ok_or("an option that does not fit")?;
                match (kind, len) {
                    (2, 4) => seg.mss = Some(word(option, 2)),
                    (3, 3) => seg.scale = Some(option[2].min(14)),
                    (4, 2) => seg.sack_ok = true,
                    (8, 10) => seg.stamps = Some((long(option, 2), long(option, 6))),
                    (5, 10 | 18 | 26 | 34) => {
                        seg.sack = option[2..].chunks(8).map(|b| (long(b, 0), long(b, 4))).collect();
                    }
                    _ => {}
                }
                rest = &rest[len..];
            }
        }
    }
    Ok(())
}

/// Segments a unit into wire packets and completes their checksums, as the kernel does.
pub(crate) fn cut(wire: &Wire) -> Result<Vec<Vec<u8>>, String> {
    let Wire { vnet, bytes } = wire;
    if vnet.flags & 1 == 0 {
        let whole = (vnet.gso_type == 0).then(|| vec![bytes.clone()]);
        return whole.ok_or_else(|| "cut without a checksum".to_owned());
    }
    let at = transport(bytes)?;
    if (usize::from(vnet.csum_start), vnet.csum_offset) != (at, 16) || bytes.len() < at + 20 {
        return Err(format!("the checksum is not at {}", vnet.csum_start));
    }
    if word(bytes, at + 16) != pseudo(bytes, bytes.len() - at) {
        return Err("a partial checksum that is not the pseudo-header's".to_owned());
    }
    let header = at + usize::from(bytes[at + 12] >> 4) * 4;
    if vnet.gso_type == 0 {
        let mut whole = bytes.clone();
        seal(&mut whole)?;
        return Ok(vec![whole]);
    }
    let (is_v4, size) = (bytes[0] >> 4 == 4, usize::from(vnet.gso_size));
    if vnet.gso_type & 0x7f != if is_v4 { 1 } else { 4 } || size == 0 || usize::from(vnet.hdr_len) != header {
        return Err(format!("{vnet:?} does not fit a header of {header} bytes"));
    }
    let payload = bytes.get(header..).ok_or("no room for the header")?;
    let flags = bytes[at + 13];
    if payload.len() <= size || flags & (flag::SYN | flag::RST | flag::URG) != 0 {
        return Err(format!("a super-packet of {} bytes, flags {flags:x}", payload.len()));
    }
    let n = payload.len().div_ceil(size);
    let mut pieces = Vec::new();
    for (i, part) in payload.chunks(size).enumerate() {
        let mut piece = [&bytes[..header], part].concat();
        let len = if is_v4 { piece.len() } else { piece.len() - 40 } as u16;
        let place = if is_v4 { 2 } else { 4 };
        piece[place..place + 2].copy_from_slice(&len.to_be_bytes());
        let seq = long(bytes, at + 4).wrapping_add((i * size) as u32);
        piece[at + 4..at + 8].copy_from_slice(&seq.to_be_bytes());
        if i + 1 < n {
            piece[at + 13] &= !(flag::FIN | flag::PSH);
        }
        if i > 0 {
            piece[at + 13] &= !flag::CWR;
        }
        seal(&mut piece)?;
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Record of all input, to check the output.
#[derive(Debug, Default)]
pub(crate) struct InputRecord {
    /// Digests of whole units, by the side they came from.
    units: [BTreeSet<u64>; 2],
    /// Acknowledgment numbers between two ports, by the side they came from.
    acks: [BTreeMap<(u16, u16), BTreeSet<u32>>; 2],
    /// Number of edited units, and of their packets.
    pub(crate) edited: (u64, u64),
}

fn digest(wire: &Wire) -> u64 {
    let v = &wire.vnet;
    let vnet = [u64::from(v.flags), u64::from(v.gso_type), u64::from(v.gso_size), u64::from(v.csum_start)];
    let bytes = wire.bytes.iter().map(|b| u64::from(*b));
    vnet.into_iter()
        .chain(bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, x| (hash ^ x).wrapping_mul(0x0100_0000_01b3))
}

impl InputRecord {
    /// Records a unit that comes in.
    pub(crate) fn note(&mut self, side: usize, wire: &Wire) {
        self.units[side].insert(digest(wire));
        for seg in cut(wire).into_iter().flatten().filter_map(|p| read(&p).ok()) {
            if seg.has(flag::ACK) {
                self.acks[side].entry((seg.sport, seg.dport)).or_default().insert(seg.ack);
            }
        }
    }

    /// Checks a unit that leaves from `side`: unchanged, or as a strict receiver accepts. Returns its
    /// packets.
    pub(crate) fn check(&mut self, side: usize, wire: &Wire) -> Result<Vec<Vec<u8>>, String> {
        if self.units[1 - side].contains(&digest(wire)) {
            return Ok(cut(wire).unwrap_or_default());
        }
        let packets = cut(wire)?;
        self.edited.0 += 1;
        for packet in &packets {
            self.edited.1 += 1;
            let seg = read(packet)?;
            if seg.payload != stream(seg.sport, seg.dport, seg.first(), seg.payload.len()) {
                return Err(format!("bytes that nobody sent at {}: {seg:?}", seg.first()));
            }
            if seg.has(flag::ACK) && !self.was_acknowledged(1 - side, &seg) {
                return Err(format!("acknowledges what was not: {seg:?}"));
            }
            // the gateway may add an option to a SYN with data
            if packet.len() > if seg.has(flag::SYN) { 1504 } else { 1500 } {
                return Err(format!("a packet of {} bytes", packet.len()));
            }
        }
        Ok(packets)
    }

    fn was_acknowledged(&self, side: usize, seg: &Seg) -> bool {
        let Some(acks) = self.acks[side].get(&(seg.sport, seg.dport)) else { return false };
        let (from, end) = (seg.ack, seg.ack.wrapping_add(BEHIND));
        if from < end {
            acks.range(from..end).next().is_some()
        } else {
            acks.range(from..).next().is_some() || acks.range(..end).next().is_some()
        }
    }
}
