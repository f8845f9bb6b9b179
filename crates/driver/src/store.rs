//! The bytes of the packets in a network: received units, each with the number of packets that refer to it.
//!
//! A packet refers to its bytes by [`bentpipe_base::Body`]: the slot, and the position in its payload.
//! Nothing is copied when a super-packet is cut. Buffers have some thirty sizes ([`buffer_size`]), so that
//! little space is wasted, and are reused, so that a warm run allocates nothing. A unit of the largest size
//! is not copied after reading either: it keeps the buffer it was read into. The store may have a memory
//! limit.

use crate::datagram::DatagramShape;
use crate::parse::TcpOffsets;
use bentpipe_base::{Ecn, Packet, Size};
use bentpipe_gateway::buffer_size;
use bentpipe_os::port::MAX_SUPER;
use bentpipe_wire::offload::{SuperPacket, VnetHeader};
use std::collections::BTreeMap;

/// Bytes of spare buffers kept for each size.
const SPARE: usize = 16 << 20;
/// The smallest buffer, for acknowledgments.
const SMALLEST: usize = buffer_size(0);
/// Share of the limit, as a divisor, that is reserved for the smallest buffers, so that acknowledgments get
/// through when data does not.
const RESERVE: usize = 16;

/// Parsed content of a unit.
#[derive(Clone, Debug, Default)]
pub enum Content {
    /// Not known: the unit leaves as it was received.
    #[default]
    Bytes,
    /// An IP packet: how it is cut, and its ECN field.
    Ip(SuperPacket, Ecn),
    /// A UDP datagram: how it is cut if it is an IP packet, its ECN field, and what else it was.
    Udp(Option<(SuperPacket, Ecn)>, DatagramShape),
    /// A TCP packet: its header, and the offsets of its parts.
    Tcp(Packet, TcpOffsets),
}

/// A unit in the store.
#[derive(Clone, Copy, Debug)]
pub struct StoredUnit<'a> {
    /// Its bytes as received.
    pub bytes: &'a [u8],
    /// Its virtio header.
    pub vnet: &'a VnetHeader,
    /// Its parsed content.
    pub content: &'a Content,
}

#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    len: usize,
    vnet: VnetHeader,
    content: Content,
    holders: u32,
}

/// All units in a network.
#[derive(Debug)]
pub struct Store {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spare: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Buffer into which the next unit is read.
    scratch: Vec<u8>,
    limit: usize,
    /// Bytes of buffers in use.
    in_use: usize,
}

