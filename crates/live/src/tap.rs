//! Captures packets at chosen directions of links: before the queue, after the link, and dropped ones.
//!
//! The tap listens to the trace on the data thread and must not wait for a disk: it copies packets into
//! chunks of memory, which another thread writes and returns. If no chunk is free, packets are only counted.
//! The tap completes offloaded checksums and records a super-packet that passes a link whole as its wire
//! packets.

use crate::relay::Names;
use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Duration, Instant, NodeId, Packet};
use bentpipe_driver::{HEADER_SPACE, LiveNetwork, Store, emit};
use bentpipe_scenario::CaptureSpec;
use bentpipe_wire::offload::complete;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes of a chunk, which may be exceeded by one super-packet.
const CHUNK: usize = 1 << 20;
/// Packets of a chunk.
const RECORDS: usize = 1 << 13;
/// Number of chunks, for all captures together: 32 MB, a quarter of a second at 1 Gbit/s.
const CHUNKS: usize = 32;
/// A chunk is handed over when it is full, or at the first packet after this time.
const PATIENCE: Duration = Duration::from_millis(200);

/// A packet in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time on the run's clock.
    pub at: Instant,
    /// Index of the capture in the scenario.
    pub capture: usize,
    /// Where the packet was seen: 0 before the queue, 1 after the link, 2 dropped.
    pub point: usize,
    /// Cause of a drop.
    pub cause: Option<&'static str>,
    /// Its length on the wire.
    pub original: usize,
    start: usize,
    end: usize,
}

/// Packets on their way to a file.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    records: Vec<Record>,
    /// Packets not captured for lack of chunks since the last chunk, by capture and point.
    pub lost: Vec<[u64; 3]>,
}

impl Chunk {
    /// Its packets with their bytes, in the order in which they were seen.
    pub fn packets(&self) -> impl Iterator<Item = (&Record, &[u8])> {
        self.records.iter().map(|r| (r, self.bytes.get(r.start..r.end).unwrap_or_default()))
    }
}

/// The tap's side of the channel to a writer.
#[derive(Debug)]
pub struct ChunkSender {
    full: SyncSender<Chunk>,
    empty: Receiver<Chunk>,
}

/// The writer's side of the channel.
#[derive(Debug)]
pub struct ChunkReceiver {
    full: Receiver<Chunk>,
    empty: SyncSender<Chunk>,
}

/// Creates a channel from a tap to a writer, with all the memory it will ever use.
pub fn chunk_channel() -> (ChunkSender, ChunkReceiver) {
    let (to_writer, full) = sync_channel(CHUNKS + 1);
    let (to_tap, empty) = sync_channel(CHUNKS + 1);
    for _ in 0..CHUNKS {
        // the channel has room for all chunks
        let _ = to_tap.try_send(Chunk { bytes: Vec::with_capacity(CHUNK), ..Chunk::default() });
    }
    (ChunkSender { full: to_writer, empty }, ChunkReceiver { full, empty: to_tap })
}

impl ChunkReceiver {
    /// Waits for packets; `None` when the tap is gone and everything was read.
    pub fn next_chunk(&self) -> Option<Chunk> {
        self.full.recv().ok()
    }

    /// Returns a written chunk to the tap.
    pub fn done(&self, mut chunk: Chunk) {
        chunk.bytes.clear();
        chunk.records.clear();
        chunk.lost.clear();
        // fails only if the tap is gone
        let _ = self.empty.try_send(chunk);
    }
}

