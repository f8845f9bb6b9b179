//! The nodes of a network. Each built-in kind has its own table, so that a call costs a branch instead of an
//! indirect call, and the links, which are called by far most often, are adjacent in memory. Nodes of all
//! other kinds are trait objects.

use bentpipe_base::{Addr, Cx, Input, Instant, Node, NodeId, Pkt};
use bentpipe_gateway::Gateway;
use bentpipe_link::Link;
use bentpipe_nodes::{Host, Router};
use std::collections::VecDeque;

/// A node's kind, and its index in the table of that kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Host(u32),
    Link(u32),
    Router(u32),
    /// An open end of the network, used by the driver.
    Open,
    Gateway(u32),
    Other(u32),
}

#[derive(Default)]
pub(crate) struct Nodes {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) links: Vec<Link>,
    pub(crate) routers: Vec<Router>,
    pub(crate) gateways: Vec<Gateway>,
    pub(crate) others: Vec<Box<dyn Node>>,
    /// Packets that have arrived at open ends, oldest first.
    pub(crate) arrived: VecDeque<(Instant, NodeId, Pkt)>,
}

impl core::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Nodes").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

impl Nodes {
    /// Calls a node of any kind.
    #[inline(never)]
    pub(crate) fn handle(&mut self, id: NodeId, cx: &mut Cx<'_>, input: Input) {
        match self.kinds[id.0 as usize] {
            Kind::Host(i) => self.hosts[i as usize].handle(cx, input),
            Kind::Link(i) => self.links[i as usize].handle(cx, input),
            Kind::Router(i) => self.routers[i as usize].handle(cx, input),
            Kind::Open => {
                if let Input::Packet(_, packet) = input {
                    self.arrived.push_back((cx.now, id, packet));
                }
            }
            Kind::Gateway(i) => self.gateways[i as usize].handle(cx, input),
            Kind::Other(i) => self.others[i as usize].handle(cx, input),
        }
    }

    pub(crate) fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.gateways.iter().for_each(|gateway| gateway.addresses(&mut *each));
        self.others.iter().for_each(|other| other.addresses(&mut *each));
    }

    pub(crate) fn release(&mut self, id: NodeId, cx: &mut Cx<'_>) {
        match self.kinds[id.0 as usize] {
            Kind::Gateway(i) => self.gateways[i as usize].release(cx),
            Kind::Other(i) => self.others[i as usize].release(cx),
            _ => {}
        }
    }
}
