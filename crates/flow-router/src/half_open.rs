//! Flows whose request has had no response yet.
//!
//! Own mechanism against forged requests. A new flow takes part in the division when its first request
//! passes, so that the others have made room before it begins. A request that nobody answers must not keep
//! that share: it is forgotten after a time (3 s). If too many wait, or more requests stay unanswered than
//! are answered, the router distrusts requests: flows then take part only when their response passes.
//! Distrust begins when more wait than have a rate (at least 17), at `most` waiting flows, or at 32
//! unanswered requests if they are more than the answered ones; it ends below half of each. Both counts are
//! halved every 10 s, and when they reach 128 together.
//! Nothing is refused: in distrust a request is offered the share that it would have as a member. A crowd
//! that may be genuine (less than `most`, and not unanswered) counts in these offers, so that many flows that
//! begin at once do not get much more together than there is.
//! A burst shows within 5 ms whether it is a crowd. So if several wait, and all for less than that, the flows
//! with a rate are not told of a reduction yet.

use crate::flows::FlowKey;
use bentpipe_base::{Duration, Instant};
use std::collections::BTreeSet;

/// Unanswered requests that raise distrust.
const SUSPICIOUS: u32 = 32;
/// So many may always wait.
const CROWD: usize = 16;
/// Time in which a burst of requests shows how large it is.
const BURST: Duration = Duration::from_millis(5);
/// Requests remembered.
const MEMORY: u32 = 128;
/// Time after which half of them are forgotten.
const FADE: Duration = Duration::from_secs(10);

/// The flows that wait, and whether requests are trusted.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    waiting: BTreeSet<(Instant, FlowKey)>,
    most: usize,
    answered: u32,
    unanswered: u32,
    fades_at: Instant,
    distrusts: bool,
    /// Distrust only because many wait.
    is_crowded: bool,
}

