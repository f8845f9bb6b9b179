//! Edits in place. Checksums are updated by the difference (RFC 1624), so a packet that was right stays right, one that
//! was damaged stays detectably damaged, and the payload is never read.

use crate::checksum::Sum;
use crate::error::{Fault, WireError};
use crate::layout::{Ends, Layout};
use crate::options::{OPTION_SPACE, OptionKind, Options, RawOption};
use crate::tcp::TcpFixed;
use bentpipe_base::Seq;

/// What the TCP checksum field of a packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum.
    Full,
    /// The sum of the pseudo-header only, not complemented: the network card, or whoever splits the packet, adds the
    /// rest. Linux calls it CHECKSUM_PARTIAL; virtio sets NEEDS_CSUM.
    Partial,
}

/// Offsets in the TCP header.
mod field {
    pub(super) const SEQ: usize = 4;
    pub(super) const ACK: usize = 8;
    pub(super) const DATA_OFFSET: usize = 12;
    pub(super) const WINDOW: usize = 14;
    pub(super) const CHECKSUM: usize = 16;
}

/// A TCP packet under edit.
#[derive(Debug)]
pub struct Edit<'a> {
    packet: &'a mut Vec<u8>,
    layout: Layout,
    checksum: Checksum,
}

impl<'a> Edit<'a> {
    /// Opens a packet.
    ///
    /// # Errors
    /// As [`Layout::of`].
    pub fn new(packet: &'a mut Vec<u8>, checksum: Checksum) -> Result<Self, WireError> {
        let layout = Layout::of(packet)?;
        Ok(Self { packet, layout, checksum })
    }

