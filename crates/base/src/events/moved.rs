//! Comparing and moving the wake-ups that wait ([`Shift`](crate::shift::Shift)).
//!
//! A wake-up that waited when the state was recorded and still does is not repeated, and ends what may be
//! skipped. Those that come last among their time are left out: nodes request them again, and when they did
//! so changes nothing.

use super::{EventQueue, NONE, time_of};
use crate::few::Entry;
use crate::heap::{Key, Owner};
use crate::shift::{Purpose, Walk};
use crate::time::Duration;

/// The numbers of wake-ups that come last begin with this bit.
pub(super) const LAST: u64 = 1 << 63;

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
    fn sorted(&self, all: &mut Vec<(Key, Owner)>) {
        all.clear();
        let mut add = |key: Key, owner: Owner| {
            if key as u64 & LAST == 0 {
                all.push((key, owner));
            }
        };
        for (key, owner) in self.few.as_slice().iter().map(Entry::keyed) {
            add(key, owner);
        }
        for (word, bits) in self.filled.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let mut at = self.heads[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
                while at != NONE {
                    let entry = &self.entries[at as usize];
                    add(entry.key, entry.owner);
                    at = entry.next;
                }
            }
        }
        self.now.iter().for_each(|(key, owner)| add(*key, *owner));
        self.far.each(&mut add);
        all.sort_unstable_by_key(|wake| wake.0);
    }

    fn compare(&self, walk: &mut Walk<'_>) {
        let mut present = Vec::with_capacity(self.len());
        self.sorted(&mut present);
        let (period, now) = (walk.period(), walk.now());
        let recorded = core::mem::take(walk.wakes());
        let waits =
            |of: &[(Key, Owner)], wake: &(Key, Owner)| of.binary_search_by_key(&wake.0, |w| w.0).is_ok();
        let mut before = recorded.iter().filter(|wake| !waits(&present, wake));
        for wake in &present {
            let (at, owner) = (time_of(wake.0), wake.1);
            if waits(&recorded, wake) {
                walk.fixed_end(at);
            } else if before.next().is_none_or(|b| b.1 != owner || time_of(b.0) + period != at || at < now) {
                walk.end();
            }
        }
        if before.next().is_some() {
            walk.end();
        }
        *walk.wakes() = recorded;
    }

    /// Moves what repeats itself. What waits for a fixed time has been requested before it.
    fn forward(&mut self, walk: &mut Walk<'_>) {
        let mut present = Vec::with_capacity(self.len());
        self.sorted(&mut present);
        *self = Self { pushed: self.pushed, ..Self::default() };
        let stays = |wake: &(Key, Owner), walk: &mut Walk<'_>| {
            walk.wakes().binary_search_by_key(&wake.0, |w| w.0).is_ok()
        };
        let distance = walk.distance();
        for fixed in [true, false] {
            for wake in &present {
                if stays(wake, walk) == fixed {
                    let by = if fixed { Duration::ZERO } else { distance };
                    self.push(time_of(wake.0) + by, wake.1.0, wake.1.1);
                }
            }
        }
    }
}
