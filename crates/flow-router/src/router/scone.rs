//! Advice in SCONE packets.
//!
//! Source: draft-ietf-scone-protocol (2026). An element replaces the signal of a passing SCONE packet by a
//! lower one, never by a higher one and never by unknown.
//!   signal := min(signal, the highest one whose rate is at most min(level of the class, limit of the rule))
//! The flow is a member of its class like any without signalling, so it gets the share that a request of it
//! would get. Every SCONE packet that passes is written: that needs no state for the period of 67 s, and the
//! lowest signal of a period holds. Readings: a share below the lowest rate (100 kbit/s) is told as that
//! rate, since unknown would say more. The signal is advice: nothing is policed by it, and it limits the flow
//! in no division.

use super::FlowRouter;
use crate::encodings::RouterEncoding;
use crate::flows::FlowKey;
use bentpipe_advice::scone::{Advice, lower_start, read_start};
use bentpipe_base::{Cx, Packet, Proto, Rate, Signal};

impl FlowRouter {
    /// Lowers the signal of a SCONE packet to the share of its flow.
    pub(super) fn advise_datagram(&mut self, cx: &Cx<'_>, key: &FlowKey, packet: &mut Packet) {
        let is_scone = |signal: &Signal| read_start(signal.bytes()).is_some();
        let has = packet.proto == Proto::Udp && packet.signal.as_deref().is_some_and(is_scone);
        if !has || !self.speaks(RouterEncoding::Scone) {
            return;
        }
        let advice = self.advice(cx, key, packet);
        let lowered = packet.signal.as_mut().and_then(|signal| lower_start(signal.bytes_mut(), advice));
        self.counts.advised += u64::from(lowered.is_some());
    }

    /// What a flow without a rate is advised: the share that a request of it would get.
    pub(super) fn advice(&mut self, cx: &Cx<'_>, key: &FlowKey, packet: &Packet) -> Advice {
        let allowance = self.config.policy.allowance(cx.address(packet.src));
        let flow = self.flows.get(key);
        let (class, counted) = flow.map_or((allowance.class, None), |flow| (flow.class, flow.counted));
        let share = self.classes.share_with(class, u64::MAX, counted).min(allowance.most());
        Rate::from_bps(share).and_then(Advice::at_most).unwrap_or(Advice::LOWEST)
    }
}