    /// Where the parts lie now.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The options as they stand now.
    pub fn options(&self) -> Options<'_> {
        Options::new(&self.packet[self.layout.options.clone()])
    }

    /// The first option of this kind.
    pub fn find(&self, kind: OptionKind) -> Option<RawOption<'_>> {
        self.options().filter_map(Result::ok).find(|o| o.kind() == kind)
    }

    /// Sets the sequence number.
    pub fn set_seq(&mut self, seq: Seq) {
        self.write(self.layout.network.transport + field::SEQ, &seq.0.to_be_bytes());
    }

    /// Sets the acknowledgment number.
    pub fn set_ack(&mut self, ack: Seq) {
        self.write(self.layout.network.transport + field::ACK, &ack.0.to_be_bytes());
    }

    /// Sets the window field, unscaled as it stands in the header.
    pub fn set_window(&mut self, window: u16) {
        self.write(self.layout.network.transport + field::WINDOW, &window.to_be_bytes());
    }

    /// Sets the shift count of the window-scale option; false when the packet has none.
    pub fn set_window_scale(&mut self, shift: u8) -> bool {
        self.set_option(OptionKind::WINDOW_SCALE, &[shift])
    }

    /// Sets the value of every option of this kind that has this length; false when there is none.
    pub fn set_option(&mut self, kind: OptionKind, value: &[u8]) -> bool {
        self.each(kind, |edit, at, len| {
            let fits = len == 2 + value.len();
            if fits {
                edit.write(at + 2, value);
            }
            fits
        })
    }

    /// Replaces every option of this kind by no-operations; false when there is none.
    pub fn remove_option(&mut self, kind: OptionKind) -> bool {
        self.each(kind, |edit, at, len| {
            edit.write(at, &[OptionKind::NOP.0; OPTION_SPACE][..len.min(OPTION_SPACE)]);
            true
        })
    }

    /// Inserts an option: into padding where some is long enough, else by a longer header.
    ///
    /// # Errors
    /// [`Fault::OptionSpaceFull`] when 40 bytes do not suffice, [`Fault::TooLong`] when the packet would outgrow its IP
    /// header, [`Fault::OptionLength`] when the options cannot be told apart or `kind` is padding. Nothing is
    /// changed then.
    pub fn insert_option(&mut self, kind: OptionKind, value: &[u8]) -> Result<(), WireError> {
        let full = WireError::new(Fault::OptionSpaceFull, self.layout.options.end);
        if matches!(kind, OptionKind::END | OptionKind::NOP) {
            return Err(WireError::new(Fault::OptionLength, self.layout.options.start));
        }
        let len = 2 + value.len();
        let (mut gap, is_last) = self.gap(len)?;
        if let Some(missing) = len.checked_sub(gap.len()).filter(|m| *m > 0) {
            debug_assert!(is_last, "a gap inside the list is taken only when it is long enough");
            let more = missing.next_multiple_of(4);
            if self.layout.options.len() + more > OPTION_SPACE {
                return Err(full);
            }
            self.grow(more)?;
            gap.end += more;
        }
        // The option goes to the end of its gap: what was aligned behind it stays aligned.
        let mut bytes = [OptionKind::NOP.0; OPTION_SPACE];
        let Some(room) = bytes.get_mut(..gap.len()) else { return Err(full) };
        let (_, option) = room.split_at_mut(room.len() - len);
        option[0] = kind.0;
        option[1] = len as u8;
        option[2..].copy_from_slice(value);
        let room = &bytes[..gap.len()];
        self.write(gap.start, room);
        Ok(())
    }

    /// The first stretch of padding with `len` bytes, else the one at the end of the list (and true), as long as it is.
    fn gap(&self, len: usize) -> Result<(core::ops::Range<usize>, bool), WireError> {
        let base = self.layout.options.start;
        let mut end = base;
        for option in self.options() {
            let option = option.map_err(|e| e.below(base))?;
            let at = base + option.at;
            if at - end >= len {
                return Ok((end..at, false));
            }
            end = at + option.bytes.len();
        }
        Ok((end..self.layout.options.end, true))
    }

    /// Calls `change` with place and length of every option of this kind; true when any call was.
    fn each(&mut self, kind: OptionKind, mut change: impl FnMut(&mut Self, usize, usize) -> bool) -> bool {
        let (base, mut from, mut any) = (self.layout.options.start, 0, false);
        while let Some((at, len)) = self.next_option(kind, from) {
            any |= change(self, base + at, len);
            from = at + len;
        }
        any
    }

    /// Place (in the options) and length of the first option of this kind at or behind `from`.
    fn next_option(&self, kind: OptionKind, from: usize) -> Option<(usize, usize)> {
        let mut options = self.options().filter_map(Result::ok);
        options.find(|o| o.at >= from && o.kind() == kind).map(|o| (o.at, o.bytes.len()))
    }

    /// Overwrites bytes of the TCP header, other than its checksum.
    fn write(&mut self, at: usize, new: &[u8]) {
        let transport = self.layout.network.transport;
        let old = &mut self.packet[at..at + new.len()];
        let (mut before, mut after) = (Sum::of(old), Sum::of(new));
        old.copy_from_slice(new);
        if (at - transport) % 2 == 1 {
            (before, after) = (before.shifted_by_one(), after.shifted_by_one());
        }
        if self.checksum == Checksum::Full {
            self.adjust(transport + field::CHECKSUM, Checksum::Full, before, after);
        }
    }

    /// Brings a checksum field up to date after words summing up to `old` became words summing up to `new`.
    fn adjust(&mut self, at: usize, checksum: Checksum, old: Sum, new: Sum) {
        let field = &mut self.packet[at..at + 2];
        let now = u16::from_be_bytes([field[0], field[1]]);
        let then = match checksum {
            Checksum::Full => Sum::ZERO.word(!now).replace(old, new).finish(),
            Checksum::Partial => Sum::ZERO.word(now).replace(old, new).fold(),
        };
        field.copy_from_slice(&then.to_be_bytes());
    }

    /// Makes the TCP header `more` bytes longer, a multiple of four, by zeros behind its options.
    fn grow(&mut self, more: usize) -> Result<(), WireError> {
        let network = &self.layout.network;
        let (transport, tcp_len) = (network.transport, network.end - network.transport);
        let (length_at, ip_len) = match network.ends {
            Ends::V4 { .. } => (2, network.end),
            Ends::V6 { .. } => (4, network.end - size_of::<crate::Ipv6Header>()),
        };
        let is_v4 = matches!(network.ends, Ends::V4 { .. });
        let too_long = WireError::new(Fault::TooLong, length_at);
        let grown = u16::try_from(ip_len + more).map_err(|_| too_long)?;

        let end = self.layout.options.end;
        self.packet.splice(end..end, core::iter::repeat_n(0, more));
        self.packet[length_at..length_at + 2].copy_from_slice(&grown.to_be_bytes());
        if is_v4 {
            self.adjust(10, Checksum::Full, Sum::ZERO.word(ip_len as u16), Sum::ZERO.word(grown));
        }
        // The TCP length stands in the pseudo-header, so it counts in either kind of checksum.
        let (old, new) =
            (Sum::of(&(tcp_len as u32).to_be_bytes()), Sum::of(&((tcp_len + more) as u32).to_be_bytes()));
        self.adjust(transport + field::CHECKSUM, self.checksum, old, new);

        self.layout.network.end += more;
        self.layout.options.end += more;
        self.layout.payload = self.layout.payload.start + more..self.layout.payload.end + more;
        let words = (size_of::<TcpFixed>() + self.layout.options.len()) as u8 / 4;
        let reserved = self.packet[transport + field::DATA_OFFSET] & 0x0f;
        self.write(transport + field::DATA_OFFSET, &[words << 4 | reserved]);
        Ok(())
    }
}
