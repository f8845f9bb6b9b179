//! A source of datagrams that asks the network for its rate.
//!
//! Source: TIA-1039 (2006), as `bentpipe_advice::negotiation` describes it: [`DatagramExchange`] says what is
//! asked, and what the source may send meanwhile. Here this becomes packets:
//!   a structure: a datagram of its own with the addresses and ports of the flow
//!   data at a granted rate: DSCP 7, paced; what the pattern wants earlier is put off, and with it all that
//!     follows, so that there is never a backlog to catch up with
//! A structure is never in a datagram of the application, so their number and bytes are exact.

use super::HOPS;
use bentpipe_advice::negotiation::{AskConfig, DatagramExchange, Permit, WhenRefused};
use bentpipe_advice::tia1039::{self, Structure};
use bentpipe_base::{Addr, Cx, Instant, IpVersion, Packet, Port, Proto};
use bentpipe_tcp::RateView;

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

/// The exchange of one source.
#[derive(Clone, Debug)]
pub(super) struct Rated {
    exchange: DatagramExchange,
    ip: IpVersion,
}

/// Our address and port, and the peer's.
pub(super) type Ends = ((Addr, u16), (Addr, u16));

impl Rated {
    pub(super) fn new(rate: &DatagramRate) -> Self {
        Self { exchange: DatagramExchange::new(&rate.ask, rate.ip, rate.when_refused), ip: rate.ip }
    }

    /// What was asked for and granted.
    pub(super) fn view(&self) -> Option<RateView<'_>> {
        let negotiation = self.exchange.negotiation();
        let config = negotiation.config();
        Some(RateView {
            encoding: config.encoding,
            asked: config.asked()?,
            granted: negotiation.granted(),
            state: negotiation.state(),
            changes: negotiation.changes(),
        })
    }

    pub(super) const fn ip(&self) -> IpVersion {
        self.ip
    }

    /// What the source may do.
    pub(super) fn permit(&mut self, now: Instant) -> Permit {
        self.exchange.permit(now)
    }

    /// A datagram was sent.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.exchange.note_sent(now);
    }

    /// Sends the structures that are due. `is_over`: the source has sent all its datagrams.
    pub(super) fn control(&mut self, cx: &mut Cx<'_>, ends: Ends, is_over: bool) {
        for structure in self.exchange.control(cx.now, is_over).as_slice() {
            send(cx, ends, self.ip, *structure);
        }
    }

    /// When [`Rated::control`] has something to do though nothing arrives.
    pub(super) fn control_at(&self, is_over: bool) -> Instant {
        self.exchange.control_at(is_over)
    }

    /// Takes what the peer returned.
    pub(super) fn hear(&mut self, cx: &mut Cx<'_>, ends: Ends, packet: &Packet) {
        for structure in self.exchange.hear(cx.now, tia1039::structures(packet).as_slice()).as_slice() {
            send(cx, ends, self.ip, *structure);
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
