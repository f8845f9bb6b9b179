//! One end of a connection that asks for a rate to begin with, by Quick-Start.
//!
//! Source: RFC 4782 (experimental), sections 3 and 4.
//!   SYN or SYN/ACK: the request, in an IP option. SYN/ACK or ACK: the answer to it, in a TCP option
//!   the answer is void if the difference of the TTLs has changed, if the rate is above the request, or if
//!   the nonce is wrong; a rate of zero is a refusal
//!   the next packet reports the approved rate, zero for a void answer, so that routers know
//! A request is made once, and a SYN that is resent has none: a box may drop packets with IP options. Its
//! answer is also returned only once.
//! Deviation: no request after an idle time (optional in the RFC). In a simulation TTL and nonce come from
//! random values that the SYN shows; an end of real connections adds a secret ([`QuickStart::set_secret`]).

use super::history::History;
use super::{AskConfig, RateAnswer, RateChange, RateState};
use crate::quick_start::{Fields, Function, RateCode};
use bentpipe_base::{Instant, Rate, mix};

/// One end of one connection.
#[derive(Clone, Debug)]
pub struct QuickStart {
    config: AskConfig,
    /// Our request, and the TTL of its packet, until it is answered.
    sent: Option<(Fields, u8)>,
    /// Our answer that waits for a packet.
    answer: Option<Fields>,
    /// Our report that waits for a packet.
    report: Option<Fields>,
    /// Makes nonce and TTL unpredictable to the receiver.
    secret: u64,
    history: History,
}

impl QuickStart {
    /// The end of a connection whose SYN was neither sent nor received yet.
    pub fn new(config: AskConfig) -> Self {
        Self { config, sent: None, answer: None, report: None, secret: 0, history: History::default() }
    }

