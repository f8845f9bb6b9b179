//! The simulated driver: nodes, wires, one event queue, and the clock that jumps from event to event.

use bentpipe_base::{Cx, Input, Instant, Node, NodeId, Port, World};
use bentpipe_link::Link;
use bentpipe_nodes::{Host, Router};
use std::collections::BTreeMap;

/// The built-in nodes. An enum, so that a call costs a branch and not a pointer. Links are by far the most visited,
/// so they lie here in place; the others are boxed.
#[derive(Debug)]
pub enum AnyNode {
    /// Ends of connections.
    Host(Box<Host>),
    /// One direction of a link.
    Link(Link),
    /// Forwards.
    Router(Box<Router>),
}

impl AnyNode {
    #[inline]
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match self {
            Self::Host(n) => n.handle(cx, input),
            Self::Link(n) => n.handle(cx, input),
            Self::Router(n) => n.handle(cx, input),
        }
    }
}

/// Where ports lead. Most nodes have one port: those fit in a few bytes each.
#[derive(Debug, Default)]
struct Wires {
    /// Where port 0 of each node leads.
    one: Vec<Option<NodeId>>,
    /// Where the further ports of nodes lead, for the few nodes that have any.
    more: BTreeMap<NodeId, Vec<NodeId>>,
}

impl Wires {
    fn add(&mut self, from: NodeId, to: NodeId) -> Port {
        let first = &mut self.one[from.0 as usize];
        if first.is_none() {
            *first = Some(to);
            return Port(0);
        }
        let more = self.more.entry(from).or_default();
        more.push(to);
        Port(more.len() as u32)
    }

    #[inline]
    fn end(&self, from: NodeId, port: Port) -> NodeId {
        let end = match port.0.checked_sub(1) {
            None => self.one[from.0 as usize],
            Some(i) => self.more.get(&from).and_then(|m| m.get(i as usize)).copied(),
        };
        end.expect("a node sends only out of ports that were wired")
    }
}

/// A network in simulated time.
#[derive(Debug)]
pub struct Simulation {
    /// The driver's side of every `Cx`.
    pub world: World,
    now: Instant,
    nodes: Vec<AnyNode>,
    wires: Wires,
    events: u64,
}

impl Simulation {
    /// An empty network.
    pub fn new(seed: u64) -> Self {
        Self {
            world: World::new(seed),
            now: Instant::ZERO,
            nodes: Vec::new(),
            wires: Wires::default(),
            events: 0,
        }
    }

    /// Adds a node.
    pub fn add(&mut self, node: AnyNode) -> NodeId {
        self.nodes.push(node);
        self.wires.one.push(None);
        NodeId((self.nodes.len() - 1) as u32)
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
        match &mut self.nodes[id.0 as usize] {
            AnyNode::Host(h) => Some((h, self.world.cx(self.now, id))),
            _ => None,
        }
    }
    /// A link, to look at.
    pub fn link(&mut self, id: NodeId) -> Option<(&mut Link, Cx<'_>)> {
        match &mut self.nodes[id.0 as usize] {
            AnyNode::Link(l) => Some((l, self.world.cx(self.now, id))),
            _ => None,
        }
    }
    /// A router, to look at or to set up.
    pub fn router(&mut self, id: NodeId) -> Option<&mut Router> {
        match &mut self.nodes[id.0 as usize] {
            AnyNode::Router(r) => Some(r),
            _ => None,
        }
    }

    /// True when the sender of `flow` has the acknowledgment of its last data byte.
    pub fn finished(&self, flow: &crate::build::FlowEnds) -> bool {
        let AnyNode::Host(host) = &self.nodes[flow.from.0.0 as usize] else { return false };
        let conn = host.connection(flow.from.2, (flow.to.1, flow.to.2));
        conn.is_some_and(|c| c.stats().finished_at.is_some())
    }

    /// Handles everything up to and including `until`, or until `stop` says so; `stop` is asked after each event.
    pub fn run_until(&mut self, until: Instant, mut stop: impl FnMut(&Self) -> bool) {
        while let Some(wake) = self.world.events.pop_until(until) {
            assert!(wake.at >= self.now, "time never runs backwards");
            self.now = wake.at;
            self.events += 1;
            self.nodes[wake.node.0 as usize]
                .handle(&mut self.world.cx(wake.at, wake.node), Input::Timer(wake.slot));
            while let Some((from, port, packet)) = self.world.outbox.pop_front() {
                let to = self.wires.end(from, port);
                self.events += 1;
                self.nodes[to.0 as usize]
                    .handle(&mut self.world.cx(wake.at, to), Input::Packet(Port(0), packet));
            }
            if stop(self) {
                return;
            }
        }
        self.now = until;
    }
}
