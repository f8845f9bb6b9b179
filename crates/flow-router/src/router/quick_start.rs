//! Requests for a rate to begin with, by Quick-Start.
//!
//! Source: RFC 4782, sections 3.1 to 3.3. A router approves what its link has unused:
//!   approved <= C u - load - reservations - what it approved lately, rounded down to a rate code
//!   load: the highest rate of the last ten intervals of 100 ms
//!   lately: 1 s, in which an approved flow begins to send and its traffic becomes load
//! It lowers QS TTL by as many hops as the router before it lowers the TTL. A report of a lower rate than it
//! approved gives back the difference. It keeps no state of a flow beyond that second.
//! Readings: the RFC leaves open how load is measured and how long an approval counts; it must be longer than
//! a round trip, or what is approved twice is given twice. 1 s covers a geostationary hop.

use super::FlowRouter;
use crate::flows::FlowKey;
use bentpipe_advice::negotiation::Encoding;
use bentpipe_advice::quick_start::packet::{of_ip, pass_in};
use bentpipe_advice::quick_start::{Fields, Function, Hop, RateCode};
use bentpipe_base::{Duration, Instant, Packet, Rate, Size, mix};
use std::collections::VecDeque;

/// Length of an interval in which load is measured.
const INTERVAL: Duration = Duration::from_millis(100);
/// Intervals over which it is the highest.
const INTERVALS: usize = 10;
/// How long an approval counts.
const LATELY: Duration = Duration::from_secs(1);
/// Most approvals that count at a time; then none is given.
const MOST: usize = 1024;

/// Load of the link, and what was approved of the rest.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    /// Bits of each interval, by its number modulo the length.
    bits: [u64; INTERVALS],
    /// Number of the last interval in which a packet passed.
    interval: u64,
    /// Oldest first; bit/s.
    recent: VecDeque<(Instant, FlowKey, u64)>,
    /// All approvals so far: the nonces differ.
    count: u64,
}

impl Approvals {
    /// Counts a packet that goes into the link.
    pub(super) fn note(&mut self, now: Instant, size: Size) {
        self.advance(now);
        let bits = &mut self.bits[self.interval as usize % INTERVALS];
        *bits = bits.saturating_add(size.bits());
    }

    /// Clears the intervals that have begun since the last packet.
    fn advance(&mut self, now: Instant) {
        let current = now.0 / INTERVAL.0;
        let passed = current.saturating_sub(self.interval).min(INTERVALS as u64);
        for n in 0..passed {
            self.bits[(current - n) as usize % INTERVALS] = 0;
        }
        self.interval = self.interval.max(current);
    }

    /// The load in bit/s.
    fn load(&mut self, now: Instant) -> u64 {
        self.advance(now);
        let most = self.bits.iter().copied().max().unwrap_or(0);
        most.saturating_mul(1_000_000_000 / INTERVAL.0)
    }

    /// What was approved lately, bit/s.
    fn approved(&mut self, now: Instant) -> u64 {
        while self.recent.front().is_some_and(|(at, ..)| now.since(*at) >= LATELY) {
            self.recent.pop_front();
        }
        self.recent.iter().fold(0, |sum, (.., bps)| sum.saturating_add(*bps))
    }

    /// Approves at most `wanted` of `available`, in bit/s, and remembers it.
    fn approve(&mut self, now: Instant, key: FlowKey, wanted: RateCode, available: u64) -> RateCode {
        // a request that is repeated takes the place of the first one
        self.recent.retain(|(_, other, _)| *other != key);
        let left = available.saturating_sub(self.load(now)).saturating_sub(self.approved(now));
        let code = Rate::from_bps(left).map_or(RateCode::NONE, RateCode::at_most).min(wanted);
        let Some(rate) = code.rate().filter(|_| self.recent.len() < MOST) else { return RateCode::NONE };
        self.recent.push_back((now, key, rate.bps()));
        code
    }

