//! UDP datagrams before and after a box: which it changed, and whether their checksums are right.

use crate::Outcome;
use crate::capture::packets;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Length of a UDP header, and its protocol number.
const HEADER: usize = 8;
const UDP: u8 = 17;
/// The end of a client's first datagrams if it uses SCONE.
const HINT: [u8; 2] = [0xC8, 0x13];
/// What a network element may change in a SCONE packet, after the UDP header: the signal.
const SIGNAL: [u8; 2] = [0x3F, 0x80];

/// A captured UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Datagram {
    /// Source and destination address.
    ends: Vec<u8>,
    /// UDP header and payload.
    udp: Vec<u8>,
}

/// What a box did to the datagrams of a flow.
#[derive(Debug)]
pub struct Changes {
    /// Datagrams that passed.
    pub passed: usize,
    /// Those that end as the first ones of a client that uses SCONE.
    pub hints: usize,
    /// Those of which the signal and the checksum changed, before and after.
    pub changed: Vec<[Datagram; 2]>,
}

impl Datagram {
    fn of(ip: &[u8]) -> Option<Self> {
        let half = |at: usize| Some(usize::from(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?])));
        let (ends, protocol, head) = match ip.first()? >> 4 {
            4 => (ip.get(12..20)?, *ip.get(9)?, usize::from(ip.first()? & 15) * 4),
            6 => (ip.get(8..40)?, *ip.get(6)?, 40),
            _ => return None,
        };
        let udp = ip.get(head..head + half(head + 4)?)?;
        let is_udp = protocol == UDP && udp.len() >= HEADER;
        is_udp.then(|| Self { ends: ends.to_vec(), udp: udp.to_vec() })
    }

    /// Its payload.
    pub fn payload(&self) -> &[u8] {
        self.udp.get(HEADER..).unwrap_or_default()
    }

    /// True if its checksum is right (RFC 768); a datagram without one is not.
    pub fn is_sound(&self) -> bool {
        let words = |bytes: &[u8]| -> u64 {
            bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |low| u64::from(*low))).sum()
        };
        let mut sum = words(&self.ends) + words(&self.udp) + u64::from(UDP) + self.udp.len() as u64;
        while sum > 0xFFFF {
            sum = (sum >> 16) + (sum & 0xFFFF);
        }
        sum == 0xFFFF && self.udp[6..HEADER] != [0, 0]
    }

    /// Itself without what a network element may change.
    fn unsigned(&self) -> Self {
        let mut udp = self.udp.clone();
        udp[6..HEADER].fill(0);
        for (byte, mask) in udp.iter_mut().skip(HEADER).zip(SIGNAL) {
            *byte &= !mask;
        }
        Self { ends: self.ends.clone(), udp }
    }
}

/// The UDP datagrams of a capture. All must be whole.
pub fn read(path: &Path) -> Outcome<Vec<Datagram>> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let all = packets(&bytes).ok_or_else(|| format!("{}: not a capture with nanoseconds", path.display()))?;
    let whole = |(_, ip): &(u64, &[u8])| Datagram::of(ip).ok_or("a captured packet is no whole datagram");
    all.iter().map(|packet| whole(packet).map_err(str::to_owned)).collect()
}

/// Compares the datagrams on the two sides of a box, in any order. An error if one was lost or made, or if
/// anything else changed than a signal.
pub fn compare(one: &[Datagram], other: &[Datagram]) -> Outcome<Changes> {
    let mut pairs: BTreeMap<Datagram, [Vec<&Datagram>; 2]> = BTreeMap::new();
    for (side, all) in [one, other].into_iter().enumerate() {
        for datagram in all {
            pairs.entry(datagram.unsigned()).or_default()[side].push(datagram);
        }
    }
    let hints = one.iter().filter(|datagram| datagram.udp.ends_with(&HINT)).count();
    let mut changes = Changes { passed: one.len(), hints, changed: Vec::new() };
    for (datagram, mut sides) in pairs {
        if sides[0].len() != sides[1].len() {
            let start = &datagram.payload()[..datagram.payload().len().min(8)];
            let numbers = [sides[0].len(), sides[1].len()];
            let len = datagram.udp.len();
            return Err(format!("{numbers:?} datagrams of {len} B that begin with {start:02x?}"));
        }
        for side in &mut sides {
            side.sort();
        }
        let both = sides[0].iter().zip(&sides[1]).filter(|(before, after)| before != after);
        changes.changed.extend(both.map(|(before, after)| [(*before).clone(), (*after).clone()]));
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram in IPv4 with a right checksum.
    fn datagram(payload: &[u8]) -> Datagram {
        let len = (HEADER + payload.len()) as u8;
        let udp = [&[0x11, 0x51, 0, 9, 0, len, 0, 1], payload].concat();
        let mut datagram = Datagram { ends: vec![10, 0, 0, 1, 10, 0, 0, 2], udp };
        let sums = (1..=u16::MAX).map(u16::to_be_bytes);
        for sum in sums {
            datagram.udp[6..HEADER].copy_from_slice(&sum);
            if datagram.is_sound() {
                return datagram;
            }
        }
        panic!("no checksum is right");
    }

    #[test]
    fn a_datagram_is_found_in_a_packet_and_its_checksum_is_judged() {
        // RFC 768: 0a00+0001+0a00+0002 + 0011+000b + 1151+0009+000b + c813+4000 = 12d97, and ~2d98 = d267
        let sound = datagram(&[0xC8, 0x13, 0x40]);
        assert_eq!(sound.udp[6..HEADER], [0xD2, 0x67]);
        let mut ip = vec![0x45, 0, 0, 31, 0, 0, 0, 0, 64, UDP, 0, 0];
        ip.extend(&sound.ends);
        ip.extend(&sound.udp);
        assert_eq!(Datagram::of(&ip), Some(sound.clone()));
        assert_eq!(Datagram::of(&ip[..30]), None);
        ip[9] = 6;
        assert_eq!(Datagram::of(&ip), None);
        let mut wrong = sound;
        wrong.udp[8] ^= 1;
        assert!(!wrong.is_sound());
        wrong.udp[6..HEADER].fill(0);
        assert!(!wrong.is_sound());
    }

    #[test]
    fn a_lowered_signal_is_a_change_and_anything_else_an_error() {
        let asked = datagram(&[0xFF, 0xEF, 0x7D, 0xC0, 0xFD, 0, 0, 0x40]);
        let told = datagram(&[0xD7, 0x6F, 0x7D, 0xC0, 0xFD, 0, 0, 0x40]);
        let plain = datagram(&[0x40, 0xC8, 0x13]);
        let changes = compare(&[asked.clone(), plain.clone()], &[plain.clone(), told.clone()]).unwrap();
        assert_eq!((changes.passed, changes.hints), (2, 1));
        assert_eq!(changes.changed, [[asked.clone(), told]]);
        let same = compare(&[plain.clone(), asked.clone()], &[asked.clone(), plain.clone()]).unwrap();
        assert!(same.changed.is_empty());
        let other = datagram(&[0xFF, 0xEF, 0x7D, 0xC0, 0xFD, 0, 0, 0x41]);
        for after in [vec![plain.clone()], vec![plain.clone(), other], vec![plain; 2]] {
            assert!(compare(&[asked.clone(), after[0].clone()], &after).is_err());
        }
    }
}
