//! Chains: links that get all their packets from one other link are told of them ahead (`link/ahead.rs`).
//!
//! In a dumbbell, the access links behind the shared link are such links, in both directions: two of six hops
//! of a segment and its acknowledgment need no event. Which links these are depends on who talks to whom, so
//! the driver says it. A network with nodes that may send to anybody, or whose packets are traced, has none;
//! nor has one that is searched for repetitions, because how many packets are told at a time repeats itself
//! in other periods than the rounds of a flow.

use crate::network::Network;
use crate::nodes::Kind;
use bentpipe_base::trace::Mask;
use bentpipe_base::{Addr, Instant, NodeId, Pkt, Port};
use bentpipe_link::Link;

/// Most packets told in one call. Their memory is read ahead together.
const MOST: usize = 64;
/// More hops than a packet has.
const MOST_HOPS: usize = 512;

/// Where the packets that enter a link come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Nowhere,
    One(NodeId),
    Several,
}

impl Network {
    /// Chains links. `pairs` are all the hosts that send packets, with the addresses to which they do. Only
    /// for a network without a trace of packets, that nobody acts on between two calls of
    /// [`Network::run_until`]. It changes no result. Returns the number of links that are told of packets.
    pub fn chain(&mut self, pairs: impl Iterator<Item = (NodeId, Addr)>) -> usize {
        self.wires.settle(&self.nodes.kinds);
        let nodes = &self.nodes;
        let are_usual = nodes.gateways.is_empty()
            && nodes.others.is_empty()
            && nodes.kinds.iter().all(|kind| !matches!(kind, Kind::Open));
        let have_no_mtu = nodes.links.iter().all(|link| !link.sends_messages());
        if !are_usual || !have_no_mtu || self.forward.is_some() || self.world.traces(Mask::PACKETS) {
            return 0;
        }
        let mut told = 0;
        let (from, tells) = self.sources(pairs);
        for (i, kind) in self.nodes.kinds.iter().enumerate() {
            let Kind::Link(link) = *kind else { continue };
            let link = &mut self.nodes.links[link as usize];
            if let From::One(before) = from[i]
                && tells[before.0 as usize]
            {
                link.expect_ahead();
                told += 1;
            }
            if tells[i] {
                link.tell_ahead();
            }
        }
        told
    }

    /// True if a link is told of its packets.
    pub fn is_told(&self, id: NodeId) -> bool {
        matches!(self.nodes.kinds[id.0 as usize], Kind::Link(i) if self.nodes.links[i as usize].is_told())
    }

    /// True if a link tells the next of its packets.
    pub fn tells(&self, id: NodeId) -> bool {
        matches!(self.nodes.kinds[id.0 as usize], Kind::Link(i) if self.nodes.links[i as usize].tells())
    }

    /// For each node, where the packets come from that enter it, if it is a link, and whether it can tell of
    /// all packets that leave it.
    fn sources(&self, pairs: impl Iterator<Item = (NodeId, Addr)>) -> (Vec<From>, Vec<bool>) {
        let mut from = vec![From::Nowhere; self.nodes.kinds.len()];
        let link = |kind: &Kind| match kind {
            Kind::Link(i) => Some(&self.nodes.links[*i as usize]),
            _ => None,
        };
        let mut tells: Vec<bool> = self.nodes.kinds.iter().map(|_| false).collect();
        let mut refused = tells.clone();
        for (host, to) in pairs {
            let mut before = host;
            for _ in 0..MOST_HOPS {
                let Some((id, kind)) = self.next(before, to) else { break };
                let Kind::Link(_) = kind else {
                    refused[before.0 as usize] = true;
                    break;
                };
                let source = &mut from[id.0 as usize];
                match *source {
                    From::Nowhere if link(&kind).is_some_and(Link::can_be_told) => {
                        *source = From::One(before);
                        tells[before.0 as usize] = true;
                    }
                    From::One(one) if one == before => {}
                    From::Nowhere => refused[before.0 as usize] = true,
                    From::One(one) => {
                        *source = From::Several;
                        refused[one.0 as usize] = true;
                        refused[before.0 as usize] = true;
                    }
                    From::Several => refused[before.0 as usize] = true,
                }
                before = id;
            }
        }
        for (i, kind) in self.nodes.kinds.iter().enumerate() {
            tells[i] &= !refused[i] && link(kind).is_some_and(Link::can_tell);
        }
        (from, tells)
    }

    /// The node to which a packet for `to` comes next, other than routers; `None` without a route.
    fn next(&self, from: NodeId, to: Addr) -> Option<(NodeId, Kind)> {
        let (mut end, mut kind) = self.wires.end(from, Port(0));
        for _ in 0..MOST_HOPS {
            let Kind::Router(i) = kind else { return Some((end.node, kind)) };
            let port = self.nodes.routers[i as usize].port_of(to)?;
            (end, kind) = self.wires.end(end.node, port);
        }
        None
    }

    /// Lets a link tell the next ones of packets.
    pub(crate) fn tell(&mut self, id: NodeId, link: usize) {
        let now = self.now();
        self.nodes.links[link].begin_telling(&mut self.world.cx(now, id));
        if self.has_many_links() {
            self.touch_untold(id, link);
        }
        for _ in 0..MOST {
            let Some((at, packet)) = self.nodes.links[link].tell_next() else { break };
            self.hand(id, at, packet);
        }
        self.nodes.links[link].end_telling(&mut self.world.cx(now, id));
    }

    /// Tells the next link of a packet.
    #[inline]
    fn hand(&mut self, from: NodeId, at: Instant, mut packet: Pkt) {
        let (mut to, mut kind) = self.wires.end(from, Port(0));
        while let Kind::Router(i) = kind {
            let router = &mut self.nodes.routers[i as usize];
            let forwarded = router.forward(&mut self.world.cx(at, to.node), packet);
            let Some((port, forwarded)) = forwarded else { return };
            packet = forwarded;
            (to, kind) = self.wires.end(to.node, port);
        }
        let now = self.now();
        let cx = &mut self.world.cx(now, to.node);
        match kind {
            Kind::Link(i) => self.nodes.links[i as usize].expect(cx, at, packet),
            _ => debug_assert!(false, "a link tells only links"),
        }
    }

    /// Reads what telling uses. These loads do not depend on each other.
    fn touch_untold(&self, id: NodeId, link: usize) {
        let (end, kind) = self.wires.end(id, Port(0));
        let Kind::Router(router) = kind else { return };
        let router = &self.nodes.routers[router as usize];
        let mut seen = 0;
        let mut ports = [None; MOST];
        for (port, packet) in ports.iter_mut().zip(self.nodes.links[link].untold()) {
            *port = router.port_of(packet.dst);
        }
        for port in ports.iter().flatten() {
            if let (_, Kind::Link(i)) = self.wires.end(end.node, *port) {
                seen ^= self.nodes.links[i as usize].touch_expected();
            }
        }
        core::hint::black_box(seen);
    }
}
