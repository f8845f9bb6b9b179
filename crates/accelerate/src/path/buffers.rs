//! The bytes of packets that are with the gateway: units as they were read, and how many packets of the node stand for each.
//!
//! A packet of the node says where its bytes lie: the slot in the upper half of [`Body::off`](bentpipe_base::Body), the place in the payload in the lower.
//! Buffers come in some thirty sizes ([`buffer_size`]), so that little of them is empty, and are used again, so a warm run asks for no memory; a unit of the largest size is
//! not copied either, since the buffer it was read into becomes its own. The store is bounded: what finds no room passes around the node.

use super::parse::Shape;
use bentpipe_base::{Packet, Size};
use bentpipe_gateway::buffer_size;
use bentpipe_os::port::MAX_SUPER;
use bentpipe_wire::offload::VnetHeader;
use std::collections::BTreeMap;

/// Bytes of spare buffers kept of each size.
const SPARE: usize = 16 << 20;
/// The smallest buffer, for acknowledgments.
const SMALLEST: usize = buffer_size(0);
/// Of the bound, what only the smallest may take: acknowledgments get through where data finds no room.
const RESERVE: usize = 16;

/// A unit that is kept.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Its bytes, as they came.
    pub bytes: &'a [u8],
    /// Its virtio header.
    pub vnet: &'a VnetHeader,
    /// What the node was given, when it is TCP, and where its parts lie.
    pub tcp: Option<(&'a Packet, &'a Shape)>,
}

#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    len: usize,
    vnet: VnetHeader,
    tcp: Option<(Packet, Shape)>,
    holders: u32,
}

/// All units that are with the gateway.
#[derive(Debug)]
pub struct Buffers {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spare: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Where the next one is read into.
    scratch: Vec<u8>,
    limit: usize,
    in_use: usize,
    most: usize,
}

impl Buffers {
    /// A store for at most `limit` bytes of buffers.
    pub fn new(limit: Size) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            spare: BTreeMap::new(),
            scratch: vec![0; MAX_SUPER],
            limit: usize::try_from(limit.0).unwrap_or(usize::MAX),
            in_use: 0,
            most: 0,
        }
    }

    /// Where to read the next unit into.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// What was read last.
    pub fn read(&self, len: usize) -> &[u8] {
        self.scratch.get(..len).unwrap_or_default()
    }

    /// Keeps the first `len` bytes of the scratch for one packet: that of `tcp`, or one that only its bytes tell of. Returns where, as the
    /// packet says it in [`Body::off`](bentpipe_base::Body). `None` when there is no room; the scratch is as it was then.
    pub fn keep(&mut self, len: usize, vnet: &VnetHeader, tcp: Option<(Packet, Shape)>) -> Option<u64> {
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
        self.most = self.most.max(self.in_use);
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let off = u64::from(place) << 32;
        let mut slot = Slot { bytes, len, vnet: *vnet, tcp, holders: 1 };
        if let Some((packet, _)) = &mut slot.tcp {
            packet.body.off = off;
        }
        self.slots[place as usize] = slot;
        Some(off)
    }

    /// The unit at `off`.
    pub fn get(&self, off: u64) -> Option<Held<'_>> {
        let slot = self.slots.get((off >> 32) as usize).filter(|slot| slot.holders > 0)?;
        let tcp = slot.tcp.as_ref().map(|(packet, shape)| (packet, shape));
        Some(Held { bytes: slot.bytes.get(..slot.len)?, vnet: &slot.vnet, tcp })
    }

    /// One more packet stands for the unit at `off`.
    ///
    /// # Panics
    /// When nothing is kept there: copies are made of what is held.
    pub fn hold(&mut self, off: u64) {
        let slot = self.slots.get_mut((off >> 32) as usize).filter(|slot| slot.holders > 0);
        let slot = slot.expect("a copy of something that is held");
        slot.holders += 1;
    }

    /// One packet less stands for the unit at `off`; with the last it is gone.
    ///
    /// # Panics
    /// When nothing is kept there: a packet ends once.
    pub fn release(&mut self, off: u64) {
        let place = (off >> 32) as u32;
        let slot = self.slots.get_mut(place as usize).filter(|slot| slot.holders > 0);
        let slot = slot.expect("a packet ends once");
        slot.holders -= 1;
        if slot.holders > 0 {
            return;
        }
        let bytes = core::mem::take(&mut slot.bytes);
        slot.tcp = None;
        self.in_use -= bytes.len();
        let spare = self.spare.entry(bytes.len()).or_default();
        if spare.len() * bytes.len() < SPARE {
            spare.push(bytes);
        }
        self.free.push(place);
    }

    /// Bytes of buffers in use, and most that ever were.
    pub const fn in_use(&self) -> (Size, Size) {
        (Size(self.in_use as u64), Size(self.most as u64))
    }

    /// Units that are kept.
    pub const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True when nothing is kept.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(buffers: &mut Buffers, len: usize, byte: u8) -> Option<u64> {
        buffers.scratch()[..len].fill(byte);
        buffers.keep(len, &VnetHeader::default(), None)
    }

    #[test]
    fn bytes_stay_while_somebody_holds_them() {
        let mut buffers = Buffers::new(Size(1 << 20));
        let all: Vec<u64> = [60, 1500, 9000, 60_000]
            .iter()
            .zip(1..)
            .map(|(n, b)| fill(&mut buffers, *n, b).unwrap())
            .collect();
        for (i, off) in all.iter().enumerate() {
            assert!(buffers.get(*off).unwrap().bytes.iter().all(|b| *b == i as u8 + 1));
        }
        buffers.hold(all[3] + 77); // a copy of a part
        buffers.release(all[3]);
        assert_eq!(buffers.get(all[3]).map(|h| h.bytes.len()), Some(60_000));
        buffers.release(all[3] + 77);
        assert!(buffers.get(all[3]).is_none());
        assert_eq!(buffers.len(), 3);
        // its place and its buffer are used again
        assert_eq!(fill(&mut buffers, 58_000, 9), Some(all[3]));
        assert_eq!(buffers.slots.len(), 4);
        assert!(buffers.spare.get(&MAX_SUPER).is_none_or(Vec::is_empty));
        for off in all {
            buffers.release(off);
        }
        assert!(buffers.is_empty() && buffers.in_use().0 == Size::ZERO);
    }

    #[test]
    fn a_full_store_keeps_nothing_more_but_acknowledgments() {
        let limit = 16 * 1536;
        let mut buffers = Buffers::new(Size(limit as u64));
        let mut kept = 0;
        while fill(&mut buffers, 1500, 1).is_some() {
            kept += 1;
        }
        assert_eq!(kept, 15);
        let mut small = 0;
        while fill(&mut buffers, 60, 1).is_some() {
            small += 1;
        }
        assert_eq!(small, 6);
        assert!(buffers.in_use().1 <= Size(limit as u64));
        assert_eq!(fill(&mut buffers, MAX_SUPER, 1), None);
        (0..2).for_each(|slot| buffers.release(slot << 32));
        assert!(fill(&mut buffers, 1500, 1).is_some(), "there is room again");
    }

    #[test]
    #[should_panic(expected = "a packet ends once")]
    fn a_packet_that_ends_twice_is_a_bug() {
        let mut buffers = Buffers::new(Size(1 << 20));
        let off = fill(&mut buffers, 60, 1).unwrap();
        buffers.release(off);
        buffers.release(off);
    }
}
