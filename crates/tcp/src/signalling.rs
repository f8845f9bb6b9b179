//! Rate signalling in the packets of a connection.
//!
//! Sources: TIA-1039 (2006), L. G. Roberts' in-band QoS signalling; RFC 8200, section 4 (a router must not
//! insert an IPv6 extension header). `bentpipe_advice::negotiation` decides what is asked, returned and
//! believed. This module carries its structures and tells the scheme what the network said.
//!   DSCP 3: SYNs of an end that signals, and packets with a structure
//!   DSCP 7: all other packets of a connection whose ends both signal, but not data of an end without a rate
//!   MSS: 16 bytes less on such a connection, the length of a structure. A router inserts one into an IPv4
//!     packet. An IPv6 data packet of a granted rate has one that says nothing, into which a router writes.
//! A structure is outside the stream: it has no sequence number and is no payload. Only packets that the
//! connection accepts, with sequence and acknowledgment number in the window, are read. A response is sent at
//! once, without waiting for data or for the delayed acknowledgment. Here the structure is beside the
//! segment's data, so that no stream position depends on it. A real IPv4 packet has it at the end of its
//! payload, where only the DSCP tells it from data. If the path rewrites the DSCP in mid-flow:
//!   a packet with a structure, but without DSCP 3, is dropped as if it were lost;
//!   so is data with DSCP 3 without a structure, since it is not known where it ends.
//! What is sent again has DSCP 7 and no structure, so a flow goes on. Whoever writes real bytes must take
//! care that data never ends like a structure ([`bentpipe_advice::tia1039::at_end`]).

use crate::config::Config;
use crate::connection::Connection;
use crate::handshake::set_addresses;
use crate::state::State;
use bentpipe_advice::negotiation::{Carrier, Encoding, Negotiation, RateChange, RateState};
use bentpipe_advice::tia1039::{self, Structures};
use bentpipe_base::{Cx, Dscp, Flags, Instant, IpVersion, Packet, Pkt, Rate};

/// The rate that a connection asked for, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateView<'a> {
    /// How packets carry it.
    pub encoding: Encoding,
    /// The rate asked for, in bit/s of IP packets.
    pub asked: Rate,
    /// The rate granted now, also after a fallback.
    pub granted: Option<Rate>,
    /// What the sender does.
    pub state: RateState,
    /// The first changes of the granted rate, at most 1000.
    pub changes: &'a [RateChange],
}

/// Returns the state of a new connection, if it is to signal.
pub(crate) fn negotiation(config: &Config) -> Option<Box<Negotiation>> {
    config.signalling.as_ref().map(|s| Box::new(Negotiation::new(s.ask.clone(), config.ip)))
}

/// Returns the structures of a SYN or SYN/ACK; `None` if it does not show that its sender signals.
pub(crate) fn signal_of_syn(syn: &Packet) -> Option<Structures> {
    (syn.dscp == tia1039::QOS_SIGNAL).then(|| tia1039::structures(syn))
}

/// True for a code point of packets whose sender knows that both ends signal.
fn is_of_agreement(dscp: Dscp) -> bool {
    dscp == tia1039::QOS_SIGNAL || dscp == tia1039::QOS_FLOW
}

fn carrier(packet: &Packet) -> Carrier {
    if packet.seq_len() > 0 { Carrier::Data } else { Carrier::Ack }
}

