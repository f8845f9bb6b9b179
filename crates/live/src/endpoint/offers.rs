//! Passive opens in two steps, for a proxy: it holds a SYN until the other side has answered.

use super::icmp::IcmpError;
use super::input::{LEAST_MSS, checksums_hold};
use super::signal::Received;
use super::socket::{FourTuple, Owner, Socket};
use super::table::ConnId;
use super::{Endpoint, EndpointError, fitted};
use bentpipe_base::Cx;
use bentpipe_tcp::{Config, Offer};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::parse;
use core::net::SocketAddr;

/// A SYN that waits for a decision. Dropped, it gets no answer.
#[derive(Debug)]
pub struct HeldOffer {
    pair: FourTuple,
    offer: Offer,
}

impl Endpoint {
    /// Takes a SYN, to be completed or refused later; `None` if it is damaged or not a SYN.
    pub fn hold(
        &mut self,
        cx: &mut Cx<'_>,
        bytes: &[u8],
        vnet: &VnetHeader,
        config: &Config,
    ) -> Option<HeldOffer> {
        let mut segment = parse(bytes).ok()?;
        let seen_to = vnet.flags & (VnetHeader::NEEDS_CSUM | VnetHeader::DATA_VALID) != 0;
        if !self.is_between_hosts(&segment) || !(seen_to || checksums_hold(bytes)) {
            return None;
        }
        self.counters.received += 1;
        segment.tcp.mss = segment.tcp.mss.map(|mss| mss.max(LEAST_MSS));
        let pair = FourTuple::of(&segment);
        let packet = pair.packet(cx, &Received::new(bytes, segment).of_listener());
        let offer = Offer::new(&packet, fitted(config, &self.settings, !pair.local().is_ipv4()));
        cx.recycle(packet);
        offer.map(|offer| HeldOffer { pair, offer })
    }

    /// Accepts: the SYN/ACK is sent next. [`super::SocketEvent::Connected`] follows when it is acknowledged.
    ///
    /// # Errors
    /// When there is a connection between these addresses already, or there are too many.
    pub fn complete(&mut self, cx: &mut Cx<'_>, held: HeldOffer) -> Result<ConnId, EndpointError> {
        self.check_room(&held.pair)?;
        let chance = self.chance(cx);
        let conn = held.offer.complete(cx, chance);
        let id = self.table.add(held.pair, Socket::new(cx.now, conn, held.pair, Owner::Application));
        self.mark(id);
        Ok(id)
    }

    /// Refuses with a RST, as a host does at whose port nothing listens.
    pub fn refuse(&mut self, cx: &mut Cx<'_>, held: HeldOffer) {
        let rst = held.offer.refuse(cx);
        self.reply(cx, held.pair, rst);
    }

    /// Returns our address and the peer's of the connection that an ICMP error is about, if this is one.
    pub fn subject_of_icmp(bytes: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
        IcmpError::read(bytes).map(|said| (said.pair.local(), said.pair.remote()))
    }
}
