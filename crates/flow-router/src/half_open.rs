//! Flows whose request has had no response yet.
//!
//! Own mechanism against forged requests. A new flow takes part in the division when its first request
//! passes, so that the others have made room before it begins. A request that nobody answers must not keep
//! that share: it is forgotten after a time (3 s). Of those that wait, the oldest take part: as many as have
//! a rate, at least 8. The others take part when their response passes, or when one before them has left.
//! Distrust, in which none of them takes part, begins at `most` waiting flows, if more than a quarter of as
//! many as have a rate, at least 4, wait for twice the longest time to an answer of late (at least 100 ms;
//! 1 s before the first answer), or at 32 unanswered requests if they are more than the answered ones. It
//! ends below half of each. Both counts are halved every 10 s, and when they reach 128 together; the
//! longest time falls by 1/16 with each answer. Nothing is refused: a request is offered the share that it
//! would have as a member. A crowd that may be genuine (fewer than `most`, and earlier ones were answered)
//! counts in these offers, so that many flows that begin at once do not get much more together than there
//! is. A burst shows within 5 ms whether it is a crowd. So if several wait, all for less than that, or more
//! than 8 came within that time, the flows with a rate are not told of a reduction yet.

use crate::flows::FlowKey;
use bentpipe_base::{Duration, Instant};
use std::collections::BTreeSet;

/// Unanswered requests that raise distrust.
const SUSPICIOUS: u32 = 32;
/// So many that wait may take part.
const CROWD: usize = 8;
/// So many may be overdue.
const FEW: usize = 4;
/// Shortest time after which a request without an answer is overdue.
const LEAST_OVERDUE: Duration = Duration::from_millis(100);
/// The same before the first answer: the first timeout of a SYN (RFC 6298, section 2).
const UNKNOWN_OVERDUE: Duration = Duration::from_secs(1);
/// Time in which a burst of requests shows how large it is.
const BURST: Duration = Duration::from_millis(5);
/// Requests remembered.
const MEMORY: u32 = 128;
/// Time after which half of them are forgotten.
const FADE: Duration = Duration::from_secs(10);

/// The flows that wait, and which of them take part.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    waiting: BTreeSet<(Instant, FlowKey)>,
    /// Those that take part: the oldest.
    members: BTreeSet<(Instant, FlowKey)>,
    most: usize,
    /// Most of them that may take part.
    most_members: usize,
    answered: u32,
    unanswered: u32,
    fades_at: Instant,
    /// The longest time to an answer, of late.
    longest: Duration,
    distrusts: bool,
    /// Distrust because of their number, or of earlier ones without answers.
    is_flood: bool,
}

