//! Rate signalling in the packets of a connection.
//!
//! `bentpipe_advice::negotiation` decides what is asked, returned and believed. This module puts that into
//! packets and tells the scheme what the network said. A file for each encoding says where it is in a packet:
//! [`tia1039`], [`scone_tcp`], [`quick_start`]. What a rate means to the scheme depends on the encoding too:
//! a rate to use (`cc/explicit_rate.rs`), a limit (`cc/advised.rs`), or a start (`cc/quick_start.rs`).
//! Signalling is outside the stream: it has no sequence number and is no payload. Only packets that the
//! connection accepts, with sequence and acknowledgment number in the window, are read.

mod quick_start;
mod scone_tcp;
mod tia1039;

use crate::config::Config;
use crate::connection::Connection;
use crate::handshake::set_addresses;
use crate::state::State;
use bentpipe_advice::negotiation::quick_start::QuickStart;
use bentpipe_advice::negotiation::scone_tcp::SconeTcp;
use bentpipe_advice::negotiation::{
    AskConfig, Carrier, Encoding, Negotiation, RateAnswer, RateChange, RateState,
};
use bentpipe_advice::tia1039::{QOS_FLOW, Structures};
use bentpipe_base::{Cx, Instant, Packet, Pkt, Rate, Size, mix};
pub(crate) use quick_start::SynOptions;

/// The rate that a connection asked for, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateView<'a> {
    /// How packets carry it.
    pub encoding: Encoding,
    /// The rate asked for, in bit/s of IP packets.
    pub asked: Rate,
    /// The rate granted now; none after a fallback.
    pub granted: Option<Rate>,
    /// What the sender does.
    pub state: RateState,
    /// The first changes of the granted rate, at most 1000.
    pub changes: &'a [RateChange],
}

/// One end's part of the exchange.
#[derive(Debug)]
pub(crate) enum End {
    Tia1039(Box<Negotiation>),
    SconeTcp(Box<SconeTcp>),
    QuickStart(Box<QuickStart>),
}

/// What a SYN says about rates.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SynSignal {
    Tia1039(Structures),
    SconeTcp(bentpipe_advice::scone_tcp::Advised),
    QuickStart(SynOptions),
}

impl End {
    /// Returns the state of a new connection, if it is to signal.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let ask = config.signalling.as_ref()?.ask.clone();
        Some(match ask.encoding {
            Encoding::Tia1039 => Self::Tia1039(Box::new(Negotiation::new(ask, config.ip))),
            Encoding::SconeTcp => Self::SconeTcp(Box::new(SconeTcp::new(ask))),
            Encoding::QuickStart => Self::QuickStart(Box::new(QuickStart::new(ask))),
        })
    }

    /// How packets after the handshake signal, if they do. A request of Quick-Start needs no agreement.
    pub(crate) fn agreed(&self, signal: Option<&SynSignal>) -> Option<Encoding> {
        let asks = matches!(self, Self::QuickStart(_)) && self.config().ask.is_some();
        (signal.is_some() || asks).then(|| self.config().encoding)
    }

    fn config(&self) -> &AskConfig {
        match self {
            Self::Tia1039(end) => end.config(),
            Self::SconeTcp(end) => end.config(),
            Self::QuickStart(end) => end.config(),
        }
    }

    /// State, granted rate, and its changes.
    fn outcome(&self) -> (RateState, Option<Rate>, &[RateChange]) {
        match self {
            Self::Tia1039(end) => (end.state(), end.granted(), end.changes()),
            Self::SconeTcp(end) => (end.state(), end.granted(), end.changes()),
            Self::QuickStart(end) => (end.state(), end.granted(), end.changes()),
        }
    }

    /// Takes what the peer's SYN says. `answers`: ours was sent before.
    fn peer_syn(&mut self, now: Instant, answers: bool, signal: Option<&SynSignal>) -> Option<RateAnswer> {
        match (self, signal) {
            (Self::Tia1039(end), signal) => {
                let structures = match signal {
                    Some(SynSignal::Tia1039(structures)) => Some(structures.as_slice()),
                    _ => None,
                };
                end.peer_syn(now, structures)
            }
            (Self::SconeTcp(end), Some(SynSignal::SconeTcp(option))) => {
                end.peer_syn(now, answers, Some(*option))
            }
            (Self::SconeTcp(end), _) => end.peer_syn(now, answers, None),
            (Self::QuickStart(end), Some(SynSignal::QuickStart(syn))) => {
                end.peer_syn(now, syn.ttl, (syn.request, syn.answer), answers)
            }
            (Self::QuickStart(end), _) => end.peer_syn(now, 0, (None, None), answers),
        }
    }

    /// True if the next packet must be one without data: it has to say something for which data leaves no
    /// room.
    pub(crate) const fn must_speak(&self) -> bool {
        matches!(self, Self::QuickStart(end) if end.is_due())
    }

    /// A retransmission timeout.
    pub(crate) const fn timeout(&mut self) {
        if let Self::Tia1039(end) = self {
            end.timeout();
        }
    }
}