impl HalfOpen {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            waiting: BTreeSet::new(),
            most: most as usize,
            answered: 0,
            unanswered: 0,
            fades_at: Instant::ZERO,
            distrusts: false,
            is_crowded: false,
        }
    }

    /// A flow waits since `since`.
    pub(crate) fn add(&mut self, since: Instant, key: FlowKey) {
        self.waiting.insert((since, key));
    }

    /// It waits no longer.
    pub(crate) fn remove(&mut self, since: Instant, key: FlowKey) {
        self.waiting.remove(&(since, key));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Counts a request that was answered, or stayed without an answer.
    pub(crate) fn note(&mut self, answered: bool) {
        if answered {
            self.answered += 1;
        } else {
            self.unanswered += 1;
        }
        if self.answered + self.unanswered >= MEMORY {
            self.halve();
        }
    }

    /// Forgets old evidence.
    pub(crate) fn fade(&mut self, now: Instant) {
        if now >= self.fades_at {
            self.halve();
            self.fades_at = now + FADE;
        }
    }

    /// The flow that has waited longest, if more wait than may.
    pub(crate) fn overflow(&self) -> Option<FlowKey> {
        let oldest = self.waiting.first().filter(|_| self.waiting.len() > self.most);
        oldest.map(|(_, key)| *key)
    }

    /// True if requests are not trusted.
    pub(crate) const fn distrusts(&self) -> bool {
        self.distrusts
    }

    /// Decides anew whether requests are trusted; true if that changed. `capable` flows have a rate.
    pub(crate) fn review(&mut self, capable: usize) -> bool {
        let before = self.distrusts;
        let (waiting, suspicious) =
            if before { (self.most / 2 + 1, SUSPICIOUS / 2) } else { (self.most, SUSPICIOUS) };
        let crowd = capable.max(CROWD) / if before { 2 } else { 1 };
        let is_forged = self.unanswered >= suspicious && self.unanswered > self.answered;
        let is_full = self.waiting.len() >= waiting;
        self.distrusts = is_full || is_forged || self.waiting.len() > crowd;
        self.is_crowded = self.distrusts && !is_full && !is_forged;
        self.distrusts != before
    }

    /// How many that are no members count in an offer, beside the one that asks.
    pub(crate) fn crowd(&self) -> u64 {
        if self.is_crowded { self.waiting.len().saturating_sub(1) as u64 } else { 0 }
    }

    /// True while several wait that are trusted and came just now.
    pub(crate) fn is_burst(&self, now: Instant) -> bool {
        let is_new =
            !self.distrusts && self.waiting.first().is_some_and(|(since, _)| now.since(*since) < BURST);
        is_new && self.waiting.len() > 1
    }

    /// All flows that wait.
    pub(crate) fn keys(&self) -> Vec<FlowKey> {
        self.waiting.iter().map(|(_, key)| *key).collect()
    }

    const fn halve(&mut self) {
        self.answered /= 2;
        self.unanswered /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Addr, Packet};

    fn key(n: u32) -> FlowKey {
        FlowKey::of(&Packet { src: Addr(n), ..Packet::default() })
    }

    #[test]
    fn many_that_wait_raise_distrust_until_half_are_gone() {
        let mut pool = HalfOpen::new(10);
        (0..9).for_each(|n| pool.add(Instant(u64::from(n)), key(n)));
        assert!(!pool.review(0) && !pool.distrusts());
        pool.add(Instant(9), key(9));
        assert!(pool.review(0) && pool.distrusts());
        assert_eq!(pool.overflow(), None);
        pool.add(Instant(10), key(10));
        assert_eq!((pool.overflow(), pool.keys().len()), (Some(key(0)), 11));
        (0..5).for_each(|n| pool.remove(Instant(u64::from(n)), key(n)));
        assert!(!pool.review(0), "six still wait");
        pool.remove(Instant(5), key(5));
        assert!(pool.review(0) && !pool.distrusts());
    }

    #[test]
    fn unanswered_requests_raise_distrust_unless_more_are_answered() {
        let mut pool = HalfOpen::new(100);
        (0..40).for_each(|_| pool.note(true));
        (0..40).for_each(|_| pool.note(false));
        assert!(!pool.review(0), "as many were answered");
        pool.note(false);
        assert!(pool.review(0) && pool.distrusts());
        pool.note(true);
        assert!(pool.review(0) && !pool.distrusts());
        (0..10).for_each(|_| pool.note(false));
        assert!(pool.review(0) && pool.distrusts());
        pool.fade(Instant::ZERO);
        assert!(!pool.review(0), "25 of 45 are still too many for trust");
        (0..5).for_each(|_| pool.note(true));
        assert!(pool.review(0) && !pool.distrusts());
    }

    #[test]
    fn a_crowd_counts_in_offers_and_takes_no_share() {
        let mut pool = HalfOpen::new(1024);
        (0..20).for_each(|n| pool.add(Instant(u64::from(n)), key(n)));
        assert!(!pool.review(20) && pool.crowd() == 0, "as many have a rate");
        assert!(pool.is_burst(Instant(4_999_999)) && !pool.is_burst(Instant(5_000_000)));
        assert!(pool.review(19) && !pool.is_burst(Instant(20)));
        assert_eq!(pool.crowd(), 19);
        (0..11).for_each(|n| pool.remove(Instant(u64::from(n)), key(n)));
        assert!(!pool.review(0), "nine are more than half of 16");
        pool.remove(Instant(11), key(11));
        assert!(pool.review(0) && pool.crowd() == 0);
        // what was never answered is no crowd
        (0..40).for_each(|_| pool.note(false));
        assert!(pool.review(0) && pool.crowd() == 0);
    }

    #[test]
    fn evidence_fades_with_time() {
        let mut pool = HalfOpen::new(100);
        pool.fade(Instant::ZERO);
        (0..32).for_each(|_| pool.note(false));
        assert!(pool.review(0));
        pool.fade(Instant(5_000_000_000));
        assert!(!pool.review(0), "too early");
        pool.fade(Instant(10_000_000_000));
        pool.fade(Instant(20_000_000_000));
        assert!(pool.review(0) && !pool.distrusts());
        assert_eq!(pool.unanswered, 8);
    }
}
