//! The sender's part: it asks, and decides which answers to believe.

use super::history::History;
use super::terms::Wanted;
use super::{AskConfig, Carrier, Encoding, RateAnswer, RateState, Terms};
use crate::rate_field::rounded;
use crate::tia1039::{Kind, Structure};
use bentpipe_base::{Duration, Instant, IpVersion, Rate};
use std::collections::VecDeque;

/// Repeats of the first request.
pub(super) const REPEATS: u32 = 8;
/// Shortest time between them.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(200);
/// Shortest time in which a later request may be answered.
const SHORTEST_LIFE: Duration = Duration::from_secs(2);
/// Most requests under way.
pub(super) const MOST_UNDER_WAY: usize = 32;

/// Time after which the first request is repeated.
fn patience(srtt: Duration) -> Duration {
    SHORTEST_PATIENCE.max(srtt * 2)
}

/// Time in which a later request may be answered.
fn lifetime(srtt: Duration) -> Duration {
    SHORTEST_LIFE.max(srtt * 4)
}

/// The first request, until it is answered.
#[derive(Clone, Copy, Debug, Default)]
struct FirstRequest {
    /// When it was last sent; `None`: it is in the next packet without data.
    sent_at: Option<Instant>,
    repeats: u32,
}

/// A later request that is under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// All that it asks for.
    rate: Rate,
    request: Structure,
    sent_at: Instant,
    kind: Kind,
}

/// What this end asks for.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    /// This end is configured to ask.
    wants: bool,
    ip: IpVersion,
    trust_path: bool,
    terms: Terms,
    /// The rates of the first request as their fields hold them; `None` also if one is too small for its
    /// field.
    asked: Option<Wanted>,
    first: Option<FirstRequest>,
    /// Our FIN was sent: a request behind it would make routers hold a share that nothing gives back.
    pub(super) has_ended: bool,
    /// A router has not seen the start: ask again.
    restart: bool,
    /// When that was last reported.
    missed_at: Option<Instant>,
    /// A wish that no packet has carried yet.
    wish: Option<Rate>,
    /// Oldest first.
    under_way: VecDeque<UnderWay>,
    /// AR and GR of the last answer.
    settled: (Option<Rate>, Option<Rate>),
    /// The granted rate.
    pub(super) history: History,
}

impl Asker {
    pub(super) fn new(config: &AskConfig, ip: IpVersion) -> Self {
        let terms = config.terms;
        let asked = config.ask.filter(|_| config.encoding == Encoding::Tia1039);
        let asked = asked.and_then(|rate| terms.wanted(rate));
        Self {
            wants: config.ask.is_some(),
            ip,
            trust_path: config.trust_path,
            terms,
            asked,
            first: asked.map(|_| FirstRequest::default()),
            has_ended: false,
            restart: false,
            missed_at: None,
            wish: None,
            under_way: VecDeque::new(),
            settled: (None, None),
            history: History::default(),
        }
    }

    /// The request of our SYN or SYN/ACK.
    pub(super) fn open(&mut self, now: Instant) -> Option<Structure> {
        self.first.as_mut()?.sent_at = Some(now);
        self.history.clear(RateState::Asked);
        self.first_request()
    }

    /// The first request.
    pub(super) fn first_request(&self) -> Option<Structure> {
        self.asked.map(|wanted| self.terms.structure(Kind::Request, wanted))
    }

    /// All that the first request asks for.
    pub(super) fn asked_rate(&self) -> Option<Rate> {
        self.terms.rate_in(&self.first_request()?)
    }

    /// When the first request must be repeated, or given up; `None` once it was answered.
    pub(super) fn repeat_at(&self, srtt: Duration) -> Option<Instant> {
        self.first.and_then(|first| first.sent_at).map(|at| at + patience(srtt))
    }

    /// The peer signals. A request that its SYN did not answer is in our next packet without data.
    pub(super) fn ask_soon(&mut self) -> Option<RateAnswer> {
        if self.asked.is_none() {
            return self.give_up();
        }
        if let Some(first) = &mut self.first {
            first.sent_at = None;
        }
        None
    }

    /// Stops asking: there is no rate.
    pub(super) fn give_up(&mut self) -> Option<RateAnswer> {
        self.forget_requests();
        self.history.clear(RateState::Plain);
        self.wants.then_some(RateAnswer::Plain)
    }

    /// Gives up once the last repeat of the first request stayed without an answer, or if there is none.
    pub(super) fn unanswered(&mut self, now: Instant, srtt: Duration) -> Option<RateAnswer> {
        let first = self.first.filter(|first| first.repeats >= REPEATS || self.has_ended)?;
        let silent = first.sent_at.map_or(self.has_ended, |at| now.since(at) >= patience(srtt));
        if silent { self.give_up() } else { None }
    }

    /// Remembers a wish. Only a sender that was answered before has one.
    pub(super) fn want(&mut self, wish: Option<Rate>) {
        let answered =
            matches!(self.history.state(), RateState::Granted | RateState::Reduced | RateState::Refused);
        if let Some(rate) = wish.filter(|_| answered).and_then(rounded) {
            self.wish = self.asked_rate().map(|asked| rate.min(asked));
        }
    }

    /// A router has not seen the start of our flow. One report per round trip counts.
    pub(super) fn missed(&mut self, now: Instant, srtt: Duration) {
        let again = self.missed_at.is_some_and(|at| now.since(at) < patience(srtt));
        if self.history.granted().is_some() && !again {
            (self.restart, self.missed_at) = (true, Some(now));
        }
    }