impl Store {
    /// A store for at most `limit` bytes of buffers.
    pub fn new(limit: Size) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            spare: BTreeMap::new(),
            scratch: vec![0; MAX_SUPER],
            limit: usize::try_from(limit.0).unwrap_or(usize::MAX),
            in_use: 0,
        }
    }

    /// The scratch buffer, to read the next unit into.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// Copies `bytes` to the scratch buffer; false if they are too many.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        let place = self.scratch.get_mut(..bytes.len());
        place.map(|place| place.copy_from_slice(bytes)).is_some()
    }

    /// The first `len` bytes of the scratch buffer: the last unit read.
    pub fn read(&self, len: usize) -> &[u8] {
        self.scratch.get(..len).unwrap_or_default()
    }

    /// Stores the first `len` bytes of the scratch buffer for one packet; returns the slot. `None` if there
    /// is no room; then the scratch buffer is unchanged.
    pub fn keep(&mut self, len: usize, vnet: &VnetHeader, content: Content) -> Option<u32> {
        let size = match buffer_size(len) {
            most if most * 8 >= MAX_SUPER * 7 => MAX_SUPER,
            size => size,
        };
        let room = if size == SMALLEST { self.limit } else { self.limit - self.limit / RESERVE };
        if len > size || self.in_use + size > room {
            return None;
        }
        let spare = self.spare.get_mut(&size).and_then(Vec::pop);
        let mut bytes = spare.unwrap_or_else(|| vec![0; size]);
        if size == MAX_SUPER {
            core::mem::swap(&mut bytes, &mut self.scratch);
        } else if let (Some(to), Some(from)) = (bytes.get_mut(..len), self.scratch.get(..len)) {
            to.copy_from_slice(from);
        }
        self.in_use += bytes.len();
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let mut slot = Slot { bytes, len, vnet: *vnet, content, holders: 1 };
        if let Content::Tcp(packet, _) = &mut slot.content {
            packet.body = bentpipe_base::Body::kept(place, 0, packet.body.len);
        }
        self.slots[place as usize] = slot;
        Some(place)
    }

    /// The unit in a slot.
    pub fn get(&self, slot: u32) -> Option<StoredUnit<'_>> {
        let slot = self.slots.get(slot as usize).filter(|slot| slot.holders > 0)?;
        Some(StoredUnit { bytes: slot.bytes.get(..slot.len)?, vnet: &slot.vnet, content: &slot.content })
    }

    /// Adds a packet that refers to the unit in `slot`.
    ///
    /// # Panics
    /// When the slot is empty.
    pub fn hold(&mut self, slot: u32) {
        let slot = self.slots.get_mut(slot as usize).filter(|slot| slot.holders > 0);
        let slot = slot.expect("a copy of something that is held");
        slot.holders += 1;
    }

    /// Removes a packet that refers to the unit in slot `place`; the last one frees it.
    ///
    /// # Panics
    /// When the slot is empty.
    pub fn release(&mut self, place: u32) {
        let slot = self.slots.get_mut(place as usize).filter(|slot| slot.holders > 0);
        let slot = slot.expect("a packet ends once");
        slot.holders -= 1;
        if slot.holders > 0 {
            return;
        }
        let bytes = core::mem::take(&mut slot.bytes);
        self.in_use -= bytes.len();
        let spare = self.spare.entry(bytes.len()).or_default();
        if spare.len() * bytes.len() < SPARE {
            spare.push(bytes);
        }
        self.free.push(place);
    }

    /// Number of units in the store.
    pub const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True if the store is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(store: &mut Store, len: usize, byte: u8) -> Option<u32> {
        store.scratch()[..len].fill(byte);
        store.keep(len, &VnetHeader::default(), Content::Bytes)
    }

    #[test]
    fn bytes_stay_while_somebody_holds_them() {
        let mut store = Store::new(Size(1 << 20));
        let all: Vec<u32> =
            [60, 1500, 9000, 60_000].iter().zip(1..).map(|(n, b)| fill(&mut store, *n, b).unwrap()).collect();
        for (i, off) in all.iter().enumerate() {
            assert!(store.get(*off).unwrap().bytes.iter().all(|b| *b == i as u8 + 1));
        }
        store.hold(all[3]); // a copy of a part
        store.release(all[3]);
        assert_eq!(store.get(all[3]).map(|h| h.bytes.len()), Some(60_000));
        store.release(all[3]);
        assert!(store.get(all[3]).is_none());
        assert_eq!(store.len(), 3);
        // its slot and its buffer are reused
        assert_eq!(fill(&mut store, 58_000, 9), Some(all[3]));
        assert_eq!(store.slots.len(), 4);
        assert!(store.spare.get(&MAX_SUPER).is_none_or(Vec::is_empty));
        for off in all {
            store.release(off);
        }
        assert!(store.is_empty() && store.in_use == 0);
    }

    #[test]
    fn a_full_store_keeps_nothing_more_but_acknowledgments() {
        let limit = 16 * 1536;
        let mut store = Store::new(Size(limit as u64));
        let mut kept = 0;
        while fill(&mut store, 1500, 1).is_some() {
            kept += 1;
        }
        assert_eq!(kept, 15);
        let mut small = 0;
        while fill(&mut store, 60, 1).is_some() {
            small += 1;
        }
        assert_eq!(small, 6);
        assert!(store.in_use <= limit);
        assert_eq!(fill(&mut store, MAX_SUPER, 1), None);
        (0..2).for_each(|slot| store.release(slot));
        assert!(fill(&mut store, 1500, 1).is_some(), "there is room again");
    }

    #[test]
    #[should_panic(expected = "a packet ends once")]
    fn a_packet_that_ends_twice_is_a_bug() {
        let mut store = Store::new(Size(1 << 20));
        let off = fill(&mut store, 60, 1).unwrap();
        store.release(off);
        store.release(off);
    }
}