impl SynSignal {
    /// Returns what a SYN or SYN/ACK says in our encoding; `None` if it does not show that its sender
    /// signals.
    pub(crate) fn of(config: &Config, syn: &Packet) -> Option<Self> {
        match config.signalling.as_ref()?.ask.encoding {
            Encoding::Tia1039 => tia1039::of_syn(syn).map(Self::Tia1039),
            Encoding::SconeTcp => bentpipe_advice::scone_tcp::packet::of(syn).map(Self::SconeTcp),
            Encoding::QuickStart => SynOptions::of(syn).map(Self::QuickStart),
        }
    }
}

fn carrier(packet: &Packet) -> Carrier {
    if packet.seq_len() > 0 { Carrier::Data } else { Carrier::Ack }
}

impl Connection {
    /// Returns the rate that this end asked for; `None` if it asks for none.
    pub fn rate(&self) -> Option<RateView<'_>> {
        let end = self.signalling.as_ref()?;
        let (state, granted, changes) = end.outcome();
        let (state, granted) = match state {
            RateState::Granted | RateState::Reduced if self.cc.fallback().is_some() => {
                (RateState::FallenBack, None)
            }
            state => (state, granted),
        };
        let config = end.config();
        Some(RateView { encoding: config.encoding, asked: config.asked()?, granted, state, changes })
    }

    /// Returns the rate that we last returned to the peer, at which it may send; TIA-1039 only.
    pub fn returned_rate(&self) -> Option<Rate> {
        match &self.signalling {
            Some(End::Tia1039(end)) => end.returned(),
            _ => None,
        }
    }

    /// Returns a packet with our addresses, and with the DSCP of a connection that signals.
    #[inline]
    pub(crate) fn blank(&self, cx: &mut Cx<'_>) -> Pkt {
        let mut packet = cx.packet();
        set_addresses(&mut packet, self.tuple, self.negotiated.ip);
        if self.negotiated.signalling == Some(Encoding::Tia1039) {
            packet.dscp = QOS_FLOW;
        }
        packet
    }

    /// Adds to our SYN or SYN/ACK what it says about rates.
    pub(crate) fn signal_syn(&mut self, now: Instant, syn: &mut Packet) {
        let resends = self.board.get(0).map_or(0, |syn| syn.resends);
        let answers = self.state != State::SynSent;
        let random = u64::from(self.random_values.isn.0) << 32 | u64::from(self.random_values.timestamp);
        match &mut self.signalling {
            None => {}
            Some(End::Tia1039(end)) => {
                let is_hidden = !answers && self.send.hidden_request;
                tia1039::add_to_syn(end, now, syn, answers, resends > 0, is_hidden);
            }
            Some(End::SconeTcp(end)) => scone_tcp::add_to_syn(end, syn, answers, u32::from(resends)),
            Some(End::QuickStart(end)) => quick_start::add_to_syn(end, syn, resends > 0, random),
        }
    }

    /// Adds random bits, which nobody else knows, to what a request by Quick-Start must keep from its
    /// receiver. To be called before the SYN is sent.
    pub const fn set_secret(&mut self, secret: u64) {
        if let Some(End::QuickStart(end)) = &mut self.signalling {
            end.set_secret(secret);
        }
    }

    /// Our SYN will show that we signal, but not carry our request: the path is known to drop it then. The
    /// request follows the handshake. To be called before the SYN is sent.
    pub const fn hide_request(&mut self) {
        self.send.hidden_request = true;
    }

    /// True if our SYN, as it was first sent, carried a request for a rate.
    pub fn asked_in_syn(&self) -> bool {
        let ask = self.config.signalling.as_ref().map(|signalling| &signalling.ask);
        let asks = ask.is_some_and(|ask| ask.asked().is_some() && ask.encoding == Encoding::Tia1039);
        asks && !self.send.hidden_request
    }

    /// Tells a new controller what the peer's SYN says about its rate, or what the scenario grants.
    /// `is_answer`: the SYN acknowledges ours.
    pub(crate) fn take_first_answer(&mut self, cx: &mut Cx<'_>, signal: Option<&SynSignal>, is_answer: bool) {
        let (now, answers) = (cx.now, self.state == State::SynSent);
        let answer = match &mut self.signalling {
            Some(end) => {
                let answer = end.peer_syn(now, answers, signal);
                if let (End::Tia1039(end), true) = (end, is_answer) {
                    end.confirm();
                }
                answer
            }
            None => self.config.grant.as_ref().map(|network| self.grant_state.first(now, network)),
        };
        self.tell_scheme(cx, answer);
    }

    /// Takes what an acceptable segment says about rates; a response to it is then due.
    pub(crate) fn take_signal(&mut self, cx: &mut Cx<'_>, segment: &Packet) {
        if self.acknowledged(segment).is_none() {
            return;
        }
        let (now, srtt) = (cx.now, self.answer_time());
        let answer = match &mut self.signalling {
            None => None,
            Some(End::Tia1039(end)) => {
                let answer = tia1039::take(end, now, srtt, segment);
                if end.is_due() {
                    self.rcv.ack_now();
                }
                answer
            }
            Some(End::SconeTcp(end)) => {
                end.incoming(now, carrier(segment), bentpipe_advice::scone_tcp::packet::of(segment))
            }
            Some(End::QuickStart(end)) => {
                end.incoming(now, bentpipe_advice::quick_start::packet::of_tcp(segment))
            }
        };
        if answer.is_some() {
            let path = self.path();
            let before = self.cc.plan(&path).pace;
            self.tell_scheme(cx, answer);
            self.spread(now, before);
        }
    }

    fn tell_scheme(&mut self, cx: &mut Cx<'_>, answer: Option<RateAnswer>) {
        if let Some(answer) = answer {
            let path = self.path();
            self.cc.on_rate(cx, &path, answer);
        }
    }

    /// Begins a new pace at a random point of its interval. Otherwise the packets of many flows, which all
    /// change their rates when one comes or goes, would gather: intervals grow, and distances stay.
    fn spread(&mut self, now: Instant, before: Option<Rate>) {
        let path = self.path();
        let plan = self.cc.plan(&path);
        if let Some(pace) = plan.pace.filter(|pace| before.is_some_and(|before| before != *pace)) {
            let phase = mix(u64::from(self.iss.0) << 32 ^ self.board.next()) as u16;
            let sizes = (Size(self.mss()), Size(plan.burst.0.min(2 * self.mss())));
            self.pacer.change_rate(now, pace, sizes, phase);
        }
    }

    /// Adds to a packet that is not a SYN what it says about rates. `wish`: a rate that the scheme asks for.
    #[inline]
    pub(crate) fn signal(&mut self, now: Instant, packet: &mut Packet, wish: Option<Rate>) {
        match self.negotiated.signalling {
            None => {}
            Some(Encoding::Tia1039) => self.add_structure(now, packet, wish),
            Some(Encoding::SconeTcp) => self.add_advice(now, packet),
            Some(Encoding::QuickStart) => self.add_quick_start(packet),
        }
    }
}
