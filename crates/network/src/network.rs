//! The network: nodes, wires, one event queue, and the present time.

use crate::forward::FastForward;
use crate::nodes::{Kind, Nodes};
use crate::wires::{ChainNode, WireEnd, Wires};
use bentpipe_base::{Addr, Addresses, Cx, Input, Instant, Node, NodeId, Pkt, Port, Rate, Slot, World};
use bentpipe_gateway::Gateway;
use bentpipe_link::Link;
use bentpipe_nodes::{Host, Router};
use core::net::IpAddr;

/// How many events before a link's is handled its own memory is read, and how many before that of the node to
/// which it delivers (see [`Network::touch_ahead`]).
const FAR_AHEAD: usize = 8;
const AHEAD: usize = 4;
/// From so many events in a slice of time on, they are looked at by slices.
const DENSE: usize = 24;
/// With fewer links everything is in a near cache.
const MANY_LINKS: usize = 256;

/// A network.
#[derive(Debug, Default)]
pub struct Network {
    /// The event queue, sent packets, address table and random streams behind every `Cx`; the driver may
    /// access them.
    pub world: World,
    now: Instant,
    pub(crate) nodes: Nodes,
    /// The search for repetitions, if they are skipped.
    pub(crate) forward: Option<Box<FastForward>>,
    pub(crate) wires: Wires,
    /// The slice of time for which memory was read ahead, and whether it has many events.
    touched: u64,
    is_dense: bool,
    /// True if super-packets enter links whole. This is correct only while no link does anything that needs
    /// the single wire packets, which is up to the driver.
    pub pass_whole: bool,
}

