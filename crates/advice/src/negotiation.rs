//! One end of a connection that agrees with the network on rates: what it asks, answers and believes. Here
//! with TIA-1039; [`scone_tcp`] and [`quick_start`] are the same for the other encodings.
//!
//! Source: TIA-1039 (2006), L. G. Roberts' explicit-rate TCP with in-band QoS signalling.
//!   SYN: the opener's request. SYN/ACK: the response to it, then a request of its own. ACK: the response.
//!   A receiver returns each request at once. It may lower the rate to what it takes itself.
//!   A router that has less for a flow puts a request with a lower rate into a packet of the flow. The
//!     receiver returns it like any other, and the sender obeys.
//!   A sender that wants more asks in a data packet. Only the answer to its own request raises a rate.
//! No structure counts the routers that understand it. So a sender asks for more than any link has, and
//! believes the first answer only if somebody lowered it: AR < asked, or M set, or `trust_path`. In an IPv6
//! response the flow label takes the place of M, so AR decides alone.
//!
//! The source does not define what is lost, late or false. Here:
//! - A SYN that is resent has no structure, since the path may drop such packets. A request that the
//!   handshake did not answer is in the next packet without data.
//! - The first request is repeated in packets without data, once per max(2 SRTT, 200 ms), at most 8 times.
//!   Then the connection goes on without a rate.
//! - A later request waits max(2 s, 4 SRTT) for its answer. Answers belong to the oldest request that is not
//!   below them. An answer above all requests is ignored; one below the present rate is always obeyed.
//! - Rate zero is a refusal. Behind its FIN an end asks nothing.
//! - A router that has not seen the start of a flow says so in a data packet. The receiver returns that
//!   unchanged in a packet without data, so each end knows whether it is meant. The sender asks again, with
//!   the rate of its first request.
//! - Besides SYNs, a packet carries one structure: a response before a request.
//! - The end that answers a SYN does not know whether its SYN/ACK arrived with its DSCP. In IPv4 a peer that
//!   does not know of the agreement would take a structure for data. So this end puts none into later packets
//!   until a packet of the peer shows by its DSCP that it knows ([`Negotiation::confirm`]), and its data does
//!   not have the DSCP of a rate until then.

mod asker;
mod datagrams;
mod exchange;
mod history;
pub mod quick_start;
mod responder;
pub mod scone_tcp;
mod terms;
#[cfg(test)]
mod tests;

use crate::tia1039::{Kind, RateType, Structure};
use asker::Asker;
use bentpipe_base::{Duration, Instant, IpVersion, Rate};
pub use exchange::{DatagramExchange, Permit, WhenRefused};
use responder::Responder;
pub use terms::Terms;

/// A structure of version 1 in which all else is zero.
const PLACEHOLDER: [u8; Structure::LEN] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0];

/// How packets carry rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The structures of TIA-1039.
    #[default]
    Tia1039,
    /// SCONE in a TCP option ([`scone_tcp`]).
    SconeTcp,
    /// The options of Quick-Start, RFC 4782 ([`quick_start`]).
    QuickStart,
}

impl Encoding {
    /// Returns the word for it in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tia1039 => "tia-1039",
            Self::SconeTcp => "scone-tcp",
            Self::QuickStart => "quick-start",
        }
    }
}

/// What one end asks for, takes and believes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskConfig {
    /// How packets carry rates.
    pub encoding: Encoding,
    /// The rate this end asks for what it sends, in bit/s of IP packets; `None`: it only answers. With a
    /// composite rate this is the available part, and a maximum or guaranteed rate takes its place. With
    /// SCONE the most that it uses, since there nobody names a rate.
    pub ask: Option<Rate>,
    /// What it asks for besides.
    pub terms: Terms,
    /// The most that this end takes as a receiver; it lowers AR to that.
    pub take: Option<Rate>,
    /// Believe a response that nobody lowered; TIA-1039 only.
    pub trust_path: bool,
}

