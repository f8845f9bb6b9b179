//! One reduction: what a flow must be told, when again, and from when on it is enforced.
//!
//! Source: Roberts, explicit-rate TCP: the router alters the next packet of a flow that must slow down, and
//! repeats it until the flow obeys. A flow must be told when its share is below its grant by more than 1/512
//! (one step of the rate format), or when it has lost its reservation. Repetitions come once per round trip,
//! the shortest that the router has seen from a SYN or structure to its answer; at most 200 ms until two were
//! measured, and never faster than every 10 ms. Data that is sent again may be what the receiver has, and
//! drops with all that it carries: while new data passes too, only that is used. Data before the last that
//! carried one is not used again: something behind the router may drop what has a structure, and this data
//! must arrive. A lower target in between is a new reduction and is told at once.
//! A flow that was told for eight of these intervals and has answered nothing is told ever more seldom: its
//! receiver's agent may be gone, and each structure costs it a packet. What it sends is limited all the same.
//! The old rate is tolerated for max(2 RTT, 200 ms) after the flow was told; a response with the lower rate
//! ends the reduction before that. A flow that cannot be told (no packet with room for a structure) is
//! tolerated for 1 s longer.

use bentpipe_base::{Duration, Instant};

/// Round-trip time before it was measured.
pub(crate) const UNKNOWN_RTT: Duration = Duration::from_millis(200);
/// What a measurement that may be of something else counts as at least.
pub(crate) const LEAST_DOUBTFUL: Duration = Duration::from_millis(50);
/// Shortest time between repetitions.
pub(crate) const LEAST_INTERVAL: Duration = Duration::from_millis(10);
/// Shortest time for which the old rate is tolerated.
pub(crate) const LEAST_GRACE: Duration = Duration::from_millis(200);
/// How long a flow may remain untold.
pub(crate) const UNTOLD: Duration = Duration::from_secs(1);

/// Intervals for which a flow is told without an answer before the time between grows.
const PATIENCE: u32 = 8;
/// How often this time is doubled at most.
const MOST_DOUBLED: u32 = 6;

/// How often a flow was told since it last answered anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unheard {
    intervals: u32,
    last: Option<Instant>,
}

impl Unheard {
    /// True while it must not be told again.
    pub(crate) fn is_pause(&self, now: Instant, interval: Duration) -> bool {
        let doubled = self.intervals.saturating_sub(PATIENCE).min(MOST_DOUBLED);
        doubled > 0 && self.last.is_some_and(|last| now.since(last) < interval * (1 << doubled))
    }

    /// It was told; counted once per interval, in which several reductions may follow each other.
    pub(crate) fn note(&mut self, now: Instant, interval: Duration) {
        if self.last.is_none_or(|last| now.since(last) >= interval) {
            self.intervals = self.intervals.saturating_add(1);
            self.last = Some(now);
        }
    }
}

/// True if `rate` is below `granted` by more than a step of the rate format.
pub(crate) const fn is_lower(rate: u64, granted: u64) -> bool {
    rate < granted - granted / 512
}

/// A reduction that the flow has not answered yet. Rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Telling {
    /// AR and GR from now on.
    target: (u64, u64),
    /// When it was last told.
    told: Option<Instant>,
    /// When the target is enforced.
    deadline: Instant,
    /// An earlier target that still waits for its deadline: further falls do not put it off.
    first: Option<((u64, u64), Instant)>,
}

impl Telling {
    /// A reduction that was not told yet.
    pub(crate) fn begin(now: Instant, target: (u64, u64), grace: Duration) -> Self {
        Self { target, told: None, deadline: now + grace + UNTOLD, first: None }
    }

    /// True if the flow must be told now; before it was told the first time, the target follows the share.
    pub(crate) fn is_due(&mut self, now: Instant, target: (u64, u64), interval: Duration) -> bool {
        if self.told.is_none() {
            self.target = target;
        }
        self.told.is_none_or(|told| now.since(told) >= interval) || self.is_below(target)
    }

    /// The flow was told; true if that was a new reduction rather than a repetition.
    pub(crate) fn tell(&mut self, now: Instant, target: (u64, u64), grace: Duration) -> bool {
        let is_new = self.told.is_none() || self.is_below(target);
        if is_new {
            self.limit(now, target, grace);
        }
        self.target = target;
        self.told = Some(now);
        is_new
    }

    /// The flow is not told for some time, but enforced is a lower target all the same.
    pub(crate) fn hold(&mut self, now: Instant, target: (u64, u64), grace: Duration) {
        if self.told.is_none() {
            self.target = target;
        } else if self.is_below(target) {
            self.limit(now, target, grace);
        }
    }