impl Connection {
    /// Returns the rate that this end asked for; `None` if it asks for none.
    pub fn rate(&self) -> Option<RateView<'_>> {
        let negotiation = self.signalling.as_deref()?;
        let config = negotiation.config();
        let state = match negotiation.state() {
            RateState::Granted | RateState::Reduced if self.cc.fallback().is_some() => RateState::FallenBack,
            state => state,
        };
        Some(RateView {
            encoding: config.encoding,
            asked: config.ask?,
            granted: negotiation.granted(),
            state,
            changes: negotiation.changes(),
        })
    }

    /// True if real packets of this connection may have a structure at the end of their payload, in our view
    /// or in the peer's. Then no data may look like one.
    pub fn may_have_structures_in_payload(&self) -> bool {
        self.config.ip == IpVersion::V4 && self.signalling.as_ref().is_some_and(|n| n.is_offered())
    }

    /// True for a packet of which it is not certain what is data and what is a structure: the path has
    /// rewritten its DSCP. SYNs have no data here.
    pub(crate) fn is_rewritten(&self, segment: &Packet) -> bool {
        let is_v6 = self.negotiated.ip == IpVersion::V6;
        if !self.negotiated.signalling || is_v6 || segment.tcp.flags.has(Flags::SYN) {
            return false;
        }
        let is_signal = segment.dscp == tia1039::QOS_SIGNAL;
        if is_signal { segment.signal.is_none() && segment.body.len > 0 } else { segment.signal.is_some() }
    }

    /// Returns a packet with our addresses, and with the DSCP of a connection that signals.
    #[inline]
    pub(crate) fn blank(&self, cx: &mut Cx<'_>) -> Pkt {
        let mut packet = cx.packet();
        set_addresses(&mut packet, self.tuple, self.negotiated.ip);
        if self.negotiated.signalling {
            packet.dscp = tia1039::QOS_FLOW;
        }
        packet
    }

    /// Adds to our SYN or SYN/ACK what it says about rates. Resent, it only shows that this end signals: the
    /// path may drop packets with structures. A SYN/ACK shows that only to a peer that signals.
    pub(crate) fn signal_syn(&mut self, now: Instant, syn: &mut Packet) {
        let resent = self.board.get(0).is_some_and(|syn| syn.resends > 0);
        let answers = self.state != State::SynSent;
        let Some(negotiation) = &mut self.signalling else { return };
        let shown = if answers { negotiation.is_agreed() } else { negotiation.is_offered() };
        if !shown {
            return;
        }
        syn.dscp = tia1039::QOS_SIGNAL;
        if !resent {
            tia1039::write(syn, &negotiation.syn(now));
        }
    }

    /// Tells a new controller what the peer's SYN says about its rate, or what the scenario grants.
    /// `is_answer`: the SYN acknowledges ours.
    pub(crate) fn take_first_answer(
        &mut self,
        cx: &mut Cx<'_>,
        signal: Option<&Structures>,
        is_answer: bool,
    ) {
        let now = cx.now;
        let answer = match &mut self.signalling {
            Some(negotiation) => {
                let answer = negotiation.peer_syn(now, signal.map(Structures::as_slice));
                if is_answer {
                    negotiation.confirm();
                }
                answer
            }
            None => self.config.grant.as_ref().map(|network| self.grant_state.first(now, network)),
        };
        if let Some(answer) = answer {
            let path = self.path();
            self.cc.on_rate(cx, &path, answer);
        }
    }

    /// Takes what an acceptable segment says about rates; a response to it is then due. In IPv6 the option
    /// says what it is, in IPv4 the DSCP.
    pub(crate) fn take_signal(&mut self, cx: &mut Cx<'_>, segment: &Packet) {
        if self.acknowledged(segment).is_none() {
            return;
        }
        let marked = segment.dscp == tia1039::QOS_SIGNAL || segment.ip == IpVersion::V6;
        let structures = if marked { tia1039::structures(segment) } else { Structures::default() };
        let srtt = self.rtt.srtt();
        let Some(negotiation) = &mut self.signalling else { return };
        if is_of_agreement(segment.dscp) {
            negotiation.confirm();
        }
        let answer = negotiation.incoming(cx.now, srtt, carrier(segment), structures.as_slice());
        if negotiation.is_due() {
            self.rcv.ack_now();
        }
        if let Some(answer) = answer {
            let path = self.path();
            self.cc.on_rate(cx, &path, answer);
        }
    }

    /// Adds to a packet that is not a SYN what it says about rates. `wish`: a rate that the scheme asks for.
    #[inline]
    pub(crate) fn signal(&mut self, now: Instant, packet: &mut Packet, wish: Option<Rate>) {
        if self.negotiated.signalling {
            self.add_structure(now, packet, wish);
        }
    }

    fn add_structure(&mut self, now: Instant, packet: &mut Packet, wish: Option<Rate>) {
        let (srtt, carrier) = (self.rtt.srtt(), carrier(packet));
        let Some(negotiation) = &mut self.signalling else { return };
        // data without a rate must not look as if it had one: a router would hold it to what it offered
        let has_none = matches!(negotiation.state(), RateState::Plain | RateState::Refused);
        if has_none && carrier == Carrier::Data && packet.dscp == tia1039::QOS_FLOW {
            packet.dscp = Dscp::DEFAULT;
        }
        // a scheme repeats a wish until a packet with data was sent
        let wish = wish.filter(|_| carrier == Carrier::Data);
        let structure = negotiation.outgoing(now, srtt, carrier, wish);
        if negotiation.is_due() {
            self.rcv.ack_now(); // a packet has room for one
        }
        match structure {
            Some(structure) => tia1039::write(packet, &[structure]),
            None => self.add_place(packet),
        }
    }

    /// IPv6: adds to a data packet the structure into which a router may write. The packet stays data. Only a
    /// sender that uses a granted rate needs it, and the answer shows that the path passes such packets.
    pub(crate) fn add_place(&self, packet: &mut Packet) {
        if !self.negotiated.signalling || packet.ip != IpVersion::V6 || packet.body.len == 0 {
            return;
        }
        let Some(place) = self.signalling.as_ref().and_then(|negotiation| negotiation.placeholder()) else {
            return;
        };
        if self.cc.fallback().is_some() {
            return;
        }
        let dscp = packet.dscp;
        tia1039::write(packet, &[place]);
        packet.dscp = dscp;
    }
}
