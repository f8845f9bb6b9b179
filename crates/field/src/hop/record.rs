//! The record of each packet on the hop: when it entered, what became of it, and its headers; and captures
//! of both ends of the hop, written from the records.
//!
//! The hop itself writes the record, so packets at both ends match exactly and none is missing under load.

use super::direction::Fate;
use std::io::{self, Write};

/// Bytes kept of a packet: an IPv4 header without options and the longest TCP header.
pub const CAPTURED_BYTES: usize = 80;

/// One packet.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it entered the hop, ns since the start.
    pub at: u64,
    /// True from the gateway to the receiver.
    pub forward: bool,
    /// What the hop did with it.
    pub fate: Fate,
    /// When it was due to arrive, ns; 0 until known.
    pub due: u64,
    /// When its duplicate arrived, ns.
    pub duplicate_at: Option<u64>,
    /// Bytes queued ahead of it when it entered.
    pub queued_before: u32,
    /// Length, bytes, including the IP header.
    pub size: u32,
    /// Its first bytes, padded with zeros.
    pub head: [u8; CAPTURED_BYTES],
}

impl Record {
    /// The record of a packet that enters.
    pub fn new(at: u64, forward: bool, before: u64, bytes: &[u8]) -> Self {
        let mut head = [0; CAPTURED_BYTES];
        let kept = bytes.len().min(CAPTURED_BYTES);
        head[..kept].copy_from_slice(&bytes[..kept]);
        let (queued_before, size) = (before as u32, bytes.len() as u32);
        Self { at, forward, fate: Fate::Inside, due: 0, duplicate_at: None, queued_before, size, head }
    }

    /// The kept bytes of the packet.
    pub fn head(&self) -> &[u8] {
        &self.head[..CAPTURED_BYTES.min(self.size as usize)]
    }
}

/// A list of records in chunks: growing a single vector would copy it and stall the hop.
#[derive(Debug, Default)]
pub struct Log(Vec<Vec<Record>>);

impl Log {
    const PIECE: usize = 4096;

    /// Adds a record and returns its number.
    pub fn add(&mut self, record: Record) -> usize {
        if self.0.last().is_none_or(|piece| piece.len() == Self::PIECE) {
            self.0.push(Vec::with_capacity(Self::PIECE));
        }
        let pieces = self.0.len();
        let Some(piece) = self.0.last_mut() else { return 0 };
        piece.push(record);
        (pieces - 1) * Self::PIECE + piece.len() - 1
    }

    /// The record with this number.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Record> {
        self.0.get_mut(number / Self::PIECE)?.get_mut(number % Self::PIECE)
    }

    /// Sets the fate of the record with this number.
    pub fn set_fate(&mut self, number: usize, fate: Fate) {
        if let Some(record) = self.get_mut(number) {
            record.fate = fate;
        }
    }

    /// Returns all records in order.
    pub fn into_all(self) -> Vec<Record> {
        self.0.into_iter().flatten().collect()
    }
}

/// Writes a capture of the gateway's or the receiver's end (pcap with nanoseconds, raw IP).
///
/// # Errors
/// If writing fails.
pub fn write_pcap(records: &[Record], at_gateway: bool, to: &mut impl Write) -> io::Result<()> {
    let mut packets: Vec<(u64, &Record)> = Vec::with_capacity(records.len());
    for record in records {
        if record.forward == at_gateway {
            packets.push((record.at, record));
        } else {
            packets.extend(
                record.fate.delivered_at().into_iter().chain(record.duplicate_at).map(|t| (t, record)),
            );
        }
    }
    packets.sort_by_key(|p| p.0);
    let words =
        |to: &mut dyn Write, words: &[u32]| words.iter().try_for_each(|w| to.write_all(&w.to_le_bytes()));
    // nanosecond magic, version 2.4, time zone, accuracy, snapshot length, LINKTYPE_RAW
    words(to, &[0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 101])?;
    for (t, record) in packets {
        let head = record.head();
        words(to, &[(t / 1_000_000_000) as u32, (t % 1_000_000_000) as u32, head.len() as u32, record.size])?;
        to.write_all(head)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_numbers() {
        let mut log = Log::default();
        for t in 0..10_000 {
            assert_eq!(log.add(Record::new(t, true, 0, &[])), t as usize);
        }
        assert_eq!((log.get_mut(4096).unwrap().at, log.get_mut(9_999).unwrap().at), (4096, 9_999));
        assert!(log.get_mut(10_000).is_none() && log.into_all().is_sorted_by_key(|r| r.at));
    }

    #[test]
    fn both_ends_have_what_passed_them() {
        let record = |at, forward, fate| Record { fate, ..Record::new(at, forward, 0, &[0x45; 1500]) };
        let records = [
            record(1, true, Fate::Delivered(100)),
            record(2, true, Fate::Lost),
            record(3, false, Fate::Delivered(50)),
            Record { duplicate_at: Some(101), ..record(4, true, Fate::Delivered(99)) },
        ];
        let times = |at_gateway| {
            let mut file = Vec::new();
            write_pcap(&records, at_gateway, &mut file).unwrap();
            let packets = file[24..].chunks(16 + CAPTURED_BYTES);
            packets.map(|p| u32::from_le_bytes([p[4], p[5], p[6], p[7]])).collect::<Vec<_>>()
        };
        assert_eq!(times(true), [1, 2, 4, 50]);
        assert_eq!(times(false), [3, 99, 100, 101]);
    }
}
