//! The source of a flow of datagrams: when it asks, and what it may send meanwhile.
//!
//! Source: TIA-1039 (2006): a flow of datagrams asks with a structure alone in a first datagram, for a
//! maximum or a guaranteed rate (L. G. Roberts' description). `datagrams.rs` says what is asked, repeated and
//! believed. The source does not say what the application does meanwhile. Here:
//!   no datagram before the first answer
//!   granted: paced at the granted rate of IP packets
//!   refused, or withdrawn: silence, or datagrams without a rate, as the flow is configured
//!   a peer or a path that does not signal: datagrams without a rate
//!   after 2 s of silence the source asks again before it sends, unless the rate is guaranteed until it is
//!     given back; 8 times, then it goes on without a rate
//!   less granted than asked: it asks for all of it again with every 128th datagram
//!   at the end CD 7 gives the rate back: three times, one per max(2 RTT, 200 ms), since nothing answers it;
//!     so does a source that gives up with what it has asked for
//! It has no packets: its caller puts the structures into datagrams of their own, and paces the data.

use super::{AskConfig, Carrier, Negotiation, RateState};
use crate::tia1039::{Kind, RateType, Structure, Structures};
use bentpipe_base::{Duration, Instant, IpVersion, Rate};

/// After a longer silence a router may have forgotten the flow.
const SILENCE: Duration = Duration::from_secs(2);
/// Shortest time between requests and between repetitions of the end.
const PATIENCE: Duration = Duration::from_millis(200);
/// Requests after a silence.
const TRIES: u32 = 8;
/// How often the end is said.
const CLOSES: u32 = 3;
/// A source that got less than it asked for asks again after so many datagrams.
const WISH_EVERY: u64 = 128;

/// What a source does if the network refuses its rate or withdraws it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenRefused {
    /// It sends nothing, like a call that is not admitted.
    #[default]
    Silent,
    /// It sends without a rate.
    Send,
}

/// What a source may do at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It waits for an answer.
    Wait,
    /// It sends nothing any more.
    Never,
    /// It sends without a rate.
    Plain,
    /// It sends at this rate.
    At(Rate),
}

/// The exchange of one source.
#[derive(Clone, Debug)]
pub struct DatagramExchange {
    negotiation: Negotiation,
    when_refused: WhenRefused,
    is_begun: bool,
    rtt: Duration,
    /// When the request was sent whose answer measures a round trip.
    asked_at: Option<Instant>,
    /// When the last datagram was sent.
    last: Option<Instant>,
    sent: u64,
    /// Requests after a silence, until one is answered.
    again: Option<u32>,
    /// When the next of them, or the next repetition of the end, is due.
    next_at: Instant,
    closes: u32,
    /// What takes back a request or a rate that was given up, until it was said often enough.
    closing: Option<Structure>,
    wish: Option<Rate>,
}

impl DatagramExchange {
    /// The exchange of a source that has sent nothing yet.
    pub fn new(ask: &AskConfig, ip: IpVersion, when_refused: WhenRefused) -> Self {
        Self {
            negotiation: Negotiation::new(ask.clone(), ip),
            when_refused,
            is_begun: false,
            rtt: Duration::ZERO,
            asked_at: None,
            last: None,
            sent: 0,
            again: None,
            next_at: Instant::NEVER,
            closes: 0,
            closing: None,
            wish: None,
        }
    }

    /// What was asked for and granted.
    pub const fn negotiation(&self) -> &Negotiation {
        &self.negotiation
    }

    /// Keeps at most `most` changes of the rate, for a holder of many exchanges.
    pub const fn keep_changes(&mut self, most: usize) {
        self.negotiation.keep_changes(most);
    }

    /// What the source may do; asks again first if it was silent.
    pub fn permit(&mut self, now: Instant) -> Permit {
        let granted = self.negotiation.granted();
        match (self.negotiation.state(), granted) {
            (RateState::Asked | RateState::AskingAgain, _) => Permit::Wait,
            (RateState::Refused, _) if self.when_refused == WhenRefused::Silent => Permit::Never,
            (RateState::Granted | RateState::Reduced, Some(rate)) => {
                let is_held = self.negotiation.config().terms.rate_type == RateType::Guaranteed;
                let is_silent = self.last.is_some_and(|last| now.since(last) > SILENCE);
                if is_silent && !is_held && self.again.is_none() {
                    (self.again, self.next_at) = (Some(0), now);
                }
                match self.again {
                    None => Permit::At(rate),
                    Some(tries) if tries <= TRIES => Permit::Wait,
                    Some(_) => Permit::Plain,
                }
            }
            _ => Permit::Plain,
        }
    }

