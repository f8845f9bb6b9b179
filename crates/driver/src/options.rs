//! Rebuilds the TCP options of a header that the gateway changed, from the received bytes.
//!
//! Each option stays in its place, with the padding before it; a removed option is removed with its padding;
//! a new one comes last, aligned as common stacks align it. If the result does not fit, the padding is
//! dropped. Unknown options are kept.

use crate::parse::is_in_header;
use bentpipe_base::{Flags, TcpHeader};
use bentpipe_wire::{OPTION_SPACE, OptionKind, Options};

/// Options that may be inserted, in this order, each with the padding that aligns its value.
const HEADER_OPTIONS: [(OptionKind, usize); 5] = [
    (OptionKind::MSS, 0),
    (OptionKind::SACK_PERMITTED, 2),
    (OptionKind::TIMESTAMPS, 2),
    (OptionKind::WINDOW_SCALE, 1),
    (OptionKind::SACK, 2),
];

/// Options under construction; methods return `None` if the header is full.
struct List {
    bytes: [u8; OPTION_SPACE],
    len: usize,
}

impl List {
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.len..self.len + bytes.len())?.copy_from_slice(bytes);
        self.len += bytes.len();
        Some(())
    }

    fn pad(&mut self, n: usize) -> Option<()> {
        self.bytes.get_mut(self.len..self.len + n)?.fill(OptionKind::NOP.0);
        self.len += n;
        Some(())
    }
}

/// True if both headers have the same options.
pub(crate) fn are_equal(was: &TcpHeader, now: &TcpHeader) -> bool {
    was.timestamps == now.timestamps
        && was.sack == now.sack
        && (was.mss, was.window_scale, was.sack_permitted) == (now.mss, now.window_scale, now.sack_permitted)
}

/// Converts the options `old` of the header `was` to those of the header `now`; returns them with their
/// length, a multiple of four: the one that follows from [`TcpHeader::wire_len`], or more if needed. `None`
/// if 40 bytes do not suffice.
pub(crate) fn rebuild(old: &[u8], was: &TcpHeader, now: &TcpHeader) -> Option<([u8; OPTION_SPACE], usize)> {
    let wanted = (old.len() + usize::from(now.wire_len())).saturating_sub(usize::from(was.wire_len()));
    let wanted = wanted.min(OPTION_SPACE);
    let list = build(old, was, now, false).filter(|list| list.len <= wanted);
    let list = list.or_else(|| build(old, was, now, true))?;
    // the zeros after the last option end the list
    Some((list.bytes, list.len.next_multiple_of(4).max(wanted)))
}

fn build(old: &[u8], was: &TcpHeader, now: &TcpHeader, tight: bool) -> Option<List> {
    let mut list = List { bytes: [OptionKind::END.0; OPTION_SPACE], len: 0 };
    let (was_syn, mut end, mut seen) = (was.flags.has(Flags::SYN), 0, 0u16);
    for option in Options::new(old) {
        let option = option.ok()?;
        let padding = if tight { 0 } else { option.at - end };
        end = option.at + option.bytes.len();
        if !is_in_header(option.kind(), option.bytes.len(), was_syn) {
            list.pad(padding)?;
            list.push(option.bytes)?;
            continue;
        }
        seen |= 1 << option.kind().0;
        let mut room = [0; OPTION_SPACE];
        let bytes = write(option.kind(), now, &mut room)?;
        if !bytes.is_empty() {
            list.pad(padding)?;
            list.push(bytes)?;
        }
    }
    for (kind, padding) in HEADER_OPTIONS.iter().filter(|(kind, _)| seen & 1 << kind.0 == 0) {
        let mut room = [0; OPTION_SPACE];
        let bytes = write(*kind, now, &mut room)?;
        if !bytes.is_empty() {
            list.pad(if tight { 0 } else { *padding })?;
            list.push(bytes)?;
        }
    }
    Some(list)
}

