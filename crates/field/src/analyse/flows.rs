//! Reconstructs the connections of a record: the data each sent over the hop, as stream offsets, and the
//! acknowledgments as seen at both ends of the hop.

use super::header::Segment;
use super::ranges::Ranges;
use crate::hop::direction::Fate;
use crate::hop::record::Record;
use std::collections::BTreeMap;

/// A data packet that entered the hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// When it entered the hop, ns.
    pub at: u64,
    /// Stream offset of its first byte.
    pub begin: u64,
    /// Stream offset after its last byte.
    pub end: u64,
    /// What the hop did with it.
    pub fate: Fate,
    /// Bytes queued in the hop ahead of it.
    pub before: u32,
    /// True if it carries bytes that were not sent before: a first transmission.
    pub is_first: bool,
    /// A first transmission sent after bytes with a higher stream offset: out of order.
    pub is_late: bool,
}

impl SentPacket {
    /// True if the hop lost it, at random or because the queue was full.
    pub const fn is_lost(&self) -> bool {
        matches!(self.fate, Fate::Lost | Fate::QueueFull)
    }
}

/// An acknowledgment that arrived at the gateway's end of the hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckAtGateway {
    /// Arrival at the gateway's end, ns.
    pub at: u64,
    /// When it left the receiver, ns.
    pub left: u64,
    /// Cumulative acknowledgment: offset of the first missing byte.
    pub ack: u64,
    /// Its SACK blocks, as offsets.
    pub blocks: Vec<(u64, u64)>,
}

/// A connection with data towards the receiver.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Address of the receiver.
    pub to: u32,
    /// Its data packets in time order.
    pub sent: Vec<SentPacket>,
    /// Acknowledgments that arrived at the gateway's end, in time order.
    pub acks_at_gateway: Vec<AckAtGateway>,
    /// (time, bytes acknowledged) when the receiver sent the acknowledgment, even if the hop lost it.
    pub progress: Vec<(u64, u64)>,
    base: u32,
    highest: u64,
    sent_ranges: Ranges,
}

type Key = ((u32, u16), (u32, u16));

/// Returns all connections that sent data towards the receiver.
pub fn flows(records: &[Record]) -> Vec<Flow> {
    let mut order: Vec<&Record> = records.iter().collect();
    order.sort_by_key(|r| r.at);
    let mut flows: BTreeMap<Key, Flow> = BTreeMap::new();
    for record in order {
        let Some(segment) = Segment::parse(record.head(), record.size) else { continue };
        if record.forward {
            let start = segment.seq.wrapping_add(u32::from(segment.is_syn));
            let new = || Flow { to: segment.to.0, base: start, ..Flow::default() };
            let flow = flows.entry((segment.from, segment.to)).or_insert_with(new);
            flow.forward(record, &segment, start);
        } else if let Some(flow) = flows.get_mut(&(segment.to, segment.from)) {
            flow.backward(record, &segment);
        }
    }
    let mut all: Vec<Flow> = flows.into_values().filter(|f| !f.sent.is_empty()).collect();
    for flow in &mut all {
        flow.acks_at_gateway.sort_by_key(|s| s.at);
    }
    all
}

impl Flow {
    /// Stream offset of a sequence number near the highest byte sent; `None` if before the start.
    fn stream_offset(&self, seq: u32) -> Option<u64> {
        let near = self.base.wrapping_add(self.highest as u32);
        self.highest.checked_add_signed(i64::from(seq.wrapping_sub(near) as i32))
    }

    fn forward(&mut self, record: &Record, segment: &Segment, start: u32) {
        let Some(begin) = self.stream_offset(start).filter(|_| segment.len > 0) else { return };
        let end = begin + u64::from(segment.len);
        let new = self.sent_ranges.add(begin, end);
        let is_late = new.first().is_some_and(|n| n.0 < self.highest);
        self.highest = self.highest.max(end);
        self.sent.push(SentPacket {
            at: record.at,
            begin,
            end,
            fate: record.fate,
            before: record.queued_before,
            is_first: !new.is_empty(),
            is_late,
        });
    }

    fn backward(&mut self, record: &Record, segment: &Segment) {
        let sent = |seq| self.stream_offset(seq).filter(|place| *place <= self.highest);
        // the FIN takes a sequence number but is not data
        let ack = self.stream_offset(segment.ack).filter(|place| *place <= self.highest + 1);
        let Some(ack) = ack.map(|ack| ack.min(self.highest)).filter(|_| segment.is_ack && !segment.is_syn)
        else {
            return;
        };
        let blocks = segment.blocks.iter();
        let blocks: Vec<_> = blocks
            .filter_map(|&(left, right)| Some((sent(left)?, sent(right)?)).filter(|b| b.0 < b.1))
            .collect();
        if self.progress.last().is_none_or(|p| ack > p.1) {
            self.progress.push((record.at, ack));
        }
        if let Some(at) = record.fate.delivered_at() {
            self.acks_at_gateway.push(AckAtGateway { at, left: record.at, ack, blocks });
        }
    }