/// Point and cause, as in a [`Record`].
type Seen = (usize, Option<&'static str>);

/// Captures from the trace of a live network. Dropping it hands over the remaining packets.
#[derive(Debug)]
pub struct Tap {
    store: Rc<RefCell<Store>>,
    /// The captures, and the nodes of their links.
    wanted: Vec<(CaptureSpec, NodeId)>,
    outlet: ChunkSender,
    chunk: Chunk,
    /// When the first packet of the chunk was seen.
    since: Instant,
    lost: Vec<[u64; 3]>,
}

impl Tap {
    /// Records what `captures` ask for. A capture until the scenario's `end` lasts until the run ends.
    pub fn new(
        net: &LiveNetwork,
        names: &Names,
        captures: &[CaptureSpec],
        end: Instant,
        outlet: ChunkSender,
    ) -> Self {
        let links = names.links();
        let wanted = |spec: &CaptureSpec| {
            let node = links.get(spec.link.index()).map_or(NodeId(u32::MAX), |(_, node)| *node);
            let to = if spec.to >= end { Instant::NEVER } else { spec.to };
            (CaptureSpec { to, ..*spec }, node)
        };
        Self {
            store: Rc::clone(&net.store),
            wanted: captures.iter().map(wanted).collect(),
            chunk: outlet.empty.try_recv().unwrap_or_default(),
            outlet,
            since: Instant::ZERO,
            lost: vec![[0; 3]; captures.len()],
        }
    }

    /// Makes room for another packet; false if there is none.
    fn make_room(&mut self, now: Instant) -> bool {
        let Chunk { bytes, records, .. } = &self.chunk;
        let full = bytes.len() >= CHUNK || records.len() >= RECORDS;
        let old = !records.is_empty() && now.since(self.since) >= PATIENCE;
        if full || old {
            match self.outlet.empty.try_recv() {
                Ok(next) => self.hand_over(next),
                // the writer is too slow, or gone
                Err(_) => return !full,
            }
        }
        if self.chunk.records.is_empty() {
            self.since = now;
        }
        true
    }

    fn hand_over(&mut self, next: Chunk) {
        let mut chunk = core::mem::replace(&mut self.chunk, next);
        chunk.lost.extend_from_slice(&self.lost);
        self.lost.fill([0; 3]);
        // the channel has room for all chunks; fails only if the writer is gone
        let _ = self.outlet.full.try_send(chunk);
    }

    fn wire_packet(&mut self, capture: usize, at: Instant, packet: &Packet, (point, cause): Seen) {
        if !self.make_room(at) {
            self.lost[capture][point] += 1;
            return;
        }
        let store = self.store.borrow();
        let Some(held) = store.get(packet.body.slot()) else { return };
        let mut header = [0; HEADER_SPACE];
        let part = emit(&held, packet, &mut header);
        let bytes = &mut self.chunk.bytes;
        let start = bytes.len();
        bytes.extend_from_slice(header.get(..part.header_len).unwrap_or_default());
        bytes.extend_from_slice(held.bytes.get(part.payload.clone()).unwrap_or_default());
        bytes.extend_from_slice(part.tail());
        // the checksum covers the whole packet, so truncate it afterwards
        complete(&mut bytes[start..], &part.vnet);
        let original = bytes.len() - start;
        bytes.truncate(start + original.min(self.wanted[capture].0.snap.0 as usize));
        let end = bytes.len();
        self.chunk.records.push(Record { at, capture, point, cause, original, start, end });
    }
}

impl Sink for Tap {
    fn mask(&self) -> Mask {
        if self.wanted.is_empty() { Mask::default() } else { Mask::PACKETS }
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        let (packet, seen): (&Packet, Seen) = match *event {
            Event::Sent(packet) => (packet, (0, None)),
            Event::Delivered(packet) => (packet, (1, None)),
            Event::Dropped(packet, cause) => (packet, (2, Some(cause.key()))),
            Event::RoundTrip { .. } => return,
        };
        for capture in 0..self.wanted.len() {
            let (spec, at) = &self.wanted[capture];
            if *at != node || now < spec.from || now >= spec.to {
                continue;
            }
            if packet.pieces() == 1 {
                self.wire_packet(capture, now, packet, seen);
                continue;
            }
            for piece in 0..packet.pieces() {
                let mut one = packet.clone();
                one.cut_to_segment(piece);
                self.wire_packet(capture, now, &one, seen);
            }
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.hand_over(Chunk::default());
    }
}
