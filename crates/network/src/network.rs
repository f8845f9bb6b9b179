//! Nodes, wires, one event queue, and the time up to which everything has happened.

use crate::nodes::{Kind, Nodes};
use crate::wires::{End, Wires};
use bentpipe_base::{Cx, Input, Instant, Node, NodeId, Pkt, Port, World};
use bentpipe_gateway::Gateway;
use bentpipe_link::Link;
use bentpipe_nodes::{Host, Router};

/// A network.
#[derive(Debug)]
pub struct Network {
    /// The driver's side of every `Cx`.
    pub world: World,
    now: Instant,
    nodes: Nodes,
    wires: Wires,
    events: u64,
}

impl Network {
    /// An empty network.
    pub fn new(seed: u64) -> Self {
        Self {
            world: World::new(seed),
            now: Instant::ZERO,
            nodes: Nodes::default(),
            wires: Wires::default(),
            events: 0,
        }
    }

    /// Adds a host.
    pub fn add_host(&mut self, host: Host) -> NodeId {
        self.nodes.hosts.push(host);
        self.add_kind(Kind::Host(self.nodes.hosts.len() as u32 - 1))
    }

    /// Adds one direction of a link.
    pub fn add_link(&mut self, link: Link) -> NodeId {
        self.nodes.links.push(link);
        self.add_kind(Kind::Link(self.nodes.links.len() as u32 - 1))
    }

    /// Adds a router.
    pub fn add_router(&mut self, router: Router) -> NodeId {
        self.nodes.routers.push(router);
        self.add_kind(Kind::Router(self.nodes.routers.len() as u32 - 1))
    }

    /// Adds a gateway. Its first wire leads to the hosts that send, its second into the hop: its ports [`bentpipe_gateway::LAN`] and
    /// [`bentpipe_gateway::SATELLITE`].
    pub fn add_gateway(&mut self, gateway: Gateway) -> NodeId {
        self.nodes.gateways.push(gateway);
        self.add_kind(Kind::Gateway(self.nodes.gateways.len() as u32 - 1))
    }

    /// Adds a node of any other kind.
    pub fn add(&mut self, node: Box<dyn Node>) -> NodeId {
        self.nodes.others.push(node);
        self.add_kind(Kind::Other(self.nodes.others.len() as u32 - 1))
    }

    /// Adds an open end: what arrives there is for the driver ([`Network::take_arrived`]), and the driver lets packets in there
    /// ([`Network::inject`]). It has one wire, as a host has.
    pub fn add_open_end(&mut self) -> NodeId {
        self.add_kind(Kind::Open)
    }

    fn add_kind(&mut self, kind: Kind) -> NodeId {
        self.nodes.kinds.push(kind);
        self.wires.add_node()
    }

    /// Leads the next free port of `from` to a port of another node, the first one if only the node is named; returns the port of `from`.
    pub fn wire(&mut self, from: NodeId, to: impl Into<End>) -> Port {
        self.wires.add(from, to.into())
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.now
    }
    /// Events handled so far: wake-ups and packets handed over.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// A host, to look at or to set up.
    pub fn host(&mut self, id: NodeId) -> Option<(&mut Host, Cx<'_>)> {
        let Kind::Host(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some((&mut self.nodes.hosts[i as usize], self.world.cx(self.now, id)))
    }
    /// A link, to look at.
    pub fn link(&mut self, id: NodeId) -> Option<(&mut Link, Cx<'_>)> {
        let Kind::Link(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some((&mut self.nodes.links[i as usize], self.world.cx(self.now, id)))
    }
    /// A router, to look at or to set up.
    pub fn router(&mut self, id: NodeId) -> Option<&mut Router> {
        let Kind::Router(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some(&mut self.nodes.routers[i as usize])
    }

    /// A gateway, to look at.
    pub fn gateway(&mut self, id: NodeId) -> Option<&mut Gateway> {
        let Kind::Gateway(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some(&mut self.nodes.gateways[i as usize])
    }

    /// A host, to look at only.
    pub fn peek_host(&self, id: NodeId) -> Option<&Host> {
        let Kind::Host(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some(&self.nodes.hosts[i as usize])
    }

    /// Hands a packet to the node at the other end of a wire. Routers forward within the call.
    #[inline]
    fn hand_over(&mut self, at: Instant, from: NodeId, port: Port, mut packet: Pkt) {
        let mut to = self.wires.end(from, port);
        self.events += 1;
        while let Kind::Router(i) = self.nodes.kinds[to.node.0 as usize] {
            let router = &mut self.nodes.routers[i as usize];
            let forwarded = router.forward(&mut self.world.cx(at, to.node), packet);
            let Some((port, forwarded)) = forwarded else { return };
            packet = forwarded;
            to = self.wires.end(to.node, port);
            self.events += 1;
        }
        self.nodes.handle(to.node, &mut self.world.cx(at, to.node), Input::Packet(to.port, packet));
    }

    /// Lets a packet in at an open end, now.
    pub fn inject(&mut self, end: NodeId, packet: Pkt) {
        self.wires.settle();
        self.hand_over(self.now, end, Port(0), packet);
        self.hand_out(self.now);
    }

    /// The oldest packet that has arrived at an open end and was not taken yet: when it was due, where, and itself.
    #[inline]
    pub fn take_arrived(&mut self) -> Option<(Instant, NodeId, Pkt)> {
        self.nodes.arrived.pop_front()
    }

    /// True when a packet has arrived at an open end and was not taken yet.
    pub fn has_arrived(&self) -> bool {
        !self.nodes.arrived.is_empty()
    }

    /// When something is to be done next; it may turn out to be nothing.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.world.events.next_at()
    }

    #[inline]
    fn hand_out(&mut self, at: Instant) {
        while let Some((from, port, packet)) = self.world.outbox.pop_front() {
            self.hand_over(at, from, port, packet);
        }
    }

    /// Handles everything up to and including `until`, or until `stop` says so; `stop` is asked after each event.
    pub fn run_until(&mut self, until: Instant, mut stop: impl FnMut(&Self) -> bool) {
        self.wires.settle();
        while let Some(wake) = self.world.events.pop_until(until) {
            assert!(wake.at >= self.now, "time never runs backwards");
            self.now = wake.at;
            self.events += 1;
            self.nodes.handle(wake.node, &mut self.world.cx(wake.at, wake.node), Input::Timer(wake.slot));
            self.hand_out(wake.at);
            if stop(self) {
                return;
            }
        }
        self.now = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends what comes in at port 0 out of port 1, and the other way round; counts both.
    #[derive(Debug, Default)]
    struct Middle([u32; 2]);

    impl Node for Middle {
        fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
            if let Input::Packet(port, packet) = input {
                self.0[port.0 as usize] += 1;
                cx.send(Port(1 - port.0), packet);
            }
        }
    }

    #[test]
    fn a_node_of_any_kind_knows_at_which_port_a_packet_came_in() {
        let mut network = Network::new(1);
        let ends = [network.add_open_end(), network.add_open_end()];
        let middle = network.add(Box::<Middle>::default());
        for (side, end) in ends.into_iter().enumerate() {
            network.wire(end, (middle, Port(side as u32)));
            network.wire(middle, end);
        }
        for (from, to) in [(0, 1), (1, 0)] {
            network.inject(ends[from], Pkt::default());
            assert_eq!(network.take_arrived().map(|(_, end, _)| end), Some(ends[to]));
        }
        assert!(!network.has_arrived());
    }
}
