//! SCONE's TCP option in the packets of a connection.
//!
//! Source: draft-eddy-tcpm-scone (2025); `bentpipe_advice::negotiation::scone_tcp` says when it is sent.
//!   both SYNs have the option; later any segment may, if its TCP header has room for eight more bytes
//!   MSS: eight bytes less on such a connection
//! A segment without room, with SACK blocks beside timestamps, leaves the option to the next one. No segment
//! is sent only for it, so duplicate ACKs stay what they are.

use super::{End, carrier};
use crate::connection::Connection;
use bentpipe_advice::negotiation::scone_tcp::SconeTcp;
use bentpipe_advice::scone_tcp::packet::{fits, put};
use bentpipe_base::{Instant, Packet};

pub(super) fn add_to_syn(end: &mut SconeTcp, syn: &mut Packet, answers: bool, resends: u32) {
    if fits(syn)
        && let Some(option) = end.syn(answers, resends)
    {
        put(syn, option);
    }
}

impl Connection {
    pub(super) fn add_advice(&mut self, now: Instant, packet: &mut Packet) {
        if let Some(End::SconeTcp(end)) = &mut self.signalling
            && fits(packet)
            && let Some(option) = end.outgoing(now, carrier(packet))
        {
            put(packet, option);
        }
    }
}
