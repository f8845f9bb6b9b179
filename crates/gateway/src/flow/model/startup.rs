//! Startup: rounds that are spread evenly over the RTT, and grow.
//!
//! Source: draft-ietf-ccwg-bbr, section 5.3.1. A round begins with the first byte sent after an
//! acknowledgment of the previous round. With b its bytes, T the minimum RTT and B the largest number of
//! bytes of any earlier round, it is a sign when
//!   b >= 1.35 B,  each quarter of T has 13 to 50 % of b,  no gap is longer than max(6 packets of it, T /
//!     25),  and it took no longer than 1.15 T.
//! A round is disturbed if no ACK was sent for 0.35 T, as behind a hole; then 7 % per quarter are enough.
//! Three signs are enough, or two from clean rounds: neither the round nor the one before was disturbed, it
//! has at least 24 packets and 15 to 42 % in each quarter, and no more than 15 % of it waited for the hop. An
//! even round that has not grown takes away half a sign.
//!
//! Why loss-based senders do not do this. Slow start without pacing sends a round as fast as ACKs arrive: it
//! is spread evenly only when the hop is full, but then half of the round waits, and the next round takes
//! longer. Slow start paced by Linux, at two windows per smoothed RTT, needs half of the RTT; at 1.2 windows
//! it needs five sixths, but does not grow by a third. After a hole the smoothed RTT is longer and so is the
//! round, but only for one round: three signs would need three losses at the right times. A link in front of
//! the gateway that is slower than the burst also spreads it, but then the round just fills that link, and
//! the next round cannot be larger.

use super::SenderView;
use bentpipe_base::{Duration, Instant};

/// Score needed, in thirds of a clean sign, and score of a round: clean, or other.
const ENOUGH: u8 = 6;
const CLEAN: u8 = 3;
const OTHER: u8 = 2;
/// Smallest number of packets of a round that counts, and of a clean round.
const FEW: u64 = 12;
const MANY: u64 = 24;
/// Growth over all earlier rounds.
const GROWTH: f64 = 1.35;
/// Range of the share in each quarter of the RTT: normal, disturbed and clean rounds.
const SHARE: (f64, f64) = (0.13, 0.5);
const DISTURBED_SHARE: (f64, f64) = (0.07, 0.5);
const CLEAN_SHARE: (f64, f64) = (0.15, 0.42);
/// Largest share of a clean round that waits for the hop.
const WAITS: f64 = 0.15;
/// In RTTs: the longest round, the longest time without ACKs in an undisturbed round, and the longest gap
/// between packets of a large round.
const LONGEST: f64 = 1.15;
const SILENCE: f64 = 0.35;
const GAP: f64 = 0.04;
/// The longest gap in a small round, in packets.
const GAP_PACKETS: f64 = 6.0;

/// The current round, and the score of the earlier ones.
#[derive(Debug, Default)]
pub(super) struct Startup {
    /// The round ends when more than this is acknowledged.
    end: u64,
    first: Instant,
    last: Instant,
    bytes: u64,
    /// Its bytes per quarter of the RTT; the last includes everything later.
    quarters: [u64; 4],
    gap: Duration,
    /// Largest number of bytes queued for the hop.
    waits: u64,
    /// The last ACK and its time, and the longest interval between ACKs.
    news: (u64, Instant),
    silence: Duration,
    was_disturbed: bool,
    most: u64,
    signs: u8,
    /// Rounds with enough packets to count.
    pub(super) rounds: u8,
}

impl Startup {
    pub(super) fn sent(&mut self, seen: &SenderView, bytes: u64) {
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

    /// The sender may have changed cwnd: discards the earlier observations.
    pub(super) fn lost(&mut self, top: u64) {
        *self = Self { end: top, news: self.news, rounds: self.rounds, ..Self::default() };
    }

    /// Notes an acknowledgment; true if the score is high enough.
    pub(super) fn told(&mut self, seen: &SenderView) -> bool {
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

    fn judge(&mut self, seen: &SenderView) {
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
