//! Advice in SCONE's TCP option.
//!
//! Source: draft-eddy-tcpm-scone (2025), and draft-ietf-scone-protocol (2026) for what it leaves open.
//!   the signal of a passing segment := min(signal, share of its flow), never raised, never unknown
//! The share is that of a flow without signalling, which such a flow is here: C u divided among all members.
//! A SYN is told what its flow would get beside those that are there. Advice is not enforced, and there is no
//! state for it: a sender that hears nothing sends as it did. A share below 100 kbit/s, which no signal can
//! say, becomes 100 kbit/s.

use super::FlowRouter;
use crate::flows::FlowKey;
use bentpipe_advice::negotiation::Encoding;
use bentpipe_advice::scone_tcp::packet::{lower_in, of};
use bentpipe_base::{Cx, Packet};

impl FlowRouter {
    /// Lowers the signal of a segment from the senders, if it has one.
    pub(super) fn advise(&mut self, cx: &Cx<'_>, key: &FlowKey, packet: &mut Packet) {
        if !self.speaks(Encoding::SconeTcp) || of(packet).is_none() {
            return;
        }
        let advice = self.advice(cx, key, packet);
        lower_in(packet, advice);
    }
}
