//! The simulated driver: nodes, wires, one event queue, and the clock that jumps from event to event.

use bentpipe_base::{Cx, Input, Instant, Node, NodeId, Pkt, Port, World};
use bentpipe_gateway::{Gateway, LAN, SATELLITE};
use bentpipe_link::Link;
use bentpipe_nodes::{Host, Router};
use std::collections::VecDeque;

/// Where a node lies: its kind's table and its place there.
#[derive(Clone, Copy, Debug)]
enum Place {
    Host(u32),
    Link(u32),
    Router(u32),
    Port,
    Gateway(u32),
    /// The satellite side of the gateway that lies before it: a wire leads to a node, not to a port of it, and a gateway must know its sides apart.
    Satellite(u32),
}

/// The built-in nodes, a table for each kind, so that a call costs a branch and no pointer, and links, by far the most visited, lie
/// side by side.
#[derive(Debug, Default)]
struct Nodes {
    places: Vec<Place>,
    hosts: Vec<Host>,
    links: Vec<Link>,
    routers: Vec<Router>,
    gateways: Vec<Gateway>,
    /// What has come to ports, oldest first.
    arrived: VecDeque<(Instant, NodeId, Pkt)>,
}

impl Nodes {
    #[inline]
    fn handle(&mut self, id: NodeId, cx: &mut Cx<'_>, input: Input) {
        match self.places[id.0 as usize] {
            Place::Host(i) => self.hosts[i as usize].handle(cx, input),
            Place::Link(i) => self.links[i as usize].handle(cx, input),
            Place::Router(i) => self.routers[i as usize].handle(cx, input),
            Place::Port => {
                if let Input::Packet(_, packet) = input {
                    self.arrived.push_back((cx.now, id, packet));
                }
            }
            // what comes at its other side is handed to the gateway itself
            Place::Gateway(i) | Place::Satellite(i) => self.gateways[i as usize].handle(cx, input),
        }
    }
}

/// Where ports lead.
#[derive(Debug, Default)]
struct Wires {
    /// Ends of each node's ports, while the network is built.
    ports: Vec<Vec<NodeId>>,
    /// The same in one piece, once it runs: `ends[first[node] + port]`.
    first: Vec<u32>,
    ends: Vec<NodeId>,
}

impl Wires {
    fn add(&mut self, from: NodeId, to: NodeId) -> Port {
        let ports = &mut self.ports[from.0 as usize];
        ports.push(to);
        self.first.clear();
        Port(ports.len() as u32 - 1)
    }

    /// Lays all ends side by side, if anything changed.
    fn settle(&mut self) {
        if self.first.len() == self.ports.len() {
            return;
        }
        self.first.clear();
        self.ends.clear();
        for ports in &self.ports {
            self.first.push(self.ends.len() as u32);
            self.ends.extend_from_slice(ports);
        }
    }

    #[inline]
    fn end(&self, from: NodeId, port: Port) -> NodeId {
        self.ends[(self.first[from.0 as usize] + port.0) as usize]
    }
}

/// A network in simulated time.
#[derive(Debug)]
pub struct Simulation {
    /// The driver's side of every `Cx`.
    pub world: World,
    now: Instant,
    nodes: Nodes,
    wires: Wires,
    events: u64,
}