    /// The sender reports what it was granted in the end.
    fn report(&mut self, key: &FlowKey, granted: RateCode) {
        let granted = granted.rate().map_or(0, Rate::bps);
        if let Some((.., bps)) = self.recent.iter_mut().find(|(_, other, _)| other == key) {
            *bps = granted.min(*bps);
        }
    }

    /// Bits for the nonce.
    fn random(&mut self, now: Instant) -> u32 {
        self.count += 1;
        mix(now.0 ^ mix(self.count)) as u32
    }
}

impl FlowRouter {
    /// Approves what a request in a packet from the senders may have.
    pub(super) fn quick_start(&mut self, now: Instant, key: FlowKey, packet: &mut Packet) {
        let Some(fields) = of_ip(packet).filter(|_| self.speaks(Encoding::QuickStart)) else { return };
        match fields.function() {
            Some(Function::Request) if fields.rate() != RateCode::NONE => {
                let hop = self.hop(now, key, fields);
                self.counts.requests += 1;
                self.counts.refused += u64::from(hop.approved == RateCode::NONE);
                pass_in(packet, hop);
            }
            Some(Function::Report) => self.approvals.report(&key, fields.rate()),
            _ => {}
        }
    }

    fn hop(&mut self, now: Instant, key: FlowKey, request: Fields) -> Hop {
        let available = self.capacity().saturating_sub(self.reservations.total());
        let approved = self.approvals.approve(now, key, request.rate(), available);
        Hop { approved, hops: self.config.hops, random: self.approvals.random(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Addr;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn key(n: u32) -> FlowKey {
        FlowKey::of(&Packet { src: Addr(n), ..Packet::default() })
    }

    fn code(code: u8) -> RateCode {
        RateCode::new(code).unwrap()
    }

    /// 10 Mbit/s: code 7 is 5.12 Mbit/s, code 6 is 2.56.
    #[test]
    fn what_was_approved_lately_is_not_approved_again() {
        let mut approvals = Approvals::default();
        let mut ask = |ms, n| approvals.approve(at(ms), key(n), RateCode::MAX, 10_000_000);
        assert_eq!((ask(0, 1), ask(1, 2), ask(2, 3), ask(3, 4)), (code(7), code(6), code(5), code(4)));
        // a second later the first ones count no more
        assert_eq!((ask(999, 5), ask(1000, 6)), (code(3), code(7)));
    }

    #[test]
    fn load_is_the_highest_of_a_second() {
        let mut approvals = Approvals::default();
        approvals.note(at(50), Size(50_000)); // 4 Mbit/s over 100 ms
        approvals.note(at(250), Size(12_500));
        assert_eq!((approvals.load(at(300)), approvals.load(at(999))), (4_000_000, 4_000_000));
        assert_eq!((approvals.load(at(1000)), approvals.load(at(1199))), (1_000_000, 1_000_000));
        assert_eq!((approvals.load(at(1200)), approvals.load(at(900_000))), (0, 0));
        approvals.note(at(900_000), Size(100_000));
        assert_eq!(
            approvals.approve(at(900_001), key(1), code(15), 10_000_000),
            code(5),
            "2 Mbit/s are left"
        );
        assert_eq!(approvals.approve(at(900_002), key(2), code(15), 8_000_000), code(0));
    }

    #[test]
    fn a_report_gives_back_what_another_router_did_not_approve() {
        let mut approvals = Approvals::default();
        assert_eq!(approvals.approve(at(0), key(1), code(7), 10_000_000), code(7));
        approvals.report(&key(2), code(0));
        assert_eq!(approvals.approved(at(1)), 5_120_000);
        approvals.report(&key(1), code(1));
        assert_eq!(approvals.approved(at(1)), 80_000);
        approvals.report(&key(1), code(15));
        assert_eq!(approvals.approved(at(1)), 80_000, "never more");
    }

    #[test]
    fn approvals_are_bounded() {
        let mut approvals = Approvals::default();
        let given = (0..5000).filter(|n| approvals.approve(at(1), key(*n), code(1), u64::MAX) == code(1));
        assert_eq!(given.count(), MOST);
    }
}
