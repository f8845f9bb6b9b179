//! Comparing and moving the wake-ups that wait ([`Shift`](crate::shift::Shift)).
//!
//! A wake-up that waited when the state was recorded and still does is not repeated, and ends what may be
//! skipped. Those that come last among their time are left out: nodes request them again, and when they did
//! so changes nothing.

use super::{EventQueue, Key, LAST, NONE};
use crate::shift::{Purpose, Walk};
use crate::time::{Duration, Instant};

impl Key {
    /// The key of the same wake-up some time later.
    const fn later(self, by: Duration) -> Self {
        Self { at: self.at.saturating_add(by.0), since: self.since.saturating_add(by.0), ..self }
    }
}

impl EventQueue {
    /// Visits the wake-ups.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>) {
        match walk.purpose() {
            _ if walk.has_ended() => {}
            Purpose::Record => self.sorted(walk.wakes()),
            Purpose::Compare => self.compare(walk),
            Purpose::Move(_) => self.forward(walk),
        }
    }

    /// Puts all wake-ups but those that come last into `all`, in order.
    fn sorted(&self, all: &mut Vec<Key>) {
        all.clear();
        all.extend_from_slice(self.few.as_slice());
        for (word, bits) in self.filled.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let mut at = self.heads[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
                while at != NONE {
                    let entry = &self.entries[at as usize];
                    all.push(entry.key);
                    at = entry.next;
                }
            }
        }
        all.extend_from_slice(&self.now);
        all.extend_from_slice(self.far.as_slice());
        all.retain(|key| key.since != LAST);
        all.sort_unstable();
    }

    fn compare(&self, walk: &mut Walk<'_>) {
        let mut present = Vec::with_capacity(self.len());
        self.sorted(&mut present);
        let (period, now) = (walk.period(), walk.now());
        let recorded = core::mem::take(walk.wakes());
        let waits = |of: &[Key], key: &Key| of.binary_search(key).is_ok();
        let mut before = recorded.iter().filter(|key| !waits(&present, key));
        for key in &present {
            if waits(&recorded, key) {
                walk.fixed_end(Instant(key.at));
            } else if key.at < now.0 || before.next().is_none_or(|b| b.later(period) != *key) {
                walk.end();
            }
        }
        if before.next().is_some() {
            walk.end();
        }
        *walk.wakes() = recorded;
    }

    /// Moves what repeats itself. What waits for a fixed time stays.
    fn forward(&mut self, walk: &mut Walk<'_>) {
        let mut present = Vec::with_capacity(self.len());
        self.sorted(&mut present);
        *self = Self::default();
        let distance = walk.distance();
        for key in present {
            let stays = walk.wakes().binary_search(&key).is_ok();
            let by = if stays { Duration::ZERO } else { distance };
            self.push_key(key.later(by));
        }
    }
}