impl Simulation {
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
        self.place(Place::Host(self.nodes.hosts.len() as u32 - 1))
    }

    /// Adds one direction of a link.
    pub fn add_link(&mut self, link: Link) -> NodeId {
        self.nodes.links.push(link);
        self.place(Place::Link(self.nodes.links.len() as u32 - 1))
    }

    /// Adds a router.
    pub fn add_router(&mut self, router: Router) -> NodeId {
        self.nodes.routers.push(router);
        self.place(Place::Router(self.nodes.routers.len() as u32 - 1))
    }

    /// Adds a gateway. Its first wire leads to the side of the hosts that send, its second into the hop; what comes back over the hop is wired to
    /// [`Simulation::satellite_side`].
    pub fn add_gateway(&mut self, gateway: Gateway) -> NodeId {
        self.nodes.gateways.push(gateway);
        let index = self.nodes.gateways.len() as u32 - 1;
        let id = self.place(Place::Gateway(index));
        self.place(Place::Satellite(index));
        id
    }

    /// Where a wire to a gateway's satellite side leads.
    pub const fn satellite_side(gateway: NodeId) -> NodeId {
        NodeId(gateway.0 + 1)
    }

    /// Adds a port: an end of the network behind which something else lies than a node. It has one wire, as a host has.
    pub fn add_port(&mut self) -> NodeId {
        self.place(Place::Port)
    }

    fn place(&mut self, place: Place) -> NodeId {
        self.wires.ports.push(Vec::new());
        self.nodes.places.push(place);
        NodeId(self.nodes.places.len() as u32 - 1)
    }

    /// Plugs the next free port of `from` into `to`; returns the port of `from`.
    pub fn wire(&mut self, from: NodeId, to: NodeId) -> Port {
        self.wires.add(from, to)
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
        let Place::Host(i) = self.nodes.places[id.0 as usize] else { return None };
        Some((&mut self.nodes.hosts[i as usize], self.world.cx(self.now, id)))
    }
    /// A link, to look at.
    pub fn link(&mut self, id: NodeId) -> Option<(&mut Link, Cx<'_>)> {
        let Place::Link(i) = self.nodes.places[id.0 as usize] else { return None };
        Some((&mut self.nodes.links[i as usize], self.world.cx(self.now, id)))
    }
    /// A router, to look at or to set up.
    pub fn router(&mut self, id: NodeId) -> Option<&mut Router> {
        let Place::Router(i) = self.nodes.places[id.0 as usize] else { return None };
        Some(&mut self.nodes.routers[i as usize])
    }

    /// A gateway, to look at.
    pub fn gateway(&mut self, id: NodeId) -> Option<&mut Gateway> {
        let Place::Gateway(i) = self.nodes.places[id.0 as usize] else { return None };
        Some(&mut self.nodes.gateways[i as usize])
    }

    /// A host, to look at only.
    pub fn peek_host(&self, id: NodeId) -> Option<&Host> {
        let Place::Host(i) = self.nodes.places[id.0 as usize] else { return None };
        Some(&self.nodes.hosts[i as usize])
    }

    /// Hands a packet to the node at the other end of a wire. Routers forward within the call.
    #[inline]
    fn hand_over(&mut self, at: Instant, from: NodeId, port: Port, mut packet: Pkt) {
        let mut to = self.wires.end(from, port);
        self.events += 1;
        while let Place::Router(i) = self.nodes.places[to.0 as usize] {
            let router = &mut self.nodes.routers[i as usize];
            let Some((port, forwarded)) = router.forward(&mut self.world.cx(at, to), packet) else { return };
            packet = forwarded;
            to = self.wires.end(to, port);
            self.events += 1;
        }
        let mut side = LAN;
        if let Place::Satellite(_) = self.nodes.places[to.0 as usize] {
            to = NodeId(to.0 - 1);
            side = SATELLITE;
        }
        self.nodes.handle(to, &mut self.world.cx(at, to), Input::Packet(side, packet));
    }

    /// Lets a packet in at a port, now.
    pub fn inject(&mut self, port: NodeId, packet: Pkt) {
        self.wires.settle();
        self.hand_over(self.now, port, Port(0), packet);
        self.hand_out(self.now);
    }

    /// The oldest packet that has come to a port and was not taken yet: when it was due, where, and itself.
    #[inline]
    pub fn take_arrived(&mut self) -> Option<(Instant, NodeId, Pkt)> {
        self.nodes.arrived.pop_front()
    }

    /// True when a packet has come to a port and was not taken yet.
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
