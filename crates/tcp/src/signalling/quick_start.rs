//! Quick-Start's options in the packets of a connection.
//!
//! Source: RFC 4782, sections 3 and 4; `bentpipe_advice::negotiation::quick_start` has the exchange.
//!   SYN, SYN/ACK: request in the IP header; SYN/ACK, ACK: answer in the TCP header
//!   the packet after an answer reports the rate, in the IP header
//! That packet has no data, as the ACK of a SYN/ACK usually has none: so no segment must be shorter.

use super::End;
use crate::connection::Connection;
use bentpipe_advice::negotiation::quick_start::QuickStart;
use bentpipe_advice::quick_start::Fields;
use bentpipe_advice::quick_start::packet::{of_ip, of_tcp, put};
use bentpipe_base::Packet;

/// The options of a SYN, and the TTL with which it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynOptions {
    pub(super) request: Option<Fields>,
    pub(super) answer: Option<Fields>,
    pub(super) ttl: u8,
}

impl SynOptions {
    pub(super) fn of(syn: &Packet) -> Option<Self> {
        let (request, answer) = (of_ip(syn), of_tcp(syn));
        let has_any = request.is_some() || answer.is_some();
        has_any.then_some(Self { request, answer, ttl: syn.hops })
    }
}

pub(super) fn add_to_syn(end: &mut QuickStart, syn: &mut Packet, is_resent: bool, random: u64) {
    if !is_resent {
        let (request, answer) = end.syn(syn.hops, random);
        put(syn, request, answer);
    }
}

impl Connection {
    pub(super) fn add_quick_start(&mut self, packet: &mut Packet) {
        if let Some(End::QuickStart(end)) = &mut self.signalling
            && packet.body.len == 0
            && end.is_due()
        {
            let (report, answer) = end.outgoing();
            put(packet, report, answer);
        }
    }
}