    /// Bytes that the receiver had acknowledged at time `t`, ns.
    pub fn acked(&self, t: u64) -> u64 {
        let n = self.progress.partition_point(|p| p.0 <= t);
        n.checked_sub(1).map_or(0, |last| self.progress[last].1)
    }

    /// Acknowledged bytes per time in `from..to` (ns), bit/s.
    pub fn goodput(&self, from: u64, to: u64) -> f64 {
        (self.acked(to) - self.acked(from)) as f64 * 8e9 / to.saturating_sub(from).max(1) as f64
    }

    /// Seconds from the first data segment until the receiver acknowledged `bytes`; `None` if it never did.
    pub fn time_for(&self, bytes: u64) -> Option<f64> {
        let first = self.sent.first()?.at;
        let n = self.progress.partition_point(|p| p.1 < bytes);
        Some((self.progress.get(n)?.0.saturating_sub(first)) as f64 / 1e9)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::analyse::header::tests::packet;

    /// First sequence number of the records, in units of 1000 B; chosen so that sequence numbers wrap.
    pub(crate) const BASE: u32 = u32::MAX - 2_500;

    pub(crate) fn data(at: u64, n: u32, fate: Fate) -> Record {
        let (head, size) = packet(true, BASE.wrapping_add(n * 1000), 1, 1000, &[]);
        Record { fate, size, ..Record::new(at, true, 0, &head) }
    }

    pub(crate) fn ack(at: u64, out: u64, n: u32, blocks: &[(u32, u32)]) -> Record {
        let seq = |n: u32| BASE.wrapping_add(n * 1000);
        let blocks: Vec<_> = blocks.iter().map(|b| (seq(b.0), seq(b.1))).collect();
        let (head, size) = packet(false, 1, seq(n), 0, &blocks);
        Record { fate: Fate::Delivered(out), size, ..Record::new(at, false, 0, &head) }
    }

    #[test]
    fn first_transmissions_are_told_from_others_and_their_order_is_judged() {
        let out = Fate::Delivered(9);
        let records =
            [data(1, 0, out), data(2, 2, out), data(3, 1, out), data(4, 1, out), data(5, 3, Fate::Lost)];
        let all = flows(&records);
        let told: Vec<_> =
            all[0].sent.iter().map(|s| (s.begin, s.is_first, s.is_late, s.is_lost())).collect();
        assert_eq!(
            told,
            [
                (0, true, false, false),
                (2000, true, false, false),
                (1000, true, true, false),
                (1000, false, false, false),
                (3000, true, false, true)
            ]
        );
    }

    #[test]
    fn acknowledgments_make_progress_and_lies_do_not() {
        let out = Fate::Delivered(5);
        let mut records: Vec<Record> = (0..4).map(|n| data(u64::from(n), n, out)).collect();
        records.push(ack(10, 20, 2, &[(3, 4)]));
        records.push(ack(11, 19, 3, &[]));
        // an acknowledgment of data never sent, and a SACK block with its edges swapped
        records.push(ack(12, 22, 9, &[]));
        records.push(ack(13, 23, 3, &[(4, 3), (3, 70)]));
        let flow = &flows(&records)[0];
        assert_eq!(flow.progress, [(10, 2000), (11, 3000)]);
        assert_eq!(flow.acks_at_gateway.iter().map(|s| s.at).collect::<Vec<_>>(), [19, 20, 23]);
        assert_eq!(
            (flow.acks_at_gateway[1].blocks.as_slice(), flow.acks_at_gateway[2].blocks.len()),
            (&[(3000, 4000)][..], 0)
        );
        assert_eq!((flow.acked(9), flow.acked(10), flow.acked(99)), (0, 2000, 3000));
        assert_eq!((flow.time_for(2500), flow.time_for(3001)), (Some(11e-9), None));
        assert!((flow.goodput(10, 1_000_000_010) - 8000.0).abs() < 1e-6);
    }

    /// The last acknowledgment covers the FIN too.
    #[test]
    fn the_end_of_a_transfer_is_seen() {
        let mut last = ack(9, 10, 1, &[]);
        // one more than the data
        last.head[28..32].copy_from_slice(&BASE.wrapping_add(1001).to_be_bytes());
        let flow = &flows(&[data(1, 0, Fate::Delivered(5)), last])[0];
        assert_eq!((flow.acked(9), flow.time_for(1000)), (1000, Some(8e-9)));
    }

    #[test]
    fn rubbish_is_no_flow() {
        let mut records = vec![Record::new(1, true, 0, &[]), Record::new(1, false, 0, &[0x45; 3])];
        records.push(Record::new(2, true, 0, &[0xff; 90]));
        records.push(ack(3, 4, 1, &[]));
        assert!(flows(&records).is_empty());
    }
}
