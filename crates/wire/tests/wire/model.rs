//! Edits against a model: the packet taken apart into plain vectors, changed there in the obvious way.

use crate::check::ensure;
use crate::mutate::Random;
use crate::oracle::{plain_sum, pseudo_header};
use bentpipe_base::Seq;
use bentpipe_wire::{Checksum, Edit, Ends, Fault, Layout, OptionKind, Options};

/// One edit.
#[derive(Clone, Debug)]
enum Op {
    Seq(u32),
    Ack(u32),
    Window(u16),
    Scale(u8),
    Set(u8, Vec<u8>),
    Remove(u8),
    Insert(u8, Vec<u8>),
}

/// A packet in pieces; lengths, data offset and checksums are left out, they follow from the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    network: Vec<u8>,
    fixed: Vec<u8>,
    options: Vec<Vec<u8>>,
    /// What follows the first impossible option length.
    garbage: Vec<u8>,
    payload: Vec<u8>,
    padding: Vec<u8>,
}

impl Model {
    fn of(packet: &[u8], layout: &Layout) -> Self {
        let transport = layout.network.transport;
        let mut network = packet[..transport].to_vec();
        match layout.network.ends {
            Ends::V4 { .. } => {
                network[2..4].fill(0);
                network[10..12].fill(0);
            }
            Ends::V6 { .. } => network[4..6].fill(0),
        }
        let mut fixed = packet[transport..transport + 20].to_vec();
        fixed[12] &= 0x0f;
        fixed[16..18].fill(0);
        let area = &packet[layout.options.clone()];
        let (mut options, mut garbage) = (Vec::new(), Vec::new());
        for option in Options::new(area) {
            match option {
                Ok(option) => options.push(option.bytes.to_vec()),
                Err(e) => garbage = area[e.offset..].to_vec(),
            }
        }
        let payload = packet[layout.payload.clone()].to_vec();
        Self { network, fixed, options, garbage, payload, padding: packet[layout.network.end..].to_vec() }
    }

    /// Changes the model as `op` must change the packet, except for an insertion; true when something matched.
    fn apply(&mut self, op: &Op) -> bool {
        match op {
            Op::Seq(v) => self.fixed[4..8].copy_from_slice(&v.to_be_bytes()),
            Op::Ack(v) => self.fixed[8..12].copy_from_slice(&v.to_be_bytes()),
            Op::Window(v) => self.fixed[14..16].copy_from_slice(&v.to_be_bytes()),
            Op::Scale(v) => return self.set(OptionKind::WINDOW_SCALE.0, &[*v]),
            Op::Set(kind, value) => return self.set(*kind, value),
            Op::Remove(kind) => {
                let before = self.options.len();
                self.options.retain(|o| o[0] != *kind);
                return self.options.len() != before;
            }
            Op::Insert(..) => {}
        }
        true
    }

    fn set(&mut self, kind: u8, value: &[u8]) -> bool {
        let mut any = false;
        for option in self.options.iter_mut().filter(|o| o[0] == kind && o.len() == 2 + value.len()) {
            option[2..].copy_from_slice(value);
            any = true;
        }
        any
    }

    /// True when `self` is `before` with `option` at one more place.
    fn is_with(&self, before: &Self, option: &[u8]) -> bool {
        let with_it = |at: usize| {
            let mut expected = before.clone();
            expected.options.insert(at, option.to_vec());
            *self == expected
        };
        (0..=before.options.len()).any(with_it)
    }
}

/// Which of the checksums the packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// As the bytes came, most often damaged: the damage must stay.
    AsIs,
    Right,
    Partial,
}

