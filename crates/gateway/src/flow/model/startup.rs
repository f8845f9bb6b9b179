//! Startup: rounds that are spread evenly over the round trip, and grow.
//!
//! Source: draft-ietf-ccwg-bbr, section 5.3.1. A round begins with the first byte sent after an
//! acknowledgment of the round before. With b its bytes, T the shortest round trip and B the most bytes of
//! any round before, it is a sign when
//!   b >= 1.35 B,  each quarter of T has 13 to 50 % of b,  no gap is longer than max(6 packets of it, T /
//!     25),  and it took no longer than 1.15 T.
//! A round is disturbed when nothing was told for 0.35 T, as behind a hole; then 7 % are enough. Three signs
//! are enough, or two from clean rounds: neither it nor the one before was disturbed; 24 packets at least, 15
//! to 42 % in each quarter; and no more than 15 % of it waited for the hop. An even round that is not larger
//! takes a half of one away.
//!
//! Why no other sender does this. Slow start that is not paced sends a round as fast as the acknowledgments
//! come: it is spread evenly only when the hop is full, and then half of the round waits, and the round after
//! takes longer. Slow start that Linux paces, at two windows per smoothed round trip, needs half of it; at
//! 1.2 windows it needs five sixths, but does not grow by a third. After a hole the smoothed round trip is
//! longer and so is the round; that lasts for one round, and with three of them the sender would have to meet
//! three losses just so. A link in front of the gateway that is slower than the burst spreads it as well, but
//! no more than fills it: the next cannot be larger.

use super::Seen;
use bentpipe_base::{Duration, Instant};

/// Thirds of a clean sign that are enough, and what a round gives: clean, else.
const ENOUGH: u8 = 6;
const CLEAN: u8 = 3;
const OTHER: u8 = 2;
/// Packets of a round that can tell something, and of one that counts as clean.
const FEW: u64 = 12;
const MANY: u64 = 24;
/// Growth over all rounds before.
const GROWTH: f64 = 1.35;
/// Share of each quarter of the round trip: else, of a round that was disturbed, of a clean one.
const SHARE: (f64, f64) = (0.13, 0.5);
const DISTURBED_SHARE: (f64, f64) = (0.07, 0.5);
const CLEAN_SHARE: (f64, f64) = (0.15, 0.42);
/// Share of a clean round that waits at most.
const WAITS: f64 = 0.15;
/// In round trips: the longest round, the longest time without news that disturbs nothing, and the longest
/// gap between packets of a round of many.
const LONGEST: f64 = 1.15;
const SILENCE: f64 = 0.35;
const GAP: f64 = 0.04;
/// The longest gap in packets.
const GAP_PACKETS: f64 = 6.0;

/// The round that goes on, and what those before it said.
#[derive(Debug, Default)]
pub(super) struct Startup {
    /// It is over when this is acknowledged.
    end: u64,
    first: Instant,
    last: Instant,
    bytes: u64,
    /// Its bytes by quarters of the round trip; the last has what came later, too.
    quarters: [u64; 4],
    gap: Duration,
    /// Most bytes that waited.
    waits: u64,
    /// What was told last and when, and the longest time between such news.
    news: (u64, Instant),
    silence: Duration,
    was_disturbed: bool,
    /// Most bytes of a round.
    most: u64,
    signs: u8,
    /// Rounds of more than a few packets.
    pub(super) rounds: u8,
}

impl Startup {
    pub(super) fn sent(&mut self, seen: &Seen, bytes: u64) {
        if self.bytes == 0 {
            self.first = seen.now;
        } else {
            self.gap = self.gap.max(seen.now.since(self.last));
        }
        self.last = seen.now;
        self.bytes += bytes;
        let quarter = seen.now.since(self.first).0.saturating_mul(4) / seen.trip.0.max(1);
        self.quarters[quarter.min(3) as usize] += bytes;
        self.waits = self.waits.max(seen.waits);
    }

    /// The sender may have changed its window: what was seen before counts for nothing.
    pub(super) fn lost(&mut self, top: u64) {
        *self = Self { end: top, news: self.news, rounds: self.rounds, ..Self::default() };
    }

    /// True when the signs are enough.
    pub(super) fn told(&mut self, seen: &Seen) -> bool {
        if seen.told > self.news.0 {
            if self.news.1 != Instant::ZERO {
                self.silence = self.silence.max(seen.now.since(self.news.1));
            }
            self.news = (seen.told, seen.now);
        }
        if seen.told <= self.end {
            return false;
        }
        self.judge(seen);
        let Self { news, was_disturbed, most, signs, rounds, .. } = *self;
        *self = Self { end: seen.top, news, was_disturbed, most, signs, rounds, ..Self::default() };
        signs >= ENOUGH
    }

    /// The round is over.
    fn judge(&mut self, seen: &Seen) {
        let packets = self.bytes.div_ceil(seen.segment.max(1));
        let trips = |time: Duration| time.0 as f64 / seen.trip.0.max(1) as f64;
        let is_disturbed = trips(self.silence) > SILENCE;
        if packets >= FEW {
            self.rounds = self.rounds.saturating_add(1);
            let gap = (GAP_PACKETS / packets as f64).max(GAP);
            let is_even = self.is_spread(if is_disturbed { DISTURBED_SHARE } else { SHARE })
                && trips(self.gap) <= gap
                && trips(seen.now.since(self.first)) <= LONGEST;
            if is_even && self.bytes as f64 >= GROWTH * self.most as f64 {
                let is_clean = !is_disturbed
                    && !self.was_disturbed
                    && packets >= MANY
                    && self.is_spread(CLEAN_SHARE)
                    && self.waits as f64 <= WAITS * self.bytes as f64;
                self.signs += if is_clean { CLEAN } else { OTHER };
            } else if is_even {
                self.signs = self.signs.saturating_sub(1);
            }
        }
        self.was_disturbed = is_disturbed;
        self.most = self.most.max(self.bytes);
    }

    fn is_spread(&self, (least, most): (f64, f64)) -> bool {
        let share = |quarter: u64| quarter as f64 / self.bytes.max(1) as f64;
        self.quarters.into_iter().all(|quarter| (least..=most).contains(&share(quarter)))
    }
}