impl AskConfig {
    /// All that this end asks for, in bit/s of IP packets: available and guaranteed rate.
    pub fn asked(&self) -> Option<Rate> {
        let ask = self.ask?;
        let guaranteed = self.terms.guaranteed.map_or(0, Rate::bps);
        match self.terms.rate_type {
            RateType::Available => Some(ask),
            RateType::Composite => Rate::from_bps(ask.bps().saturating_add(guaranteed)),
            RateType::Maximum | RateType::Guaranteed => self.terms.guaranteed,
        }
    }
}

/// What the network said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateAnswer {
    /// Answer to a request of ours; it may be higher or lower than before.
    Granted(Rate),
    /// A lower rate that nobody asked for.
    Reduced(Rate),
    /// No rate.
    Refused,
    /// The peer or the path does not signal.
    Plain,
}

/// The state of a sender's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateState {
    /// The peer or the path does not signal, or nothing was asked yet.
    #[default]
    Plain,
    /// Asked, not answered yet.
    Asked,
    /// Granted, and not lowered since the last raise.
    Granted,
    /// The network lowered it.
    Reduced,
    /// The network gives no rate.
    Refused,
    /// The sender does not trust its rate: too much was lost.
    FallenBack,
    /// The first request was not answered and is repeated.
    AskingAgain,
}

impl RateState {
    /// Returns the word for it in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Asked => "asked",
            Self::Granted => "granted",
            Self::Reduced => "reduced",
            Self::Refused => "refused",
            Self::FallenBack => "fallen-back",
            Self::AskingAgain => "asking-again",
        }
    }
}

/// A change of the granted rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RateChange {
    /// When the sender learned of it.
    pub at: Instant,
    /// The rate from then on, in bit/s of IP packets.
    pub rate: Rate,
    /// `granted`, `raised` or `reduced`.
    pub cause: &'static str,
}

/// A packet that is not a SYN: what it may carry depends on whether it has data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// It has data.
    Data,
    /// It has none.
    Ack,
}

/// One end of one connection with TIA-1039.
#[derive(Clone, Debug)]
pub struct Negotiation {
    config: AskConfig,
    /// Both ends signal.
    agreed: bool,
    /// The peer knows that both do.
    confirmed: bool,
    ip: IpVersion,
    /// An answer has shown that packets with structures arrive.
    passes: bool,
    asker: Asker,
    responder: Responder,
}