/// Applies edits that follow from the bytes alone, with each kind of checksum.
pub(crate) fn edits(bytes: &[u8], layout: &Layout) -> Result<(), String> {
    for begin in [Begin::AsIs, Begin::Right, Begin::Partial] {
        let mut packet = bytes.to_vec();
        let at = layout.network.transport + 16;
        if begin != Begin::AsIs {
            let sum = scratch(&packet, layout, begin);
            packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        let mut random =
            Random::new(bytes.iter().fold(bytes.len() as u64, |h, b| h.rotate_left(7) ^ u64::from(*b)));
        for _ in 0..=random.below(6) {
            let op = random_op(&mut random, &packet[layout.options.start..]);
            let before = packet.clone();
            step(&mut packet, &op, begin)
                .map_err(|e| format!("{e}\n{op:?}, {begin:?}, before {before:02x?}"))?;
        }
    }
    Ok(())
}

/// The checksum field a packet should have, from scratch.
fn scratch(packet: &[u8], layout: &Layout, begin: Begin) -> u16 {
    let segment = &packet[layout.network.transport..layout.network.end];
    let mut covered = pseudo_header(&layout.network.ends, segment.len());
    if begin == Begin::Partial {
        return plain_sum(&covered);
    }
    covered.extend(segment);
    let field = covered.len() - segment.len() + 16;
    covered[field..field + 2].fill(0);
    !plain_sum(&covered)
}

fn random_op(random: &mut Random, options: &[u8]) -> Op {
    let kinds = [2, 3, 4, 5, 8, 77, 253, options.first().copied().unwrap_or(2).max(2)];
    let kind = kinds[random.below(kinds.len())];
    let len = if random.below(8) == 0 { random.below(45) } else { random.below(11) };
    let value: Vec<u8> = (0..len).map(|_| random.byte()).collect();
    match random.below(8) {
        0 => Op::Seq(random.word()),
        1 => Op::Ack(random.word()),
        2 => Op::Window(random.word() as u16),
        3 => Op::Scale(random.byte()),
        4 => Op::Set(kind, value),
        5 => Op::Remove(kind),
        _ => Op::Insert(kind, value),
    }
}

/// One edit, and everything that must hold after it.
fn step(packet: &mut Vec<u8>, op: &Op, begin: Begin) -> Result<(), String> {
    let before = packet.clone();
    let old = Layout::of(&before).map_err(|e| e.to_string())?;
    let checksum = if begin == Begin::Partial { Checksum::Partial } else { Checksum::Full };
    let mut edit = Edit::new(packet, checksum).map_err(|e| e.to_string())?;
    let mut expected = Model::of(&before, &old);
    let mut matched = true;
    let mut inserted = None;
    match op {
        Op::Seq(v) => edit.set_seq(Seq(*v)),
        Op::Ack(v) => edit.set_ack(Seq(*v)),
        Op::Window(v) => edit.set_window(*v),
        Op::Scale(v) => matched = edit.set_window_scale(*v),
        Op::Set(kind, value) => matched = edit.set_option(OptionKind(*kind), value),
        Op::Remove(kind) => matched = edit.remove_option(OptionKind(*kind)),
        Op::Insert(kind, value) => inserted = Some(edit.insert_option(OptionKind(*kind), value)),
    }
    let claimed = edit.layout().clone();
    let now = Layout::of(packet).map_err(|e| format!("unreadable after the edit: {e}"))?;
    ensure!(claimed == now, "the edit believes {claimed:?}, it is {now:?}");
    ensure!(expected.apply(op) == matched, "the edit says {matched}");
    let model = Model::of(packet, &now);
    match (op, inserted) {
        (Op::Insert(kind, value), Some(Ok(()))) => {
            let mut option = vec![*kind, 2 + value.len() as u8];
            option.extend(value);
            ensure!(model.is_with(&expected, &option), "{model:?} is not {expected:?} with {option:?}");
        }
        (Op::Insert(_, value), Some(Err(e))) => {
            ensure!(*packet == before, "a failed insertion changed something");
            refusal(e.fault, &before, &old, value.len() + 2)?;
        }
        _ => ensure!(model == expected, "{model:?} instead of {expected:?}"),
    }
    sums(&before, &old, packet, &now, begin)
}

/// A refused insertion must have its reason.
fn refusal(fault: Fault, packet: &[u8], layout: &Layout, len: usize) -> Result<(), String> {
    let area = &packet[layout.options.clone()];
    let mut end = 0;
    let mut garbage = false;
    for option in Options::new(area) {
        match option {
            Ok(o) => end = o.at + o.bytes.len(),
            Err(_) => garbage = true,
        }
    }
    match fault {
        Fault::OptionLength => ensure!(garbage, "refused, but the options can be told apart"),
        Fault::OptionSpaceFull => ensure!(end + len > 40, "refused, but there is room"),
        Fault::TooLong => ensure!(layout.network.end > 65_000, "refused, but the packet is short"),
        other => return Err(format!("refused with {other:?}")),
    }
    Ok(())
}

/// Both checksums after an edit: equal to a fresh computation, or as wrong as before.
fn sums(before: &[u8], old: &Layout, after: &[u8], new: &Layout, begin: Begin) -> Result<(), String> {
    if begin == Begin::AsIs {
        let damage = |packet, layout: &Layout| layout.sum(packet).fold() % 0xffff;
        ensure!(damage(before, old) == damage(after, new), "the edit mended or worsened a wrong checksum");
    } else {
        let at = new.network.transport + 16;
        let (field, fresh) = (u16::from_be_bytes([after[at], after[at + 1]]), scratch(after, new, begin));
        ensure!(field == fresh, "TCP checksum {field:04x}, from scratch {fresh:04x}");
    }
    if matches!(new.network.ends, Ends::V4 { .. }) {
        let damage = |packet: &[u8], layout: &Layout| plain_sum(&packet[..layout.network.transport]) % 0xffff;
        ensure!(damage(before, old) == damage(after, new), "the IPv4 checksum changed its mind");
    }
    Ok(())
}