impl Network {
    /// An empty network.
    pub fn new(seed: u64) -> Self {
        Self { world: World::new(seed), ..Self::default() }
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

    /// Adds a gateway. Its first wire leads to the hosts that send, its second to the satellite hop: ports
    /// [`bentpipe_gateway::LAN`] and [`bentpipe_gateway::SATELLITE`].
    pub fn add_gateway(&mut self, gateway: Gateway) -> NodeId {
        self.nodes.gateways.push(gateway);
        self.add_kind(Kind::Gateway(self.nodes.gateways.len() as u32 - 1))
    }

    /// Adds a node of any other kind.
    pub fn add(&mut self, node: Box<dyn Node>) -> NodeId {
        self.nodes.others.push(node);
        self.add_kind(Kind::Other(self.nodes.others.len() as u32 - 1))
    }

    /// Adds an open end, with one wire as a host has. The driver takes packets that arrive there
    /// ([`Network::take_arrived`]) and injects packets there ([`Network::inject`]).
    pub fn add_open_end(&mut self) -> NodeId {
        self.add_kind(Kind::Open)
    }

    fn add_kind(&mut self, kind: Kind) -> NodeId {
        self.nodes.kinds.push(kind);
        self.wires.add_node()
    }

    /// Connects the next free port of `from` to a port of another node (port 0 if only the node is given);
    /// returns the port of `from`.
    pub fn wire(&mut self, from: NodeId, to: impl Into<WireEnd>) -> Port {
        self.wires.add(from, to.into())
    }

    /// Connects nodes with two ports in a chain: port 0 of each leads back, of the first to `near`; port 1
    /// leads forward, of the last to `far`. With a node that is turned ([`ChainNode`]) the other way round.
    pub fn wire_chain<N: Into<ChainNode> + Copy>(
        &mut self,
        near: impl Into<WireEnd>,
        chain: &[N],
        far: impl Into<WireEnd>,
    ) {
        let (near, far) = (near.into(), far.into());
        for (n, node) in chain.iter().enumerate() {
            let node: ChainNode = (*node).into();
            let back = n.checked_sub(1).map_or(near, |before| chain[before].into().end(false));
            let forward = chain.get(n + 1).map_or(far, |next| (*next).into().end(true));
            let ports = if node.is_turned { [forward, back] } else { [back, forward] };
            for to in ports {
                self.wire(node.id, to);
            }
        }
    }

    /// Advances the time to `floor` at least: events due before it are handled at that time.
    pub fn skip_to(&mut self, floor: Instant) {
        self.now = self.now.max(floor);
    }

    /// Returns the address numbers that stand for two real addresses, source and destination, and assigns
    /// them if needed; `None` if all numbers are in use.
    pub fn numbers(&mut self, ends: (IpAddr, IpAddr)) -> Option<(Addr, Addr)> {
        let nodes = &self.nodes;
        self.world.addresses.find(ends, |each| nodes.addresses(each))
    }

    /// Makes every node release the packets it holds.
    pub fn release(&mut self) {
        self.wires.settle(&self.nodes.kinds);
        for i in 0..self.nodes.kinds.len() {
            let id = NodeId(i as u32);
            self.nodes.release(id, &mut self.world.cx(self.now, id));
        }
        self.deliver_outbox(self.now);
    }

    /// Calls `act` with the gateway `id`, then delivers the packets it sent.
    pub fn with_gateway<T>(
        &mut self,
        id: NodeId,
        act: impl FnOnce(&mut Gateway, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        self.wires.settle(&self.nodes.kinds);
        let Kind::Gateway(i) = self.nodes.kinds[id.0 as usize] else { return None };
        let done = act(&mut self.nodes.gateways[i as usize], &mut self.world.cx(self.now, id));
        self.deliver_outbox(self.now);
        Some(done)
    }

    /// Routes packets for `to` the same way as those for `like`, in all routers.
    pub fn route_alike(&mut self, to: Addr, like: Addr) {
        self.nodes.routers.iter_mut().for_each(|router| router.route_alike(to, like));
    }

    /// A blank packet.
    pub fn blank(&mut self) -> Pkt {
        self.world.cx(self.now, NodeId(0)).packet()
    }

    /// True if a node reads the headers of packets.
    pub const fn reads_headers(&self) -> bool {
        !self.nodes.gateways.is_empty() || !self.nodes.others.is_empty()
    }

    /// True if a node reads rate signalling.
    pub fn reads_signalling(&self) -> bool {
        self.nodes.others.iter().any(|node| node.reads_signalling())
    }

    /// True if a node must see every end of a payload that looks like a structure.
    pub fn reads_all_ends(&self) -> bool {
        self.nodes.others.iter().any(|node| node.reads_all_ends())
    }

    /// Tells the node directly before a link what rate somebody outside has set for the link; `None`: none
    /// any more. Gateways do not follow it.
    pub fn tell_rate(&mut self, link: NodeId, rate: Option<Rate>) {
        self.wires.settle(&self.nodes.kinds);
        for (id, kind) in self.nodes.kinds.iter().enumerate() {
            let (id, Kind::Other(i)) = (NodeId(id as u32), kind) else { continue };
            if self.wires.leads_to(id, link) {
                self.nodes.others[*i as usize].link_rate(&mut self.world.cx(self.now, id), rate);
            }
        }
        self.deliver_outbox(self.now);
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns a host.
    pub fn host(&mut self, id: NodeId) -> Option<(&mut Host, Cx<'_>)> {
        let Kind::Host(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some((&mut self.nodes.hosts[i as usize], self.world.cx(self.now, id)))
    }
    /// Returns a link.
    pub fn link(&mut self, id: NodeId) -> Option<(&mut Link, Cx<'_>)> {
        let Kind::Link(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some((&mut self.nodes.links[i as usize], self.world.cx(self.now, id)))
    }
    /// Returns a router.
    pub fn router(&mut self, id: NodeId) -> Option<&mut Router> {
        let Kind::Router(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some(&mut self.nodes.routers[i as usize])
    }

    /// Returns a gateway, and the table of real addresses behind address numbers.
    pub fn gateway(&mut self, id: NodeId) -> Option<(&mut Gateway, &mut Addresses)> {
        let Kind::Gateway(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some((&mut self.nodes.gateways[i as usize], &mut self.world.addresses))
    }

    /// Counters of a node that is not of a built-in kind.
    pub fn counters(&self, id: NodeId) -> Vec<(&'static str, u64)> {
        let mut all = Vec::new();
        if let Kind::Other(i) = self.nodes.kinds[id.0 as usize] {
            self.nodes.others[i as usize].counters(&mut |key, n| all.push((key, n)));
        }
        all
    }

    /// Returns a host, read-only.
    pub fn peek_host(&self, id: NodeId) -> Option<&Host> {
        let Kind::Host(i) = self.nodes.kinds[id.0 as usize] else { return None };
        Some(&self.nodes.hosts[i as usize])
    }

    /// Delivers a packet to the node at the other end of a wire. Routers forward within the call. Always
    /// inlined, as [`Network::wake`]: a call would cost a tenth of a hop.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: 10 % of a hop's instructions")]
    fn deliver(&mut self, at: Instant, from: NodeId, port: Port, mut packet: Pkt) {
        let (mut to, mut kind) = self.wires.end(from, port);
        while let Kind::Router(i) = kind {
            let router = &mut self.nodes.routers[i as usize];
            let forwarded = router.forward(&mut self.world.cx(at, to.node), packet);
            let Some((port, forwarded)) = forwarded else { return };
            packet = forwarded;
            (to, kind) = self.wires.end(to.node, port);
        }
        if packet.segment != 0 && self.takes_wire_packets(to.node) {
            return self.cut(at, to, packet);
        }
        let cx = &mut self.world.cx(at, to.node);
        match kind {
            Kind::Link(i) => self.nodes.links[i as usize].receive(cx, packet),
            Kind::Host(i) => self.nodes.hosts[i as usize].receive(cx, packet),
            _ => self.nodes.handle(to.node, cx, Input::Packet(to.port, packet)),
        }
    }

    /// Calls a node with a timer that is due. Returns the packet that it sends at port 0 if it is the only
    /// one.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `deliver`")]
    fn wake(&mut self, id: NodeId, slot: Slot) -> Option<Pkt> {
        let cx = &mut self.world.cx(self.now, id);
        match self.nodes.kinds[id.0 as usize] {
            Kind::Link(i) => {
                let link = &mut self.nodes.links[i as usize];
                if link.tells() {
                    self.tell(id, i as usize);
                    return None;
                }
                return link.wake(cx);
            }
            Kind::Host(i) => self.nodes.hosts[i as usize].wake(cx, slot),
            _ => self.nodes.handle(id, cx, Input::Timer(slot)),
        }
        None
    }

    /// True for nodes that receive super-packets as wire packets.
    fn takes_wire_packets(&self, id: NodeId) -> bool {
        match self.nodes.kinds[id.0 as usize] {
            Kind::Link(_) => !self.pass_whole,
            Kind::Other(i) => !self.nodes.others[i as usize].takes_super_packets(),
            _ => false,
        }
    }

    /// Delivers a super-packet to a node as its wire packets.
    #[cold]
    fn cut(&mut self, at: Instant, to: WireEnd, whole: Pkt) {
        for i in 0..whole.pieces() {
            let cx = &mut self.world.cx(at, to.node);
            let mut piece = cx.duplicate(&whole);
            piece.cut_to_segment(i);
            self.nodes.handle(to.node, cx, Input::Packet(to.port, piece));
        }
        self.world.cx(at, to.node).recycle(whole);
    }

    /// Ends the run: brings the counters of links up to date, then frees the packets and wake-ups, for which
    /// a report has no use.
    pub fn end(&mut self) {
        for (i, kind) in self.nodes.kinds.iter().enumerate() {
            if let Kind::Link(link) = kind {
                self.nodes.links[*link as usize].end(&mut self.world.cx(self.now, NodeId(i as u32)));
            }
        }
        self.world.end();
    }

    /// Frees the hosts, once nothing more is read of them.
    pub fn end_hosts(&mut self) {
        self.nodes.hosts = Vec::new();
        self.nodes
            .kinds
            .iter_mut()
            .filter(|kind| matches!(kind, Kind::Host(_)))
            .for_each(|kind| *kind = Kind::Open);
    }

    /// Injects a packet at an open end, now.
    pub fn inject(&mut self, end: NodeId, packet: Pkt) {
        self.wires.settle(&self.nodes.kinds);
        self.deliver(self.now, end, Port(0), packet);
        self.deliver_outbox(self.now);
    }

    /// Removes and returns the oldest packet that has arrived at an open end, with its due time and the end.
    #[inline]
    pub fn take_arrived(&mut self) -> Option<(Instant, NodeId, Pkt)> {
        self.nodes.arrived.pop_front()
    }

    /// True if a packet has arrived at an open end and was not taken.
    pub fn has_arrived(&self) -> bool {
        !self.nodes.arrived.is_empty()
    }

    /// Time of the next event; the event may turn out to do nothing.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.world.events.next_at()
    }

    fn deliver_outbox(&mut self, at: Instant) {
        while let Some((from, port, packet)) = self.world.outbox.pop_front() {
            self.deliver(at, from, port, packet);
        }
    }

    /// Reads what nodes that are called soon will use. With thousands of connections, the memory of each is
    /// in no near cache when its turn comes; these loads do not depend on each other, and the processor does
    /// them while it goes on. It changes nothing.
    #[inline]
    fn touch_ahead(&mut self) {
        if self.touched != self.world.events.slice() {
            self.touched = self.world.events.slice();
            self.is_dense = self.world.events.of_this_slice().len() >= DENSE;
            if self.is_dense {
                self.touch_slices();
            }
        }
        if !self.is_dense
            && let Some(id) = self.world.events.soon(FAR_AHEAD)
        {
            self.touch_link(id);
        }
        if let Some(id) = self.world.events.soon(AHEAD) {
            self.touch_destination(id);
        }
    }

    /// A slice of time begins: reads the links that are called in the next one, and where those lead that are
    /// called in this one.
    #[inline(never)]
    fn touch_slices(&self) {
        self.world.events.of_next_slice().for_each(|id| self.touch_link(id));
        self.world.events.of_this_slice().for_each(|id| self.touch_destination(id));
    }

    #[inline]
    fn touch_link(&self, id: NodeId) {
        if let Kind::Link(i) = self.nodes.kinds[id.0 as usize] {
            core::hint::black_box(self.nodes.links[i as usize].touch());
        }
    }

    /// The same for the node to which a link delivers a packet.
    #[inline(never)]
    fn touch_destination(&self, link: NodeId) {
        let Kind::Link(i) = self.nodes.kinds[link.0 as usize] else { return };
        let packet = self.nodes.links[i as usize].next_arrival();
        let (mut to, mut kind) = self.wires.end(link, Port(0));
        if let Kind::Router(i) = kind {
            let port = packet.and_then(|p| self.nodes.routers[i as usize].port_of(p.dst));
            let Some(port) = port else { return };
            (to, kind) = self.wires.end(to.node, port);
        }
        let seen = match kind {
            Kind::Link(i) => self.nodes.links[i as usize].touch(),
            Kind::Host(i) => self.nodes.hosts[i as usize].touch(packet),
            _ => u64::from(to.node.0),
        };
        core::hint::black_box(seen);
    }

    /// Handles all events up to and including `until`, or until `stop`, called after each event, returns
    /// true.
    pub fn run_until(&mut self, until: Instant, mut stop: impl FnMut(&Self) -> bool) {
        self.wires.settle(&self.nodes.kinds);
        while let Some(wake) = self.world.events.pop_until(until) {
            // later than `wake.at` only if the driver has skipped time (`skip_to`)
            self.now = self.now.max(wake.at);
            if self.has_many_links() {
                self.touch_ahead();
            }
            let mut sent = match self.wake(wake.node, wake.slot) {
                Some(packet) => Some((wake.node, Port(0), packet)),
                None => self.world.outbox.pop_front(),
            };
            while let Some((from, port, packet)) = sent {
                self.deliver(self.now, from, port, packet);
                sent = self.world.outbox.pop_front();
            }
            if stop(self) {
                return;
            }
            if self.forward.is_some() {
                self.consider(wake.node, until);
            }
        }
        self.now = self.now.max(until);
    }

    /// True if there are more links than fit a near cache.
    #[inline]
    pub(crate) const fn has_many_links(&self) -> bool {
        self.nodes.links.len() >= MANY_LINKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forwards packets from port 0 to port 1 and back; counts both.
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