/// Returns the bytes of an option of `tcp`; empty if it has no such option.
fn write<'a>(kind: OptionKind, tcp: &TcpHeader, room: &'a mut [u8; OPTION_SPACE]) -> Option<&'a [u8]> {
    let syn = tcp.flags.has(Flags::SYN);
    let len = match kind {
        OptionKind::MSS => tcp.mss.filter(|_| syn).map(|mss| {
            room[2..4].copy_from_slice(&mss.to_be_bytes());
            4
        }),
        OptionKind::WINDOW_SCALE => tcp.window_scale.filter(|_| syn).map(|shift| {
            room[2] = shift;
            3
        }),
        OptionKind::SACK_PERMITTED => (syn && tcp.sack_permitted).then_some(2),
        OptionKind::TIMESTAMPS => tcp.timestamps.map(|stamps| {
            room[2..6].copy_from_slice(&stamps.value.to_be_bytes());
            room[6..10].copy_from_slice(&stamps.echo.to_be_bytes());
            10
        }),
        OptionKind::SACK => (!tcp.sack.is_empty()).then(|| {
            for (place, (left, right)) in room[2..].chunks_exact_mut(8).zip(tcp.sack.as_slice()) {
                place[..4].copy_from_slice(&left.0.to_be_bytes());
                place[4..].copy_from_slice(&right.0.to_be_bytes());
            }
            2 + 8 * tcp.sack.as_slice().len()
        }),
        _ => None,
    };
    let len = len.unwrap_or(0);
    if len > 0 {
        (room[0], room[1]) = (kind.0, len as u8);
    }
    room.get(..len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Seq, Timestamps};

    const SYN: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];

    fn syn() -> TcpHeader {
        TcpHeader {
            flags: Flags::SYN,
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 9, echo: 0 }),
            ..TcpHeader::default()
        }
    }

    fn rebuilt(old: &[u8], was: &TcpHeader, now: &TcpHeader) -> Option<Vec<u8>> {
        rebuild(old, was, now).map(|(bytes, len)| bytes[..len].to_vec())
    }

    #[test]
    fn a_scale_comes_and_goes_and_changes_in_its_place() {
        let (with, without) = (syn(), TcpHeader { window_scale: None, ..syn() });
        assert_eq!(rebuilt(&SYN, &with, &without).unwrap(), SYN[..16]);
        assert_eq!(rebuilt(&SYN[..16], &without, &with).unwrap(), SYN);
        let other = TcpHeader { window_scale: Some(9), ..syn() };
        assert_eq!(rebuilt(&SYN, &with, &other).unwrap()[16..], [1, 3, 3, 9]);
        // an old host's SYN
        let old = TcpHeader { flags: Flags::SYN, mss: Some(1460), ..TcpHeader::default() };
        let new = TcpHeader { window_scale: Some(7), ..old.clone() };
        assert_eq!(rebuilt(&[2, 4, 5, 0xb4], &old, &new).unwrap(), [2, 4, 5, 0xb4, 1, 3, 3, 7]);
    }

    #[test]
    fn what_we_do_not_know_stays_and_padding_goes_first() {
        let now =
            TcpHeader { window_scale: Some(7), ..TcpHeader { flags: Flags::SYN, ..TcpHeader::default() } };
        let was = TcpHeader { window_scale: None, ..now.clone() };
        // three times padding and an unknown option of 9 bytes: 36 bytes
        let mut old = Vec::new();
        for i in 0..3 {
            old.extend([1, 1, 1, 253, 9, i, 0, 0, 0, 0, 0, 7]);
        }
        let new = rebuilt(&old, &was, &now).unwrap();
        assert_eq!((new.len(), &new[..36], &new[36..]), (40, &old[..], &[1, 3, 3, 7][..]));
        old.extend([1, 1, 1, 1]);
        let new = rebuilt(&old, &was, &now).unwrap();
        assert_eq!(new.len(), 40, "the trailing padding made room");
        let full: Vec<u8> = [253, 39].into_iter().chain([0; 37]).chain([1]).collect();
        assert_eq!(rebuilt(&full, &was, &now), None);
    }

    #[test]
    fn sack_blocks_go_with_their_padding_and_one_can_come() {
        let stamps = Some(Timestamps { value: 1, echo: 2 });
        let without = TcpHeader { timestamps: stamps, ..TcpHeader::default() };
        let mut with = without.clone();
        with.sack.push(Seq(5), Seq(6));
        let plain = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let long = [&plain[..], &[1, 1, 5, 10, 0, 0, 0, 5, 0, 0, 0, 6]].concat();
        assert_eq!(rebuilt(&long, &with, &without).unwrap(), plain);
        assert_eq!(rebuilt(&plain, &without, &with).unwrap(), long);
    }
}