    /// The request that the next packet carries.
    pub(super) fn next(&mut self, now: Instant, srtt: Duration, packet: Carrier) -> Option<Structure> {
        if self.has_ended {
            return None;
        }
        if self.first.is_some() {
            return self.repeat(now, srtt, packet);
        }
        self.forget_old(now, srtt);
        if packet == Carrier::Ack || !(self.restart || self.wish.is_some()) {
            return None;
        }
        if self.under_way.len() >= MOST_UNDER_WAY {
            self.wish = None;
            return None;
        }
        let first = self.asked?;
        if core::mem::take(&mut self.restart) {
            return Some(self.ask(now, first, Kind::ResendStart));
        }
        self.wish.take().map(|rate| self.ask(now, self.terms.share(rate, first), Kind::Renegotiate))
    }

    fn repeat(&mut self, now: Instant, srtt: Duration, packet: Carrier) -> Option<Structure> {
        let first = self.first.as_mut().filter(|first| first.repeats < REPEATS)?;
        if first.sent_at.is_some_and(|at| now.since(at) < patience(srtt)) {
            return None;
        }
        if packet == Carrier::Data || first.sent_at.is_some() {
            // an ACK of its own carries it: if the path drops that, nothing else is lost
            first.sent_at = None;
            return None;
        }
        first.repeats += 1;
        first.sent_at = Some(now);
        self.history.clear(RateState::AskingAgain);
        self.first_request()
    }

    fn ask(&mut self, now: Instant, wanted: Wanted, kind: Kind) -> Structure {
        let request = self.terms.structure(kind, wanted);
        let rate = self.terms.rate_in(&request).unwrap_or(wanted.available);
        self.under_way.push_back(UnderWay { rate, request, sent_at: now, kind });
        request
    }

    /// True while a later request has no answer.
    pub(super) fn is_waiting(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// True if the first request must go out although no data is sent.
    pub(super) fn is_due(&self) -> bool {
        !self.has_ended && self.first.is_some_and(|first| first.sent_at.is_none() && first.repeats < REPEATS)
    }

    fn forget_old(&mut self, now: Instant, srtt: Duration) {
        let is_old = |request: &UnderWay| now.since(request.sent_at) > lifetime(srtt);
        // without its answer the router knows nothing of the rate that we use
        self.restart |= self.under_way.iter().any(|r| r.kind == Kind::ResendStart && is_old(r));
        self.under_way.retain(|request| !is_old(request));
    }

    /// After a timeout: perhaps the path drops structures. One request at a time finds out.
    pub(super) fn ask_again(&mut self, now: Instant, srtt: Duration) {
        self.forget_old(now, srtt);
        if self.under_way.is_empty() {
            self.wish = self.wish.or(self.history.granted());
        }
    }

    /// A response arrived.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        srtt: Duration,
        response: &Structure,
    ) -> Option<RateAnswer> {
        if self.history.state() == RateState::Plain {
            return None; // nothing was asked, or nothing more is
        }
        self.forget_old(now, srtt);
        let Some(rate) = self.terms.rate_in(response) else { return self.refused() };
        if self.first.is_some() {
            return self.first_answered(now, rate, response);
        }
        if let Some(i) = self.under_way.iter().position(|request| rate <= request.rate) {
            // those before it are lost, or their answers were overtaken
            let request = self.under_way.drain(..=i).next_back()?;
            let needs_proof = request.kind == Kind::ResendStart || Some(rate) == self.asked_rate();
            if needs_proof && !self.believes(&request.request, response) {
                return None;
            }
            self.settle(now, rate, response);
            return Some(RateAnswer::Granted(rate));
        }
        if self.history.granted().is_some_and(|granted| rate < granted) {
            self.settle(now, rate, response);
            return Some(RateAnswer::Reduced(rate));
        }
        None
    }

    fn first_answered(&mut self, now: Instant, rate: Rate, response: &Structure) -> Option<RateAnswer> {
        self.asked_rate().filter(|asked| rate <= *asked)?;
        if !self.first_request().is_some_and(|request| self.believes(&request, response)) {
            return self.give_up();
        }
        self.first = None;
        self.settle(now, rate, response);
        Some(RateAnswer::Granted(rate))
    }

    fn settle(&mut self, now: Instant, rate: Rate, response: &Structure) {
        self.history.set(now, rate);
        self.settled = (response.available(), response.guaranteed());
    }

    /// A structure of this kind with the rates of the last answer.
    pub(super) fn settled(&self, kind: Kind) -> Option<Structure> {
        let mut structure = self.first_request()?;
        structure.set_kind(kind);
        structure.set_available(self.settled.0);
        structure.set_guaranteed(self.settled.1);
        Some(structure)
    }

    /// True if a router was there: an answer that nobody lowered proves nothing.
    fn believes(&self, request: &Structure, response: &Structure) -> bool {
        let marked = self.ip == IpVersion::V4 && response.is_changed();
        let is_lower =
            response.available() < request.available() || response.guaranteed() < request.guaranteed();
        self.trust_path || is_lower || marked
    }

    /// An answer of zero: counts if there was a request or a rate.
    fn refused(&mut self) -> Option<RateAnswer> {
        if self.first.is_none() && self.under_way.is_empty() && self.history.granted().is_none() {
            return None;
        }
        self.forget_requests();
        self.history.clear(RateState::Refused);
        Some(RateAnswer::Refused)
    }

    /// Nothing is asked for any more, now or when a request under way is too old.
    fn forget_requests(&mut self) {
        (self.first, self.restart, self.wish) = (None, false, None);
        self.under_way.clear();
    }
}
