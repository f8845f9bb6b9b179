//! Which flows go first at the hop: those that suffer from delay and need little.
//!
//! Source: expedited forwarding (RFC 3246, RFC 5865 for voice): packets marked EF, and flows of small packets
//! only (voice, DNS, keystrokes, acknowledgments), wait only for repairs and for the packet that is being
//! sent. Their total is limited to a share of the rate, as RFC 3246 asks (section 2.8); beyond it they share
//! the queue with all others.
//!
//! Whole flows are preferred, never packets within a flow. A packet that arrives while packets of its flow
//! are queued is queued behind them. So a flow changes its queue only when none of its packets is queued.
//! Passing flows are identified by a hash of addresses and ports, in a table of fixed size: two flows in the
//! same slot are treated as one.

use bentpipe_base::{Duration, Instant, Packet, Rate, Size, fnv1a};

/// Expedited forwarding (RFC 3246).
pub(crate) const EF: u8 = 46;
/// Packets of this length and more, IP header included, are not small.
pub(crate) const SMALL: u64 = 300;
/// Share of the rate that flows which go first may use, as a divisor.
const PART: u64 = 10;
const BURST: Duration = Duration::from_millis(100);
/// Slots for passing flows.
pub(crate) const PLACES: usize = 4096;
/// A flow that was silent for longer is treated as new.
const SILENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
struct PassingFlow {
    key: u64,
    last: Instant,
    waiting: u32,
    /// Its queued packets go first.
    goes_first: bool,
    /// It has sent a packet that is not small.
    is_large: bool,
}

/// How far the share for flows that go first is used up, and the state of the passing flows.
#[derive(Debug, Default)]
pub(crate) struct Priority {
    places: Vec<PassingFlow>,
    /// Until when the share is used up.
    until: Instant,
}

impl Priority {
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.until <= now
    }

    pub(crate) fn charge(&mut self, now: Instant, rate: Rate, size: Size) {
        let start = self.until.max(Instant(now.0.saturating_sub(BURST.0)));
        self.until = start + Duration(rate.time_for(size).0 * PART);
    }

    /// Notes a passing packet; returns the slot of its flow, and whether it goes first.
    pub(crate) fn place(&mut self, now: Instant, packet: &Packet) -> (usize, bool) {
        if self.places.is_empty() {
            self.places.resize(PLACES, PassingFlow::default());
        }
        let key = key(packet);
        let at = (key % PLACES as u64) as usize;
        let place = &mut self.places[at];
        let is_another = place.key != key || place.last + SILENCE < now;
        if place.waiting == 0 && is_another {
            *place = PassingFlow { key, ..PassingFlow::default() };
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

    /// Notes that a packet of this slot has left.
    pub(crate) fn left(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            place.waiting = place.waiting.saturating_sub(1);
        }
    }
}

/// Hash of addresses, ports and protocol. It needs no secret key: flows that collide only share a queue.
fn key(packet: &Packet) -> u64 {
    let Packet { src, dst, sport, dport, proto, .. } = packet;
    let words = [src.0, dst.0, u32::from(*sport) << 16 | u32::from(*dport), *proto as u32];
    fnv1a(words.iter().flat_map(|word| word.to_le_bytes()))
}

/// Properties of an accelerated flow. Its packets leave in the order in which it holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowTraits {
    /// It has sent small packets.
    pub(crate) is_small: bool,
    /// It has sent larger packets.
    pub(crate) is_large: bool,
    /// Its last packet was marked EF.
    pub(crate) is_marked: bool,
    /// The last period in which it used the hop.
    spell: Instant,
}

impl FlowTraits {
    pub(crate) const fn goes_first(self) -> bool {
        self.is_marked || (self.is_small && !self.is_large)
    }

    /// Notes use of the hop in the period that began at `spell`; true for the first use.
    pub(crate) fn uses(&mut self, spell: Instant) -> bool {
        core::mem::replace(&mut self.spell, spell) != spell
    }

    /// Notes a packet (or super-packet) of `size` bytes.
    pub(crate) const fn sent(&mut self, size: u64) {
        self.is_large |= size >= SMALL;
        self.is_small |= size > 0;
    }
}
