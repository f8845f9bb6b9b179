//! Random packets that are nearly valid: the mutations know where lengths and options are, but not how the
//! code under test uses them.

/// A small generator (SplitMix64): the same seed gives the same packets on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// From a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % (n.max(1) as u64)) as usize
    }
    /// A random byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.bits() as u8
    }
    /// A random 32-bit number, often an edge case.
    #[allow(dead_code, reason = "the gateway's fuzzer uses it")]
    pub(crate) fn word(&mut self) -> u32 {
        match self.below(4) {
            0 => [0, 1, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX][self.below(7)],
            _ => self.bits() as u32,
        }
    }
}

const EDGES: [u8; 14] = [0, 1, 2, 3, 4, 5, 8, 10, 20, 40, 60, 0x7f, 0x80, 0xff];

/// Makes a new packet from one of `seeds`, with a few mutations.
pub(crate) fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut packet = pick(random, seeds).to_vec();
    for _ in 0..=random.below(4) {
        match random.below(12) {
            0 | 1 => flip_bit(random, &mut packet),
            2 => set_byte(random, &mut packet),
            3 | 4 => change_length(random, &mut packet),
            5 => splice(random, &mut packet, seeds),
            6 => delete(random, &mut packet),
            7 => insert(random, &mut packet),
            8 | 9 => write_options(random, &mut packet),
            10 => packet.truncate(random.below(packet.len() + 1)),
            _ => lengthen(random, &mut packet),
        }
        if random.below(2) == 0 {
            repair_length(&mut packet);
        }
    }
    packet
}

fn pick<'a>(random: &mut Random, seeds: &'a [Vec<u8>]) -> &'a [u8] {
    seeds.get(random.below(seeds.len())).map_or(&[], Vec::as_slice)
}

/// Where the transport header most likely begins.
fn transport(packet: &[u8]) -> usize {
    match packet.first() {
        Some(b) if b >> 4 == 4 => usize::from(b & 15) * 4,
        _ => 40,
    }
}

fn flip_bit(random: &mut Random, packet: &mut [u8]) {
    let at = random.below(packet.len().min(120));
    if let Some(byte) = packet.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn set_byte(random: &mut Random, packet: &mut [u8]) {
    let at = random.below(packet.len().min(120));
    if let Some(byte) = packet.get_mut(at) {
        *byte = EDGES[random.below(EDGES.len())];
    }
}

/// Changes a byte that is, or could be, a length.
fn change_length(random: &mut Random, packet: &mut [u8]) {
    let tcp = transport(packet);
    let option = tcp + 20 + random.below(40);
    let places = [0, 3, 2, 5, 4, tcp + 12, option, 41, tcp + 1, tcp + 5];
    let Some(byte) = packet.get_mut(places[random.below(places.len())]) else { return };
    *byte = match random.below(4) {
        0 => EDGES[random.below(EDGES.len())],
        1 => byte.wrapping_add(1 + random.below(8) as u8),
        2 => byte.wrapping_sub(1 + random.below(8) as u8),
        _ => byte.wrapping_add(0x10 << random.below(4)),
    };
}

/// Joins the head of one packet and the tail of another, cut where headers begin or anywhere.
fn splice(random: &mut Random, packet: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let other = pick(random, seeds);
    let cut = |random: &mut Random, p: &[u8]| match random.below(4) {
        0 => random.below(p.len() + 1),
        1 => transport(p),
        2 => transport(p) + 20,
        _ => transport(p) + 20 + 4 * random.below(10),
    };
    let (head, tail) = (cut(random, packet), cut(random, other));
    packet.truncate(head);
    packet.extend(other.get(tail..).unwrap_or_default());
}

fn delete(random: &mut Random, packet: &mut Vec<u8>) {
    let at = random.below(packet.len());
    let end = (at + 1 + random.below(12)).min(packet.len());
    packet.drain(at..end);
}

fn insert(random: &mut Random, packet: &mut Vec<u8>) {
    let at = random.below(packet.len() + 1);
    let bytes: Vec<u8> = (0..=random.below(12)).map(|_| EDGES[random.below(EDGES.len())]).collect();
    packet.splice(at..at, bytes);
}

/// Replaces the options by a random list and updates the data offset.
fn write_options(random: &mut Random, packet: &mut Vec<u8>) {
    let start = transport(packet) + 20;
    let Some(offset) = packet.get(start - 8).map(|b| usize::from(b >> 4) * 4) else { return };
    let end = (start + offset.saturating_sub(20)).min(packet.len());
    if start > end {
        return;
    }
    let mut list = Vec::new();
    for _ in 0..random.below(7) {
        let kind = [1, 1, 2, 3, 4, 5, 8, 0, 34, 253][random.below(10)];
        let usual = [0, 0, 4, 3, 2, 10, 0, 0, 10][usize::from(kind).min(8)];
        let len = if random.below(6) == 0 { random.below(14) } else { usual };
        list.push(kind);
        if kind > 1 {
            list.push(len as u8);
            list.extend((2..len).map(|_| random.byte()));
        }
    }
    list.truncate(40);
    list.resize(list.len().next_multiple_of(4), random.below(2) as u8);
    packet[start - 8] = ((20 + list.len()) as u8 / 4) << 4 | packet[start - 8] & 15;
    packet.splice(start..end, list);
}

fn lengthen(random: &mut Random, packet: &mut Vec<u8>) {
    let more = if random.below(200) == 0 { 65_000 + random.below(600) } else { random.below(200) };
    let byte = random.byte();
    packet.resize(packet.len() + more, byte);
}

/// Sets the length in the network header to the actual length.
fn repair_length(packet: &mut [u8]) {
    let len = packet.len();
    let (at, stated) = match packet.first() {
        Some(b) if b >> 4 == 4 => (2, len),
        _ => (4, len.saturating_sub(40)),
    };
    if let (Some(field), Ok(stated)) = (packet.get_mut(at..at + 2), u16::try_from(stated)) {
        field.copy_from_slice(&stated.to_be_bytes());
    }
}
