//! Who goes before others at the hop: flows that lose by waiting and take little.
//!
//! Source: expedited forwarding (RFC 3246, RFC 5865 for voice): what is marked EF, or is a flow of small packets only (voice, names, keystrokes, acknowledgments), waits for no more than the
//! packet that is being sent. It is bounded by a share of the rate, as RFC 3246 asks (section 2.8): beyond it such flows stand in the queue with all others.
//!
//! Whole flows are preferred, never packets within one. A packet that comes while packets of its flow wait stands behind them, whatever it is itself; so a flow changes its
//! queue only when none of its packets waits in the other. Flows that only pass are told apart by a hash of their names, in a table of fixed size: two that share a place
//! follow each other as one.

use bentpipe_base::{Duration, Instant, Packet, Rate, Size};

/// Expedited forwarding (RFC 3246).
pub(crate) const EF: u8 = 46;
/// Packets of this length and more, IP header included, are not small.
pub(crate) const SMALL: u64 = 300;
/// The share of the rate that goes first: one part of so many.
const PART: u64 = 10;
/// How much of the share may come at once.
const BURST: Duration = Duration::from_millis(100);
/// Flows that pass and are told apart.
pub(crate) const PLACES: usize = 4096;
/// A flow that was silent for so long is a new one.
const SILENCE: Duration = Duration::from_secs(10);

/// A flow that passes.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    key: u64,
    last: Instant,
    waiting: u32,
    /// Its waiting packets go first.
    goes_first: bool,
    /// It has sent a packet that is not small.
    is_large: bool,
}

/// The share that goes first, and the flows that pass.
#[derive(Debug, Default)]
pub(crate) struct Priority {
    places: Vec<Place>,
    /// When the share will have been kept by what went first.
    until: Instant,
}

impl Priority {
    /// Whether something may go first.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.until <= now
    }

    /// So much has gone first.
    pub(crate) fn charge(&mut self, now: Instant, rate: Rate, size: Size) {
        let start = self.until.max(Instant(now.0.saturating_sub(BURST.0)));
        self.until = start + Duration(rate.time_for(size).0 * PART);
    }

    /// A packet that passes comes: where its flow has its place, and whether it goes first.
    pub(crate) fn place(&mut self, now: Instant, packet: &Packet) -> (usize, bool) {
        if self.places.is_empty() {
            self.places.resize(PLACES, Place::default());
        }
        let key = key(packet);
        let at = (key % PLACES as u64) as usize;
        let place = &mut self.places[at];
        let is_another = place.key != key || place.last + SILENCE < now;
        if place.waiting == 0 && is_another {
            *place = Place { key, ..Place::default() };
        }
        place.last = now;
        let is_small = packet.wire_len().0 < SMALL;
        place.is_large |= !is_small;
        if place.waiting == 0 {
            place.goes_first = packet.dscp.get() == EF || !place.is_large;
        }
        place.waiting += 1;
        (at, place.goes_first)
    }

    /// A packet of this place has left.
    pub(crate) fn left(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            place.waiting = place.waiting.saturating_sub(1);
        }
    }
}

/// A flow's names as a number: FNV-1a (draft-eastlake-fnv). Who finds flows that share a place makes them wait for each other, no more.
fn key(packet: &Packet) -> u64 {
    let Packet { src, dst, sport, dport, proto, .. } = packet;
    let words = [src.0, dst.0, u32::from(*sport) << 16 | u32::from(*dport), *proto as u32];
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, mix)
}

/// What is known of an accelerated flow, whose packets leave in the order in which it holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// It has sent small packets.
    pub(crate) is_small: bool,
    /// It has sent others.
    pub(crate) is_large: bool,
    /// Its last packet was marked.
    pub(crate) is_marked: bool,
    /// The last spell in which it has used the hop.
    spell: Instant,
}

impl Manner {
    /// Whether it goes first.
    pub(crate) const fn goes_first(self) -> bool {
        self.is_marked || (self.is_small && !self.is_large)
    }

    /// It uses the hop in the spell that began then; true for the first time.
    pub(crate) fn uses(&mut self, spell: Instant) -> bool {
        core::mem::replace(&mut self.spell, spell) != spell
    }

    /// It has sent a packet, or several in one, of this length.
    pub(crate) const fn sent(&mut self, size: u64) {
        self.is_large |= size >= SMALL;
        self.is_small |= size > 0;
    }
}
