//! The bytes of packets that are on their way: super-packets as they were read, shared by the wire packets they are cut into.
//!
//! A wire packet is known by its handle: which super-packet, and which piece of it. Nothing is copied when one is cut, and no memory is asked for
//! once the run is warm: buffers come in three sizes and are used again.

use bentpipe_os::port::MAX_SUPER;
use bentpipe_wire::WireError;
use bentpipe_wire::offload::{Super, VnetHeader};

/// Sizes of buffers: one wire packet, a small super-packet, any super-packet.
const SIZES: [usize; 3] = [2048, 16_384, MAX_SUPER];
/// Spare buffers kept of each size: 16, 16 and 67 MB at most.
const SPARE: [usize; 3] = [8192, 1024, 1024];

/// The piece that stands for a whole super-packet.
pub const WHOLE: u16 = u16::MAX;

/// Which piece of which super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The super-packet.
    pub slot: u32,
    /// The piece, or [`WHOLE`].
    pub piece: u16,
}

impl Handle {
    /// As a number that a packet carries.
    pub const fn pack(self) -> u64 {
        (self.slot as u64) << 16 | self.piece as u64
    }

    /// From that number.
    pub const fn unpack(number: u64) -> Self {
        Self { slot: (number >> 16) as u32, piece: number as u16 }
    }

    /// True when `next` is the piece after this one of the same super-packet.
    pub const fn precedes(self, next: Self) -> bool {
        self.slot == next.slot && self.piece != WHOLE && self.piece + 1 == next.piece
    }
}

#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    len: usize,
    cut: Option<Super>,
    users: u32,
}

/// All super-packets on their way.
#[derive(Debug)]
pub struct Buffers {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spare: [Vec<Vec<u8>>; 3],
    /// Where the next one is read into.
    scratch: Vec<u8>,
    in_use: usize,
    most: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            spare: [const { Vec::new() }; 3],
            scratch: vec![0; MAX_SUPER],
            in_use: 0,
            most: 0,
        }
    }
}

impl Buffers {
    /// Where to read the next super-packet into.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// Puts `bytes` where the next one is read into; false when they are too many.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        let place = self.scratch.get_mut(..bytes.len());
        place.map(|place| place.copy_from_slice(bytes)).is_some()
    }

    /// What was read last.
    pub fn read(&self, len: usize) -> &[u8] {
        self.scratch.get(..len).unwrap_or_default()
    }

    /// Keeps the first `len` bytes of the scratch for `users` packets, or for as many as it is cut into. Returns slot and how it is cut.
    ///
    /// # Errors
    /// When it is not IP.
    pub fn keep(
        &mut self,
        len: usize,
        vnet: &VnetHeader,
        users: impl FnOnce(&Super) -> u32,
    ) -> Result<(u32, Super), WireError> {
        let cut = Super::parse(self.read(len), vnet)?;
        let class = SIZES.iter().position(|size| len <= *size).unwrap_or(SIZES.len() - 1);
        let mut bytes = self.spare[class].pop().unwrap_or_else(|| vec![0; SIZES[class]]);
        if class == SIZES.len() - 1 {
            core::mem::swap(&mut bytes, &mut self.scratch);
        } else if let (Some(to), Some(from)) = (bytes.get_mut(..len), self.scratch.get(..len)) {
            to.copy_from_slice(from);
        }
        self.in_use += bytes.len();
        self.most = self.most.max(self.in_use);
        let slot = Slot { bytes, len, users: users(&cut), cut: Some(cut) };
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.slots[place as usize] = slot;
        Ok((place, cut))
    }

    /// A super-packet: how it is cut, and its bytes.
    pub fn get(&self, slot: u32) -> Option<(&Super, &[u8])> {
        let slot = self.slots.get(slot as usize)?;
        Some((slot.cut.as_ref()?, slot.bytes.get(..slot.len)?))
    }

    /// `packets` of its users are done with a super-packet.
    pub fn release(&mut self, place: u32, packets: u32) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        assert!(slot.users >= packets, "a packet ends once");
        slot.users -= packets;
        if slot.users > 0 {
            return;
        }
        slot.cut = None;
        let bytes = core::mem::take(&mut slot.bytes);
        self.in_use -= bytes.len();
        if let Some(class) = SIZES.iter().position(|size| *size == bytes.len())
            && self.spare[class].len() < SPARE[class]
        {
            self.spare[class].push(bytes);
        }
        self.free.push(place);
    }

    /// Bytes of buffers in use, and most that ever were.
    pub const fn in_use(&self) -> (usize, usize) {
        (self.in_use, self.most)
    }
}
