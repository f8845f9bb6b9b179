//! Flows that go on from another address.
//!
//! Source: TIA-1039 (2006), fields source address and source port: zero in a first request; the former ones
//! in a request that restarts a flow whose sender has moved. The source does not say who may do that. Here:
//!   the former flow has the same destination, and a rate
//!   one rule of the policy applies to both addresses: they belong to one customer
//!   when the response passes, the former flow ends, and what was reserved for it is free for the new one
//! so a former flow is continued once, and by a sender that its receiver answers. Any other request with
//! these fields is a first request. Only IPv4 structures have them.

use super::FlowRouter;
use crate::flow::Phase;
use crate::flows::FlowKey;
use crate::policy::Allowance;
use bentpipe_advice::tia1039::Structure;
use bentpipe_base::Cx;
use core::net::{IpAddr, Ipv4Addr};

impl FlowRouter {
    /// The flow that a request continues, if it may.
    pub(super) fn former(
        &self,
        cx: &Cx<'_>,
        key: FlowKey,
        request: &Structure,
        allowance: &Allowance,
    ) -> Option<FlowKey> {
        let (address, port) = request.source();
        let rule = allowance.rule.filter(|_| address != 0 && port != 0)?;
        let address = IpAddr::V4(Ipv4Addr::from(address));
        let former = key.from(cx.addr_of(address)?, port);
        let is_capable = self.flows.get(&former).is_some_and(|flow| flow.phase == Phase::Capable);
        let is_allowed = self.config.policy.allowance(Some(address)).rule == Some(rule);
        (is_capable && is_allowed && former != key).then_some(former)
    }

    /// Takes a flow out of the division; returns its class and limit, with which it must be added again.
    pub(super) fn suspend(&mut self, former: &FlowKey) -> Option<(usize, u64)> {
        let flow = self.flows.get(former)?;
        let limit = flow.counted?;
        self.classes.remove(flow.class, limit);
        Some((flow.class, limit))
    }

    /// The response to a request has passed: the flow that it continues ends.
    pub(super) fn settle_move(&mut self, key: &FlowKey) {
        let Some(former) = self.flows.get_mut(key).and_then(|flow| flow.moved_from.take()) else { return };
        let is_capable = self.flows.get(&former).is_some_and(|flow| flow.phase == Phase::Capable);
        if is_capable && former != *key {
            self.remove(&former);
        }
    }
}