    /// A datagram was sent.
    pub fn note_sent(&mut self, now: Instant) {
        self.last = Some(now);
        self.sent += 1;
        let asked = self.negotiation.config().asked();
        if self.sent.is_multiple_of(WISH_EVERY) && self.negotiation.granted() < asked {
            self.wish = asked.filter(|_| self.negotiation.granted().is_some());
        }
    }

    /// Returns the structures that are due. `is_over`: the source has sent all its datagrams.
    pub fn control(&mut self, now: Instant, is_over: bool) -> Structures {
        let mut due = Structures::default();
        let mut add = |structure: Option<Structure>| structure.is_some_and(|structure| due.push(structure));
        if !self.is_begun {
            self.is_begun = true;
            self.asked_at = Some(now);
            add(self.negotiation.start(now));
        }
        if is_over || self.closing.is_some() {
            add(self.close(now));
            return due;
        }
        self.negotiation.give_up_if_silent(now, self.rtt);
        if let Some(tries) = self.again
            && tries <= TRIES
            && now >= self.next_at
        {
            self.wish = self.negotiation.config().asked().filter(|_| tries < TRIES);
            self.asked_at = self.asked_at.or(Some(now));
            (self.again, self.next_at) = (Some(tries + 1), now + self.patience());
        }
        let wish = self.wish.take();
        add(self.negotiation.datagram(now, self.rtt, wish));
        due
    }

    /// Returns the structure that gives the rate back, if it is time for it.
    fn close(&mut self, now: Instant) -> Option<Structure> {
        if self.closes == 0 {
            self.next_at = now;
        }
        if self.closes >= CLOSES || now < self.next_at {
            return None;
        }
        self.closes += 1;
        let structure = self.closing.or_else(|| self.negotiation.close());
        if self.closes < CLOSES {
            self.next_at = now + self.patience();
        } else {
            (self.closing, self.next_at) = (None, Instant::NEVER);
        }
        structure
    }

    /// Stops asking: the source goes on without a rate. [`DatagramExchange::control`] takes back what was
    /// asked for or granted.
    pub fn give_up(&mut self, now: Instant) {
        (self.again, self.wish) = (None, None);
        if let Some(close) = self.negotiation.withdraw() {
            (self.closing, self.closes, self.next_at) = (Some(close), 0, now);
        }
    }

    /// Ends it at once: gives up, and returns all that would still be said of it.
    pub fn end(&mut self, now: Instant) -> impl Iterator<Item = Structure> + use<> {
        self.give_up(now);
        let left = CLOSES.saturating_sub(self.closes);
        self.closing.take().into_iter().flat_map(move |close| (0..left).map(move |_| close))
    }

    fn patience(&self) -> Duration {
        PATIENCE.max(self.rtt * 2)
    }

    /// When [`DatagramExchange::control`] has something to do though nothing arrives.
    pub fn control_at(&self, is_over: bool) -> Instant {
        let repeat = self.negotiation.repeat_at(self.rtt).filter(|_| !is_over);
        let waits = is_over || self.closing.is_some() || self.again.is_some_and(|tries| tries <= TRIES);
        repeat.unwrap_or(Instant::NEVER).min(if waits { self.next_at } else { Instant::NEVER })
    }

    /// Takes what the peer returned; returns what it must be told.
    pub fn hear(&mut self, now: Instant, structures: &[Structure]) -> Structures {
        let mut due = Structures::default();
        for structure in structures {
            let is_answer = structure.kind() == Some(Kind::Response);
            let answer = self.negotiation.incoming(now, self.rtt, Carrier::Ack, &[*structure]);
            if is_answer && let Some(asked_at) = self.asked_at.take() {
                let sample = now.since(asked_at);
                self.rtt = if self.rtt.is_zero() { sample } else { (self.rtt * 7 + sample) / 8 };
            }
            if answer.is_some() {
                self.again = None;
                // the router knows the flow again
                self.last = self.last.map(|_| now);
                if let Some(confirmation) = self.negotiation.confirmation() {
                    due.push(confirmation);
                }
            }
        }
        due
    }
}