impl HalfOpen {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            waiting: BTreeSet::new(),
            members: BTreeSet::new(),
            most: most as usize,
            most_members: CROWD,
            answered: 0,
            unanswered: 0,
            fades_at: Instant::ZERO,
            longest: Duration::ZERO,
            distrusts: false,
            is_flood: false,
        }
    }

    /// A flow waits since `since`.
    pub(crate) fn add(&mut self, since: Instant, key: FlowKey) {
        let are_all = self.members.len() == self.waiting.len();
        self.waiting.insert((since, key));
        if are_all && self.members.len() < self.most_members {
            self.members.insert((since, key));
        }
    }

    /// It waits no longer.
    pub(crate) fn remove(&mut self, since: Instant, key: FlowKey) {
        self.waiting.remove(&(since, key));
        self.members.remove(&(since, key));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Counts a request that was answered after this time, or stayed without an answer.
    pub(crate) fn note(&mut self, answer: Option<Duration>) {
        if let Some(time) = answer {
            self.answered += 1;
            self.longest = time.max(self.longest - self.longest / 16);
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

    /// True if a flow that waits takes part in the division.
    pub(crate) fn is_member(&self, since: Instant, key: FlowKey) -> bool {
        self.members.contains(&(since, key))
    }

    /// Decides anew who takes part, and returns those for whom that changed. `capable` flows have a rate.
    pub(crate) fn review(&mut self, now: Instant, capable: usize) -> Vec<FlowKey> {
        let (crowd, few) = (capable.max(CROWD), (capable / 4).max(FEW));
        let (full, suspicious, overdue) = if self.distrusts {
            (self.most / 2 + 1, SUSPICIOUS / 2, few / 2)
        } else {
            (self.most, SUSPICIOUS, few)
        };
        let is_forged = self.unanswered >= suspicious && self.unanswered > self.answered;
        let late =
            if self.longest.is_zero() { UNKNOWN_OVERDUE } else { (self.longest * 2).max(LEAST_OVERDUE) };
        let is_overdue = self.waiting.len() > overdue
            && self.waiting.iter().nth(overdue).is_some_and(|(since, _)| now.since(*since) > late);
        self.is_flood = self.waiting.len() >= full || is_forged;
        self.distrusts = self.is_flood || is_overdue;
        self.most_members = if self.distrusts { 0 } else { crowd };
        let mut changed = Vec::new();
        while self.members.len() > self.most_members {
            changed.extend(self.members.pop_last().map(|(_, key)| key));
        }
        // none if all take part, as they mostly do
        let room = self.most_members.min(self.waiting.len()) - self.members.len();
        let others = self.waiting.iter().filter(|entry| !self.members.contains(entry));
        let next: Vec<_> = others.take(room).copied().collect();
        changed.extend(next.iter().map(|(_, key)| *key));
        self.members.extend(next);
        changed
    }

    /// How many that do not take part count in an offer, beside the one that asks.
    pub(crate) fn crowd(&self, is_member: bool) -> u64 {
        let others = self.waiting.len().saturating_sub(self.members.len() + usize::from(!is_member));
        if self.is_flood { 0 } else { others as u64 }
    }

    /// True while it is not clear whether those that came just now are a crowd.
    pub(crate) fn is_burst(&self, now: Instant) -> bool {
        let is_new =
            |entry: Option<&(Instant, FlowKey)>| entry.is_some_and(|(since, _)| now.since(*since) < BURST);
        let are_new = self.waiting.len() > 1 && is_new(self.waiting.first());
        !self.distrusts && (are_new || is_new(self.waiting.iter().nth_back(CROWD)))
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
    use core::ops::Range;

    fn key(n: u32) -> FlowKey {
        FlowKey::of(&Packet { src: Addr(n), ..Packet::default() })
    }

    fn ms(n: u64) -> Instant {
        Instant(n * 1_000_000)
    }

    /// Answers within this time, as many as there are numbers.
    fn note(pool: &mut HalfOpen, numbers: Range<u32>, answer: Option<Duration>) {
        numbers.for_each(|_| pool.note(answer));
    }

    fn members(pool: &HalfOpen, numbers: Range<u32>) -> usize {
        numbers.filter(|n| pool.is_member(ms(u64::from(*n)), key(*n))).count()
    }

    const SOON: Option<Duration> = Some(Duration::from_millis(40));

    #[test]
    fn many_that_wait_raise_distrust_until_half_are_gone() {
        let mut pool = HalfOpen::new(10);
        (0..9).for_each(|n| pool.add(ms(u64::from(n)), key(n)));
        assert_eq!(pool.review(ms(9), 10), [key(8)]);
        assert!(!pool.distrusts());
        assert_eq!(members(&pool, 0..9), 9);
        pool.add(ms(9), key(9));
        assert_eq!(pool.review(ms(9), 10).len(), 10);
        assert!(pool.distrusts() && members(&pool, 0..10) == 0);
        assert_eq!(pool.overflow(), None);
        pool.add(ms(10), key(10));
        assert_eq!(pool.overflow(), Some(key(0)));
        (0..5).for_each(|n| pool.remove(ms(u64::from(n)), key(n)));
        assert!(pool.review(ms(10), 10).is_empty(), "six still wait");
        pool.remove(ms(5), key(5));
        assert_eq!(pool.review(ms(10), 10).len(), 5);
        assert!(!pool.distrusts());
    }

    #[test]
    fn unanswered_requests_raise_distrust_unless_more_are_answered() {
        let mut pool = HalfOpen::new(100);
        let distrusts = |pool: &mut HalfOpen| {
            pool.review(ms(0), 0);
            pool.distrusts()
        };
        note(&mut pool, 0..40, SOON);
        note(&mut pool, 0..40, None);
        assert!(!distrusts(&mut pool), "as many were answered");
        note(&mut pool, 0..1, None);
        assert!(distrusts(&mut pool));
        note(&mut pool, 0..1, SOON);
        assert!(!distrusts(&mut pool));
        note(&mut pool, 0..10, None);
        assert!(distrusts(&mut pool));
        (0..5).for_each(|n| pool.add(ms(0), key(n)));
        assert_eq!(pool.crowd(false), 0);
        (0..5).for_each(|n| pool.remove(ms(0), key(n)));
        pool.fade(Instant::ZERO);
        assert!(distrusts(&mut pool), "25 of 45 are still too many for trust");
        note(&mut pool, 0..5, SOON);
        assert!(!distrusts(&mut pool));
    }

    #[test]
    fn the_oldest_of_a_crowd_take_part_and_the_others_count_in_offers() {
        let mut pool = HalfOpen::new(1024);
        note(&mut pool, 0..1, SOON);
        (0..40).for_each(|n| pool.add(ms(u64::from(n)), key(n)));
        assert_eq!((members(&pool, 0..8), members(&pool, 8..40)), (8, 0));
        assert_eq!((pool.crowd(true), pool.crowd(false)), (32, 31));
        // as many as have a rate
        assert_eq!(pool.review(ms(40), 10), [8, 9].map(key));
        // the next ones, when some have left
        (0..3).for_each(|n| pool.remove(ms(u64::from(n)), key(n)));
        assert_eq!(pool.review(ms(40), 10), [10, 11, 12].map(key));
        // with fewer that have a rate, the youngest of them leave
        assert_eq!(pool.review(ms(40), 0), [12, 11].map(key));
        assert!(!pool.distrusts() && members(&pool, 3..11) == 8);
    }

    #[test]
    fn a_crowd_without_answers_is_distrusted() {
        let mut pool = HalfOpen::new(1024);
        note(&mut pool, 0..1, Some(Duration::from_millis(300)));
        (0..5).for_each(|n| pool.add(ms(u64::from(n)), key(n)));
        assert!(pool.review(ms(604), 0).is_empty() && !pool.distrusts());
        assert!(pool.review(ms(605), 23).is_empty(), "more have a rate");
        assert_eq!(pool.review(ms(605), 0).len(), 5);
        assert!(pool.distrusts() && (pool.crowd(true), pool.crowd(false)) == (5, 4), "they may come late");
        // until no more than half as many wait for so long
        (0..2).for_each(|n| pool.remove(ms(u64::from(n)), key(n)));
        assert!(pool.review(ms(700), 0).is_empty());
        pool.remove(ms(2), key(2));
        assert_eq!(pool.review(ms(700), 0).len(), 2);
        // the time is that of late answers
        note(&mut pool, 0..40, SOON);
        (20..24).for_each(|n| pool.add(ms(u64::from(n) + 700), key(n)));
        pool.review(ms(821), 0);
        assert!(!pool.distrusts());
        pool.review(ms(823), 0);
        assert!(pool.distrusts());
    }

    #[test]
    fn a_burst_is_not_told() {
        let mut pool = HalfOpen::new(1024);
        pool.add(ms(0), key(0));
        assert!(!pool.is_burst(ms(1)), "one is no burst");
        pool.add(ms(1), key(1));
        assert!(pool.is_burst(ms(4)) && !pool.is_burst(ms(5)));
        (2..10).for_each(|n| pool.add(ms(10), key(n)));
        assert!(!pool.is_burst(ms(10)), "eight may come at once");
        pool.add(ms(10), key(10));
        assert!(pool.is_burst(ms(14)) && !pool.is_burst(ms(15)));
    }

    #[test]
    fn evidence_fades_with_time() {
        let mut pool = HalfOpen::new(100);
        pool.fade(Instant::ZERO);
        note(&mut pool, 0..32, None);
        pool.review(ms(0), 0);
        pool.fade(Instant(5_000_000_000));
        pool.review(ms(5000), 0);
        assert!(pool.distrusts(), "too early");
        pool.fade(Instant(10_000_000_000));
        pool.fade(Instant(20_000_000_000));
        pool.review(ms(20_000), 0);
        assert!(!pool.distrusts());
        assert_eq!(pool.unanswered, 8);
    }
}
