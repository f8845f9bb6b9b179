//! The sender's part: it asks, and decides which answers to believe.

use super::history::History;
use super::{AskConfig, Carrier, Encoding, RateAnswer, RateState};
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
    rate: Rate,
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
    /// The rate of the first request as its field holds it; `None` also if it is too small for the field.
    asked: Option<Rate>,
    first: Option<FirstRequest>,
    /// A router has not seen the start: ask again.
    restart: bool,
    /// When that was last reported.
    missed_at: Option<Instant>,
    /// A wish that no packet has carried yet.
    wish: Option<Rate>,
    /// Oldest first.
    under_way: VecDeque<UnderWay>,
    /// The granted rate.
    pub(super) history: History,
}

impl Asker {
    pub(super) fn new(config: &AskConfig, ip: IpVersion) -> Self {
        let asked = config.ask.filter(|_| config.encoding == Encoding::Tia1039).and_then(rounded);
        Self {
            wants: config.ask.is_some(),
            ip,
            trust_path: config.trust_path,
            asked,
            first: asked.map(|_| FirstRequest::default()),
            restart: false,
            missed_at: None,
            wish: None,
            under_way: VecDeque::new(),
            history: History::default(),
        }
    }

    /// The request of our SYN or SYN/ACK.
    pub(super) fn open(&mut self, now: Instant) -> Option<Structure> {
        self.first.as_mut()?.sent_at = Some(now);
        self.history.clear(RateState::Asked);
        self.asked.map(Structure::request)
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
        self.first = None;
        self.history.clear(RateState::Plain);
        self.wants.then_some(RateAnswer::Plain)
    }

    /// Gives up once the last repeat of the first request stayed without an answer.
    pub(super) fn unanswered(&mut self, now: Instant, srtt: Duration) -> Option<RateAnswer> {
        let first = self.first.filter(|first| first.repeats >= REPEATS)?;
        let silent = first.sent_at.is_some_and(|at| now.since(at) >= patience(srtt));
        if silent { self.give_up() } else { None }
    }

    /// Remembers a wish. Only a sender that was answered before has one.
    pub(super) fn want(&mut self, wish: Option<Rate>) {
        let answered =
            matches!(self.history.state(), RateState::Granted | RateState::Reduced | RateState::Refused);
        if let Some(rate) = wish.filter(|_| answered).and_then(rounded) {
            self.wish = self.asked.map(|asked| rate.min(asked));
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
        if core::mem::take(&mut self.restart) {
            return self.asked.map(|rate| self.ask(now, rate, Kind::ResendStart));
        }
        self.wish.take().map(|rate| self.ask(now, rate, Kind::Renegotiate))
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
        self.asked.map(Structure::request)
    }

    fn ask(&mut self, now: Instant, rate: Rate, kind: Kind) -> Structure {
        self.under_way.push_back(UnderWay { rate, sent_at: now, kind });
        let mut request = Structure::request(rate);
        request.set_kind(kind);
        request
    }

    /// True if the first request must go out although no data is sent.
    pub(super) fn is_due(&self) -> bool {
        self.first.is_some_and(|first| first.sent_at.is_none() && first.repeats < REPEATS)
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
        let Some(rate) = response.available() else { return self.refused() };
        if self.first.is_some() {
            return self.first_answered(now, rate, response);
        }
        if let Some(i) = self.under_way.iter().position(|request| rate <= request.rate) {
            // those before it are lost, or their answers were overtaken
            let request = self.under_way.drain(..=i).next_back()?;
            let needs_proof = request.kind == Kind::ResendStart || Some(rate) == self.asked;
            if needs_proof && !self.believes(rate, request.rate, response) {
                return None;
            }
            self.history.set(now, rate);
            return Some(RateAnswer::Granted(rate));
        }
        if self.history.granted().is_some_and(|granted| rate < granted) {
            self.history.set(now, rate);
            return Some(RateAnswer::Reduced(rate));
        }
        None
    }

    fn first_answered(&mut self, now: Instant, rate: Rate, response: &Structure) -> Option<RateAnswer> {
        let asked = self.asked.filter(|asked| rate <= *asked)?;
        if !self.believes(rate, asked, response) {
            return self.give_up();
        }
        self.first = None;
        self.history.set(now, rate);
        Some(RateAnswer::Granted(rate))
    }

    /// True if a router was there: an answer that nobody lowered proves nothing.
    fn believes(&self, rate: Rate, asked: Rate, response: &Structure) -> bool {
        let marked = self.ip == IpVersion::V4 && response.is_changed();
        self.trust_path || rate < asked || marked
    }

    /// An answer of zero: counts if there was a request or a rate.
    fn refused(&mut self) -> Option<RateAnswer> {
        if self.first.is_none() && self.under_way.is_empty() && self.history.granted().is_none() {
            return None;
        }
        self.first = None;
        (self.restart, self.wish) = (false, None);
        self.under_way.clear();
        self.history.clear(RateState::Refused);
        Some(RateAnswer::Refused)
    }
}
