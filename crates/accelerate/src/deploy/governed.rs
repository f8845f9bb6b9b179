//! The gateway's node with the policy of its file.
//!
//! The node knows addresses as numbers; rules speak of real ones. So the path tells the real ends of a packet
//! that opens a connection just before it comes, and the rules, which the node asks in that very call, find
//! them here.

use crate::path::Middle;
use crate::policy::{Opening, Policy};
use bentpipe_base::{Addr, Cx, Input, Node, Packet};
use bentpipe_gateway::{Config, Gateway, Verdict};
use bentpipe_scenario::gateway_file::{Action, Side};
use bentpipe_wire::Ends;
use core::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Addresses that are known at a time.
pub(super) const ADDRESSES: u32 = 1 << 20;

/// The policy and the addresses of the SYN.
#[derive(Debug)]
pub(super) struct PolicyContext {
    pub(super) policy: Arc<Policy>,
    /// Of the packet that opens a connection and is about to come.
    opening: Option<(usize, Ends)>,
}

pub(super) type Shared = Arc<Mutex<PolicyContext>>;

pub(super) fn locked(context: &Shared) -> MutexGuard<'_, PolicyContext> {
    // nobody leaves it half changed
    context.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A gateway whose policy is asked with real addresses.
#[derive(Debug)]
pub(super) struct Governed {
    pub(super) gateway: Gateway,
    context: Shared,
}

impl PolicyContext {
    pub(super) fn new(policy: Arc<Policy>) -> Shared {
        Arc::new(Mutex::new(Self { policy, opening: None }))
    }
}

impl Governed {
    pub(super) fn new(config: Config, context: Shared) -> Self {
        let rules = Arc::clone(&context);
        let gateway = Gateway::new(config).with_rules(Box::new(move |syn| decide(&rules, syn)));
        Self { gateway, context }
    }
}

impl Node for Governed {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.gateway.handle(cx, input);
    }
}

impl Middle for Governed {
    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.gateway.addresses(each);
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.gateway.release_all(cx);
    }

    fn opens(&mut self, side: usize, ends: &Ends) {
        locked(&self.context).opening = Some((side, *ends));
    }
}

/// What the rules say of a SYN.
fn decide(context: &Shared, syn: &Packet) -> Verdict {
    let context = locked(context);
    let Some((side, ends)) = context.opening else { return Verdict::Pass };
    let (from, to): (IpAddr, IpAddr) = match ends {
        Ends::V4 { src, dst } => (src.into(), dst.into()),
        Ends::V6 { src, dst } => (src.into(), dst.into()),
    };
    let side = if side == 0 { Side::Lan } else { Side::Satellite };
    let opening = Opening { from, to, from_port: syn.sport, port: syn.dport, dscp: syn.dscp.get(), side };
    match context.policy.decide(&opening) {
        Action::Accelerate => Verdict::Accelerate,
        Action::Pass => Verdict::Pass,
    }
}