    /// Adds random bits, which nobody else knows, to TTL and nonce of the request.
    pub const fn set_secret(&mut self, secret: u64) {
        self.secret = secret;
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &AskConfig {
        &self.config
    }
    /// Returns the rate that was approved, in bit/s of IP packets.
    pub const fn granted(&self) -> Option<Rate> {
        self.history.granted()
    }
    /// Returns the state of the rate that this end asked for.
    pub const fn state(&self) -> RateState {
        self.history.state()
    }
    /// Returns the approval, if there was one.
    pub fn changes(&self) -> &[RateChange] {
        self.history.changes()
    }

    /// Returns request and answer of our SYN or SYN/ACK when it is sent for the first time, with `ttl` as its
    /// TTL; resent, it has none. `random`: any bits.
    pub fn syn(&mut self, ttl: u8, random: u64) -> (Option<Fields>, Option<Fields>) {
        let code = self.config.ask.map_or(RateCode::NONE, RateCode::at_most);
        if code != RateCode::NONE {
            let bits = mix(random ^ self.secret);
            self.sent = Some((Fields::request(code, (bits >> 32) as u8, bits as u32), ttl));
            self.history.clear(RateState::Asked);
        }
        (self.sent.map(|(request, _)| request), self.answer.take())
    }

    /// Takes the options of the peer's SYN or SYN/ACK, which arrived with `ttl`. `answers`: it must answer a
    /// request of ours.
    pub fn peer_syn(
        &mut self,
        now: Instant,
        ttl: u8,
        (request, answer): (Option<Fields>, Option<Fields>),
        answers: bool,
    ) -> Option<RateAnswer> {
        if let Some(request) = request.filter(|fields| fields.function() == Some(Function::Request)) {
            self.answer = Some(self.taken(request).answer(ttl));
        }
        if answers { self.incoming(now, answer) } else { None }
    }

    /// Takes the packet that should answer our request; every other says nothing.
    pub fn incoming(&mut self, now: Instant, answer: Option<Fields>) -> Option<RateAnswer> {
        let (request, ttl) = self.sent.take()?;
        let Some(answer) = answer else {
            self.history.clear(RateState::Plain);
            return Some(RateAnswer::Plain);
        };
        let granted = answer.granted(request, ttl);
        let code = if granted.is_some() { answer.rate() } else { RateCode::NONE };
        self.report = Some(Fields::report(code, request.nonce()));
        if let Some(rate) = granted {
            self.history.set(now, rate);
            return Some(RateAnswer::Granted(rate));
        }
        let is_refused = answer.rate() == RateCode::NONE;
        self.history.clear(if is_refused { RateState::Refused } else { RateState::Plain });
        Some(if is_refused { RateAnswer::Refused } else { RateAnswer::Plain })
    }

    /// Returns report and answer that the next packet of ours carries.
    pub fn outgoing(&mut self) -> (Option<Fields>, Option<Fields>) {
        (self.report.take(), self.answer.take())
    }

    /// True if something waits for a packet.
    pub const fn is_due(&self) -> bool {
        self.report.is_some() || self.answer.is_some()
    }

    /// A request, with no more than this end takes as a receiver.
    fn taken(&self, mut request: Fields) -> Fields {
        let most = self.config.take.map_or(RateCode::MAX, RateCode::at_most);
        request.set_rate(request.rate().min(most));
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quick_start::Hop;

    const NOW: Instant = Instant(5);

    fn code(code: u8) -> RateCode {
        RateCode::new(code).unwrap()
    }

    fn end(ask: Option<Rate>, take: Option<Rate>) -> QuickStart {
        QuickStart::new(AskConfig { ask, take, ..AskConfig::default() })
    }

    fn asks() -> QuickStart {
        end(RateCode::MAX.rate(), None)
    }

    fn hop(approved: u8) -> Hop {
        Hop { approved: code(approved), hops: 1, random: 0x1234_5678 }
    }

    /// The SYN/ACK of a receiver behind these routers, of which each lowers the TTL of the packet by one.
    fn answered(a: &mut QuickStart, b: &mut QuickStart, approved: &[u8], plain: u8) -> Option<Fields> {
        let request = a.syn(64, 99).0.unwrap();
        let passed = approved.iter().fold(request, |fields, approved| fields.after(hop(*approved)));
        let ttl = 64 - approved.len() as u8 - plain;
        assert_eq!(b.peer_syn(NOW, ttl, (Some(passed), None), false), None);
        b.syn(64, 1).1
    }

    #[test]
    fn a_rate_that_all_routers_approve_is_granted_and_reported() {
        let (mut a, mut b) = (asks(), end(None, None));
        let answer = answered(&mut a, &mut b, &[12, 9, 15], 0);
        assert_eq!(a.state(), RateState::Asked);
        let rate = code(9).rate().unwrap();
        assert_eq!(a.peer_syn(NOW, 61, (None, answer), true), Some(RateAnswer::Granted(rate)));
        assert_eq!((a.granted(), a.state(), a.is_due()), (Some(rate), RateState::Granted, true));
        let (report, none) = a.outgoing();
        assert_eq!((report.and_then(Fields::function), none), (Some(Function::Report), None));
        assert_eq!(
            (report.map(Fields::rate), a.is_due(), a.outgoing()),
            (Some(code(9)), false, (None, None))
        );
        assert_eq!(a.incoming(NOW, answer), None, "it is answered once");
    }

    #[test]
    fn a_router_that_knows_nothing_voids_it() {
        for (approved, plain) in [(&[9u8][..], 1), (&[], 1), (&[9, 9], 2)] {
            let (mut a, mut b) = (asks(), end(None, None));
            let answer = answered(&mut a, &mut b, approved, plain);
            assert_eq!(a.peer_syn(NOW, 60, (None, answer), true), Some(RateAnswer::Plain));
            assert_eq!((a.granted(), a.state()), (None, RateState::Plain));
            assert_eq!(a.outgoing().0.map(Fields::rate), Some(RateCode::NONE), "routers hear of it");
        }
    }

    #[test]
    fn a_refusal_a_lost_answer_and_a_claim() {
        let (mut a, mut b) = (asks(), end(None, None));
        let answer = answered(&mut a, &mut b, &[9, 0], 0);
        assert_eq!(a.peer_syn(NOW, 62, (None, answer), true), Some(RateAnswer::Refused));
        assert_eq!(a.state(), RateState::Refused);
        let mut a = asks();
        a.syn(64, 99);
        assert_eq!(a.peer_syn(NOW, 62, (None, None), true), Some(RateAnswer::Plain));
        assert!(!a.is_due(), "nobody knows of it");
        let (mut a, mut b) = (asks(), end(None, None));
        let mut claim = answered(&mut a, &mut b, &[9], 0).unwrap();
        claim.set_rate(code(15));
        assert_eq!(a.peer_syn(NOW, 63, (None, Some(claim)), true), Some(RateAnswer::Plain));
    }

    #[test]
    fn a_receiver_takes_less_and_asks_in_its_answer() {
        let (mut a, mut b) = (asks(), end(code(5).rate(), code(4).rate()));
        let request = a.syn(64, 99).0.unwrap();
        b.peer_syn(NOW, 64, (Some(request), None), false);
        let (asked, answer) = b.syn(64, 7);
        assert_eq!(
            a.peer_syn(NOW, 64, (asked, answer), true),
            Some(RateAnswer::Granted(code(4).rate().unwrap()))
        );
        let (report, answer) = a.outgoing();
        assert!(report.is_some());
        assert_eq!(b.incoming(NOW, answer), Some(RateAnswer::Granted(code(5).rate().unwrap())));
    }

    #[test]
    fn an_end_that_does_not_ask_says_nothing() {
        let mut a = end(None, None);
        assert_eq!((a.syn(64, 1), a.peer_syn(NOW, 64, (None, None), true)), ((None, None), None));
        let mut small = end(Rate::from_bps(79_999), None);
        assert_eq!(small.syn(64, 1).0, None, "no code is as low");
    }

    /// A report is no request, and an answer to nothing grants nothing.
    #[test]
    fn what_nobody_asked_for_is_ignored() {
        let mut b = end(None, None);
        let report = Fields::report(code(9), 5);
        assert_eq!(b.peer_syn(NOW, 64, (Some(report), Some(report)), true), None);
        assert_eq!((b.syn(64, 1), b.incoming(NOW, Some(report))), ((None, None), None));
    }
}
