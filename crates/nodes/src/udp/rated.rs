//! A source of datagrams that asks the network for its rate.
//!
//! Source: TIA-1039 (2006): a flow of datagrams asks with a structure alone in a first datagram, for a
//! maximum or a guaranteed rate (L. G. Roberts' description). `bentpipe_advice::negotiation` says what is
//! asked, repeated and believed. The source does not say what the application does meanwhile. Here:
//!   no datagram before the first answer
//!   granted: DSCP 7, paced at the granted rate of IP packets; what the pattern wants earlier is put off, and
//!     with it all that follows, so that there is never a backlog to catch up with
//!   refused, or withdrawn: silence, or datagrams without a rate, as the flow is configured
//!   a peer or a path that does not signal: datagrams without a rate
//!   after 2 s of silence the source asks again before it sends, unless the rate is guaranteed until it is
//!     given back; 8 times, then it goes on without a rate
//!   less granted than asked: it asks for all of it again with every 128th datagram
//!   at the end CD 7 gives the rate back: three times, one per max(2 RTT, 200 ms), since nothing answers it
//! A structure is never in a datagram of the application, so their number and bytes are exact.

use super::HOPS;
use bentpipe_advice::negotiation::{AskConfig, Carrier, Negotiation, RateState};
use bentpipe_advice::tia1039::{self, Kind, RateType, Structure};
use bentpipe_base::{Addr, Cx, Duration, Instant, IpVersion, Packet, Port, Proto, Rate};
use bentpipe_tcp::RateView;

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

/// The rate for which a source of datagrams asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatagramRate {
    /// What it asks for and believes.
    pub ask: AskConfig,
    /// IP version of its datagrams.
    pub ip: IpVersion,
    /// What it does without a rate.
    pub when_refused: WhenRefused,
}

/// What the source may do at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
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
pub(super) struct Rated {
    negotiation: Negotiation,
    ip: IpVersion,
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
    wish: Option<Rate>,
}

/// Our address and port, and the peer's.
pub(super) type Ends = ((Addr, u16), (Addr, u16));

impl Rated {
    pub(super) fn new(rate: &DatagramRate) -> Self {
        Self {
            negotiation: Negotiation::new(rate.ask.clone(), rate.ip),
            ip: rate.ip,
            when_refused: rate.when_refused,
            is_begun: false,
            rtt: Duration::ZERO,
            asked_at: None,
            last: None,
            sent: 0,
            again: None,
            next_at: Instant::NEVER,
            closes: 0,
            wish: None,
        }
    }

    /// What was asked for and granted.
    pub(super) fn view(&self) -> Option<RateView<'_>> {
        let config = self.negotiation.config();
        Some(RateView {
            encoding: config.encoding,
            asked: config.asked()?,
            granted: self.negotiation.granted(),
            state: self.negotiation.state(),
            changes: self.negotiation.changes(),
        })
    }

    pub(super) const fn ip(&self) -> IpVersion {
        self.ip
    }

    /// What the source may do; asks again first if it was silent.
    pub(super) fn permit(&mut self, now: Instant) -> Permit {
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
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.last = Some(now);
        self.sent += 1;
        let asked = self.negotiation.config().asked();
        if self.sent.is_multiple_of(WISH_EVERY) && self.negotiation.granted() < asked {
            self.wish = asked.filter(|_| self.negotiation.granted().is_some());
        }
    }

    /// Sends the structures that are due. `is_over`: the source has sent all its datagrams.
    pub(super) fn control(&mut self, cx: &mut Cx<'_>, ends: Ends, is_over: bool) {
        if !self.is_begun {
            self.is_begun = true;
            self.asked_at = Some(cx.now);
            let request = self.negotiation.start(cx.now);
            self.send_all(cx, ends, request);
        }
        if is_over {
            return self.close(cx, ends);
        }
        self.negotiation.give_up_if_silent(cx.now, self.rtt);
        if let Some(tries) = self.again
            && tries <= TRIES
            && cx.now >= self.next_at
        {
            self.wish = self.negotiation.config().asked().filter(|_| tries < TRIES);
            self.asked_at = self.asked_at.or(Some(cx.now));
            (self.again, self.next_at) = (Some(tries + 1), cx.now + self.patience());
        }
        let wish = self.wish.take();
        let structure = self.negotiation.datagram(cx.now, self.rtt, wish);
        self.send_all(cx, ends, structure);
    }

    /// Gives the rate back.
    fn close(&mut self, cx: &mut Cx<'_>, ends: Ends) {
        if self.closes == 0 {
            self.next_at = cx.now;
        }
        if self.closes < CLOSES && cx.now >= self.next_at {
            self.closes += 1;
            self.next_at = if self.closes < CLOSES { cx.now + self.patience() } else { Instant::NEVER };
            let structure = self.negotiation.close();
            self.send_all(cx, ends, structure);
        }
    }

    fn patience(&self) -> Duration {
        PATIENCE.max(self.rtt * 2)
    }

    /// When [`Rated::control`] has something to do though nothing arrives.
    pub(super) fn control_at(&self, is_over: bool) -> Instant {
        let repeat = self.negotiation.repeat_at(self.rtt).filter(|_| !is_over);
        let waits = is_over || self.again.is_some_and(|tries| tries <= TRIES);
        repeat.unwrap_or(Instant::NEVER).min(if waits { self.next_at } else { Instant::NEVER })
    }

    /// Takes what the peer returned.
    pub(super) fn hear(&mut self, cx: &mut Cx<'_>, ends: Ends, packet: &Packet) {
        for structure in tia1039::structures(packet).as_slice() {
            let is_answer = structure.kind() == Some(Kind::Response);
            let answer = self.negotiation.incoming(cx.now, self.rtt, Carrier::Ack, &[*structure]);
            if is_answer && let Some(asked_at) = self.asked_at.take() {
                let sample = cx.now.since(asked_at);
                self.rtt = if self.rtt.is_zero() { sample } else { (self.rtt * 7 + sample) / 8 };
            }
            if answer.is_some() {
                self.again = None;
                // the router knows the flow again
                self.last = self.last.map(|_| cx.now);
                let confirmation = self.negotiation.confirmation();
                self.send_all(cx, ends, confirmation);
            }
        }
    }

    fn send_all(&self, cx: &mut Cx<'_>, ends: Ends, structures: impl IntoIterator<Item = Structure>) {
        for structure in structures {
            send(cx, ends, self.ip, structure);
        }
    }
}

/// Sends a structure alone in a datagram.
pub(super) fn send(cx: &mut Cx<'_>, (from, to): Ends, ip: IpVersion, structure: Structure) {
    let mut packet = cx.packet();
    packet.proto = Proto::Udp;
    packet.ip = ip;
    (packet.src, packet.sport) = from;
    (packet.dst, packet.dport) = to;
    packet.hops = HOPS;
    tia1039::write(&mut packet, &[structure]);
    cx.send(Port(0), packet);
}