impl Negotiation {
    /// The end of a connection whose SYN was neither sent nor received yet.
    pub fn new(config: AskConfig, ip: IpVersion) -> Self {
        let (asker, responder) = (Asker::new(&config, ip), Responder::new(config.take, ip));
        Self { config, agreed: false, confirmed: false, ip, passes: false, asker, responder }
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &AskConfig {
        &self.config
    }
    /// True if our SYN shows that this end signals.
    pub fn is_offered(&self) -> bool {
        self.config.encoding == Encoding::Tia1039
    }
    /// True if both ends signal.
    pub const fn is_agreed(&self) -> bool {
        self.agreed
    }
    /// Returns the state of the rate that this end asked for.
    pub const fn state(&self) -> RateState {
        self.asker.history.state()
    }
    /// Returns the rate that is granted now, in bit/s of IP packets.
    pub const fn granted(&self) -> Option<Rate> {
        self.asker.history.granted()
    }
    /// Returns the rate that this end last returned to its peer, in bit/s of IP packets.
    pub const fn returned(&self) -> Option<Rate> {
        self.responder.returned
    }
    /// Returns the first changes of the granted rate, at most 1000.
    pub fn changes(&self) -> &[RateChange] {
        self.asker.history.changes()
    }
    /// Keeps at most `most` changes from now on, for a holder of many negotiations.
    pub const fn keep_changes(&mut self, most: usize) {
        self.asker.history.most = most;
    }
    /// Returns the number of all changes of the granted rate.
    pub const fn change_count(&self) -> u64 {
        self.asker.history.count()
    }

    /// Returns the structures of our SYN or SYN/ACK when it is sent for the first time. Resent, it has none.
    pub fn syn(&mut self, now: Instant) -> Vec<Structure> {
        self.responder.next(Carrier::Ack).into_iter().chain(self.asker.open(now)).collect()
    }

    /// The peer has shown that it knows that both ends signal: by its SYN/ACK, or by the DSCP of a packet
    /// that is not a SYN.
    pub const fn confirm(&mut self) {
        self.confirmed = true;
    }

    /// True if our packets may carry structures: in IPv6 nobody takes them for data. Data that may not must
    /// not look as if it had a rate, since routers would put structures into it.
    pub const fn may_carry(&self) -> bool {
        self.agreed && (self.confirmed || matches!(self.ip, IpVersion::V6))
    }

    /// Takes the structures of the peer's SYN or SYN/ACK; `None` if it does not show that the peer signals.
    pub fn peer_syn(&mut self, now: Instant, structures: Option<&[Structure]>) -> Option<RateAnswer> {
        let Some(structures) = structures.filter(|_| self.is_offered()) else {
            return self.asker.give_up();
        };
        self.agreed = true;
        let answer = self.hear(now, Duration::ZERO, Carrier::Ack, structures);
        let unasked = self.asker.ask_soon();
        answer.or(unasked)
    }

    /// Takes the structures of another packet of the peer. Call it for packets without structures too.
    pub fn incoming(
        &mut self,
        now: Instant,
        srtt: Duration,
        packet: Carrier,
        structures: &[Structure],
    ) -> Option<RateAnswer> {
        if !self.agreed {
            return None;
        }
        let answer = self.hear(now, srtt, packet, structures);
        if !self.passes {
            self.asker.ask_again(now, srtt);
        }
        answer.or_else(|| self.asker.unanswered(now, srtt))
    }

    /// Returns the structure that the next packet of ours carries, if any. `wish` is a rate that the sender
    /// asks for in this packet, or in the next one that has room for it.
    pub fn outgoing(
        &mut self,
        now: Instant,
        srtt: Duration,
        packet: Carrier,
        wish: Option<Rate>,
    ) -> Option<Structure> {
        if !self.may_carry() {
            return None;
        }
        self.asker.want(wish);
        self.responder.next(packet).or_else(|| self.asker.next(now, srtt, packet))
    }

    /// Our FIN was sent: nothing more is asked.
    pub const fn end(&mut self) {
        self.asker.has_ended = true;
    }

    /// True if something waits for a packet that should be sent at once.
    pub fn is_due(&self) -> bool {
        self.may_carry() && (self.responder.is_due() || self.asker.is_due())
    }

    /// Returns the structure that says nothing: a place in an IPv6 packet where a router may write. `None`
    /// without a granted rate, and while the path may drop such packets.
    pub fn placeholder(&self) -> Option<Structure> {
        let granted = self.granted().filter(|_| self.passes)?;
        let mut place = Structure::from_bytes(PLACEHOLDER);
        place.set_available(Some(granted));
        Some(place)
    }

    /// A timeout: perhaps the path drops packets with structures, until the next answer shows that it does
    /// not.
    pub const fn timeout(&mut self) {
        self.passes = false;
    }

    /// Returns the last answer in the structures of a packet; what must be returned is queued.
    fn hear(
        &mut self,
        now: Instant,
        srtt: Duration,
        packet: Carrier,
        structures: &[Structure],
    ) -> Option<RateAnswer> {
        let mut answer = None;
        for structure in structures.iter().filter(|s| s.is_supported()) {
            match (structure.kind(), packet) {
                (Some(Kind::Response), _) => {
                    answer = self.asker.answered(now, srtt, structure).or(answer);
                    self.passes = true;
                }
                (Some(Kind::MissedStart), Carrier::Ack) => self.asker.missed(now, srtt),
                (Some(Kind::MissedStart), Carrier::Data) => self.responder.keep(*structure),
                (Some(kind), _) if kind.is_request() => self.responder.respond(*structure),
                _ => {}
            }
        }
        answer
    }
}
