//! What a flow was offered in structures under way, so that a response is matched with its offer.
//!
//! Own mechanism: a structure has no number. A response carries the rates of its request, possibly lowered
//! behind this router. Several may be under way: the first request, a raise, and reductions that this router
//! inserted and repeated. Structures mostly arrive in order, so a response belongs to
//!   the oldest offer with its rates; else the oldest with its AR; else the oldest with a higher AR
//! and all offers before that one are settled too. A response with a higher AR than every offer was raised on
//! the way: it settles nothing, and the highest offer holds. Equal offers in a row are one entry. The time of
//! an entry is that of its first offer, so a round trip after a loss is measured too long rather than too
//! short. But a request counts from its last repetition: its sender waits for two round trips before it
//! repeats it, so the first one is lost. Defaults: 16 entries, 5 s.

use bentpipe_base::{Duration, Instant};
use std::collections::VecDeque;

/// Most entries of a flow.
const MOST: usize = 16;
/// A response is not expected later than this.
const LIFE: Duration = Duration::from_secs(5);

/// The offer to which a response belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// AR, bit/s.
    pub(crate) available: u64,
    /// GR, bit/s.
    pub(crate) guaranteed: u64,
    /// True if this router inserted the structure; false if the flow asked.
    pub(crate) is_inserted: bool,
    /// When it passed, if this is the first response to it.
    pub(crate) asked_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    offer: Offer,
    last: Instant,
    count: u32,
}

/// Offers under way, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    list: VecDeque<Entry>,
}

impl Offers {
    /// Adds an offer.
    pub(crate) fn push(&mut self, now: Instant, (available, guaranteed): (u64, u64), is_inserted: bool) {
        self.forget_old(now);
        let offer = Offer { available, guaranteed, is_inserted, asked_at: Some(now) };
        if let Some(last) = self.list.back_mut()
            && (Offer { asked_at: Some(now), ..last.offer }) == offer
        {
            last.count += 1;
            last.last = now;
            if !is_inserted {
                last.offer.asked_at = Some(now);
            }
            return;
        }
        if self.list.len() == MOST {
            self.list.pop_front();
        }
        self.list.push_back(Entry { offer, last: now, count: 1 });
    }

    /// Returns the offer to which a response with these rates belongs, and settles it and those before it.
    pub(crate) fn answer(&mut self, now: Instant, available: u64, guaranteed: u64) -> Option<Offer> {
        self.forget_old(now);
        let oldest = |is_it: &dyn Fn(&Offer) -> bool| self.list.iter().position(|entry| is_it(&entry.offer));
        let found = oldest(&|offer| offer.available == available && offer.guaranteed == guaranteed)
            .or_else(|| oldest(&|offer| offer.available == available))
            .or_else(|| oldest(&|offer| offer.available > available));
        let Some(found) = found else {
            let highest = self.list.iter().map(|entry| entry.offer).max_by_key(|offer| offer.available);
            return highest.map(|offer| Offer { asked_at: None, ..offer });
        };
        self.list.drain(..found);
        let entry = self.list.front_mut()?;
        entry.count -= 1;
        let answered = Offer { asked_at: entry.offer.asked_at.take(), ..entry.offer };
        if entry.count == 0 {
            self.list.pop_front();
        }
        Some(answered)
    }

    /// The highest AR under way, bit/s.
    pub(crate) fn highest(&self, now: Instant) -> u64 {
        let fresh = self.list.iter().filter(|entry| now.since(entry.last) <= LIFE);
        fresh.map(|entry| entry.offer.available).max().unwrap_or(0)
    }

    /// When the flow asked last, if there was no response since.
    pub(crate) fn asked_last(&self) -> Option<Instant> {
        self.list.iter().rev().filter(|entry| !entry.offer.is_inserted).find_map(|entry| entry.offer.asked_at)
    }

    fn forget_old(&mut self, now: Instant) {
        while self.list.front().is_some_and(|entry| now.since(entry.last) > LIFE) {
            self.list.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn with(list: &[(u64, u64, bool)]) -> Offers {
        let mut offers = Offers::default();
        for (ms, available, is_inserted) in list {
            offers.push(at(*ms), (*available, 0), *is_inserted);
        }
        offers
    }

    fn answered(offers: &mut Offers, available: u64) -> Option<(u64, bool, Option<Instant>)> {
        offers.answer(at(900), available, 0).map(|offer| (offer.available, offer.is_inserted, offer.asked_at))
    }

    #[test]
    fn responses_in_order_find_their_offers() {
        let mut offers = with(&[(0, 20, false), (10, 10, true), (20, 30, false)]);
        assert_eq!(offers.highest(at(20)), 30);
        assert_eq!(answered(&mut offers, 20), Some((20, false, Some(at(0)))));
        assert_eq!(answered(&mut offers, 10), Some((10, true, Some(at(10)))));
        // lowered behind this router
        assert_eq!(answered(&mut offers, 25), Some((30, false, Some(at(20)))));
        assert_eq!((answered(&mut offers, 5), offers.highest(at(20))), (None, 0));
    }

    #[test]
    fn a_lost_response_does_not_keep_its_offer() {
        let mut offers = with(&[(0, 20, false), (10, 10, true)]);
        assert_eq!(answered(&mut offers, 10), Some((10, true, Some(at(10)))));
        assert_eq!(answered(&mut offers, 20), None);
    }

    #[test]
    fn repetitions_are_one_entry_that_measures_one_round_trip() {
        let mut offers = with(&[(0, 10, true), (200, 10, true), (400, 10, true)]);
        assert_eq!(offers.list.len(), 1);
        assert_eq!(answered(&mut offers, 10), Some((10, true, Some(at(0)))));
        assert_eq!(answered(&mut offers, 10), Some((10, true, None)));
        assert_eq!(answered(&mut offers, 10), Some((10, true, None)));
        assert_eq!(answered(&mut offers, 10), None);
    }

    #[test]
    fn a_repeated_request_is_measured_from_its_last_repetition() {
        let mut offers = with(&[(0, 10, false), (200, 10, false)]);
        assert_eq!(answered(&mut offers, 10), Some((10, false, Some(at(200)))));
    }

    #[test]
    fn a_response_above_every_offer_settles_nothing() {
        let mut offers = with(&[(0, 20, false), (10, 10, true)]);
        assert_eq!(answered(&mut offers, 50), Some((20, false, None)));
        assert_eq!(answered(&mut offers, 20), Some((20, false, Some(at(0)))));
    }

    #[test]
    fn the_guaranteed_rate_tells_offers_with_one_available_rate_apart() {
        let mut offers = Offers::default();
        offers.push(at(0), (0, 64), false);
        offers.push(at(5), (0, 0), true);
        assert_eq!(offers.answer(at(9), 0, 0).map(|offer| offer.is_inserted), Some(true));
    }

    #[test]
    fn offers_are_few_and_grow_old() {
        let list: Vec<(u64, u64, bool)> = (1..=40).map(|i| (i, 100 - i, false)).collect();
        let mut offers = with(&list);
        assert_eq!((offers.list.len(), offers.highest(at(41))), (MOST, 75));
        assert_eq!(offers.highest(at(5500)), 0);
        assert_eq!(offers.answer(at(5500), 60, 0), None);
    }
}
