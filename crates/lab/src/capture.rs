//! Reads captures of tcpdump with `--time-stamp-precision=nano`: kernel timestamps of real packets.

use crate::Outcome;
use std::fs;
use std::path::Path;

/// Magic number of a capture with nanosecond timestamps in this machine's byte order.
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Length of a record header: seconds, nanoseconds, bytes captured, packet length.
const RECORD: usize = 16;
/// Length of the file header.
const HEAD: usize = 24;
/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// A captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Timestamp, ns since 1970.
    pub at_ns: u64,
    /// Total length field of the IP header, bytes.
    pub ip_len: usize,
    /// Kind of the packet.
    pub kind: Kind,
}

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ICMP echo request: identifier and sequence number.
    EchoRequest(u16, u16),
    /// ICMP echo reply: identifier and sequence number.
    EchoReply(u16, u16),
    /// UDP datagram to this port.
    Udp(u16),
    /// Something else.
    Other,
}

/// Reads all packets of a file.
pub fn read(path: &Path) -> Outcome<Vec<CapturedPacket>> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&bytes).ok_or_else(|| format!("{}: not a capture with nanoseconds", path.display()))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn parse(bytes: &[u8]) -> Option<Vec<CapturedPacket>> {
    Some(packets(bytes)?.into_iter().filter_map(|(at_ns, ip)| packet(at_ns, ip)).collect())
}

/// The IP packets of a capture, each with its timestamp in ns since 1970.
pub(crate) fn packets(bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    if word(bytes, 0)? != NANOSECONDS {
        return None;
    }
    let mut seen = Vec::new();
    let mut at = HEAD;
    // the last record may be truncated when tcpdump was killed
    while let (Some(seconds), Some(ns), Some(kept)) =
        (word(bytes, at), word(bytes, at + 4), word(bytes, at + 8))
    {
        let Some(frame) = bytes.get(at + RECORD..at + RECORD + kept as usize) else { break };
        let at_ns = u64::from(seconds) * 1_000_000_000 + u64::from(ns);
        seen.extend(frame.get(ETHERNET..).map(|ip| (at_ns, ip)));
        at += RECORD + kept as usize;
    }
    Some(seen)
}

fn packet(at_ns: u64, ip: &[u8]) -> Option<CapturedPacket> {
    let half = |at: usize| Some(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?]));
    let (ip_len, protocol, head) = match ip.first()? >> 4 {
        4 => (usize::from(half(2)?), *ip.get(9)?, usize::from(ip.first()? & 15) * 4),
        6 => (usize::from(half(4)?) + 40, *ip.get(6)?, 40),
        _ => return None,
    };
    let echo = || Some((half(head + 4)?, half(head + 6)?));
    let kind = match (protocol, ip.get(head)?) {
        (1, 8) | (58, 128) => echo().map(|(id, n)| Kind::EchoRequest(id, n)),
        (1, 0) | (58, 129) => echo().map(|(id, n)| Kind::EchoReply(id, n)),
        (17, _) => half(head + 2).map(Kind::Udp),
        _ => None,
    };
    Some(CapturedPacket { at_ns, ip_len, kind: kind.unwrap_or(Kind::Other) })
}

/// Round-trip times of echo requests, ms, and the number of requests.
pub fn round_trips(seen: &[CapturedPacket]) -> (Vec<f64>, usize) {
    let mut asked = std::collections::BTreeMap::new();
    let (mut times, mut requests) = (Vec::new(), 0);
    for packet in seen {
        match packet.kind {
            Kind::EchoRequest(id, n) => {
                requests += 1;
                asked.insert((id, n), packet.at_ns);
            }
            Kind::EchoReply(id, n) => {
                let sent = asked.remove(&(id, n));
                times.extend(sent.map(|s| packet.at_ns.saturating_sub(s) as f64 / 1e6));
            }
            _ => {}
        }
    }
    (times, requests)
}

/// IP rate, bit/s, from the first to the last datagram, starting `skip` ns after the first packet. The bits
/// of the first datagram do not count.
pub fn rate(seen: &[CapturedPacket], skip: u64) -> Option<f64> {
    let is_datagram = |s: &&CapturedPacket| matches!(s.kind, Kind::Udp(_));
    let start = seen.iter().find(is_datagram)?.at_ns + skip;
    let mut steady = seen.iter().filter(|s| s.at_ns >= start);
    let first = steady.next()?;
    let bits: u64 = steady.clone().map(|s| s.ip_len as u64 * 8).sum();
    let last = steady.next_back()?;
    Some(bits as f64 / ((last.at_ns - first.at_ns) as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let mut bytes = [&NANOSECONDS.to_ne_bytes()[..], &[0; HEAD - 4]].concat();
        for (s, ns, ip) in packets {
            let len = (ip.len() + ETHERNET) as u32;
            for word in [*s, *ns, len, len] {
                bytes.extend(word.to_ne_bytes());
            }
            bytes.extend([0; ETHERNET]);
            bytes.extend(*ip);
        }
        bytes
    }

    fn echo(kind: u8, n: u8) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 84, 0, 0, 0, 0, 64, 1];
        ip.resize(20, 0);
        ip.extend([kind, 0, 0, 0, 0, 9, 0, n]);
        ip
    }

    #[test]
    fn requests_and_replies_are_paired() {
        let bytes = file(&[
            (1, 0, &echo(8, 1)),
            (1, 500, &echo(8, 2)),
            (1, 550_000_000, &echo(0, 1)),
            (9, 0, &echo(0, 7)),
            (9, 0, &[0x00]),
        ]);
        let seen = parse(&bytes).unwrap();
        assert_eq!(
            seen[0],
            CapturedPacket { at_ns: 1_000_000_000, ip_len: 84, kind: Kind::EchoRequest(9, 1) }
        );
        let (times, requests) = round_trips(&seen);
        assert_eq!((times.len(), requests), (1, 2));
        assert!((times[0] - 550.0).abs() < 1e-9);
        // a file truncated anywhere is read up to there
        assert!((HEAD..bytes.len()).all(|n| parse(&bytes[..n]).is_some()));
        assert!(parse(&bytes[1..]).is_none() && parse(&[]).is_none());
    }

    #[test]
    fn a_rate_is_what_came_after_the_first() {
        let packet = |at_ns| CapturedPacket { at_ns, ip_len: 1250, kind: Kind::Udp(5201) };
        let seen: Vec<CapturedPacket> = (0..=100).map(|i| packet(1_000_000 * i)).collect();
        assert!((rate(&seen, 10_000_000).unwrap() - 1e7).abs() < 1.0);
        assert_eq!(rate(&seen[..1], 0), None);
    }
}