    /// A new target, which is enforced after `grace`.
    fn limit(&mut self, now: Instant, target: (u64, u64), grace: Duration) {
        if self.told.is_some() && (self.first.is_none() || now >= self.deadline) {
            self.first = Some((self.target, self.deadline));
        }
        (self.target, self.deadline) = (target, now + grace);
    }

    /// True if a response with these rates obeys.
    pub(crate) const fn is_answered_by(&self, available: u64, guaranteed: u64) -> bool {
        self.told.is_some() && available <= self.target.0 && guaranteed <= self.target.1
    }

    /// The most that the flow may send, once it is enforced.
    pub(crate) fn ceiling(&self, now: Instant) -> Option<u64> {
        let first = self.first.filter(|(_, deadline)| now >= *deadline).map(|(target, _)| target);
        let target = if now >= self.deadline { Some(self.target) } else { first };
        target.map(|(available, guaranteed)| available.saturating_add(guaranteed))
    }

    /// True if `target` is a further reduction.
    const fn is_below(&self, target: (u64, u64)) -> bool {
        is_lower(target.0, self.target.0) || target.1 < self.target.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const GRACE: Duration = Duration::from_millis(200);

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    #[test]
    fn a_step_of_the_format_is_no_reduction() {
        assert!(!is_lower(511, 512) && is_lower(510, 512) && !is_lower(7, 7) && is_lower(6, 7));
        assert!(!is_lower(0, 0));
    }

    #[test]
    fn it_is_repeated_once_per_round_trip_and_counted_once() {
        let mut telling = Telling::begin(at(0), (500, 0), GRACE);
        assert!(telling.is_due(at(0), (500, 0), RTT) && telling.tell(at(0), (500, 0), GRACE));
        assert!(!telling.is_due(at(99), (500, 0), RTT));
        assert!(telling.is_due(at(100), (500, 0), RTT) && !telling.tell(at(100), (500, 0), GRACE));
        // a further fall is told at once and is a new one
        assert!(telling.is_due(at(101), (300, 0), RTT) && telling.tell(at(101), (300, 0), GRACE));
        // a share that recovers a little is not
        assert!(!telling.is_due(at(102), (400, 0), RTT));
    }

    #[test]
    fn a_flow_that_never_answers_is_told_ever_more_seldom() {
        let (mut unheard, mut told) = (Unheard::default(), Vec::new());
        for n in 0..300 {
            if !unheard.is_pause(at(100 * n), RTT) {
                unheard.note(at(100 * n), RTT);
                told.push(n);
            }
        }
        assert_eq!(told, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 22, 38, 70, 134, 198, 262]);
        // several in one round trip count once
        let mut unheard = Unheard::default();
        (0..50).for_each(|n| unheard.note(at(n), RTT));
        assert!(!unheard.is_pause(at(50), RTT));
    }

    #[test]
    fn a_lost_reservation_is_a_reduction() {
        let mut telling = Telling::begin(at(0), (500, 64), GRACE);
        assert!(telling.tell(at(0), (500, 64), GRACE));
        assert!(telling.is_due(at(1), (500, 0), RTT) && telling.tell(at(1), (500, 0), GRACE));
        assert!(!telling.is_answered_by(500, 64) && telling.is_answered_by(500, 0));
    }

    #[test]
    fn it_is_enforced_after_the_grace_time_even_if_it_is_repeated() {
        let mut telling = Telling::begin(at(0), (500, 10), GRACE);
        telling.tell(at(50), (500, 10), GRACE);
        telling.tell(at(150), (500, 10), GRACE);
        assert_eq!((telling.ceiling(at(249)), telling.ceiling(at(250))), (None, Some(510)));
        assert!(!telling.is_answered_by(501, 10) && telling.is_answered_by(500, 10));
    }

    #[test]
    fn further_falls_do_not_put_off_the_first() {
        let mut telling = Telling::begin(at(0), (500, 0), GRACE);
        (0..10).for_each(|n| assert!(telling.tell(at(150 * n), (500 - 40 * n, 0), GRACE)));
        let ceilings = [199, 200, 1549, 1550].map(|ms| telling.ceiling(at(ms)));
        assert_eq!(ceilings, [None, Some(500), Some(500), Some(140)]);
    }

    #[test]
    fn a_flow_that_cannot_be_told_is_tolerated_longer() {
        let mut telling = Telling::begin(at(0), (500, 0), GRACE);
        assert!(telling.is_due(at(10), (400, 0), RTT), "until it is told");
        assert!(!telling.is_answered_by(0, 0), "what was not told is not answered");
        assert_eq!((telling.ceiling(at(1199)), telling.ceiling(at(1200))), (None, Some(400)));
    }
}
