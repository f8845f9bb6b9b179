//! Wires: from a port of one node to a port of another.

use crate::nodes::Kind;
use bentpipe_base::{NodeId, Port};

/// The end of a wire: a node, and the port at which packets enter it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireEnd {
    /// The node.
    pub node: NodeId,
    /// Its port.
    pub port: Port,
}

/// Port 0 of the node: most nodes do not distinguish their ports.
impl From<NodeId> for WireEnd {
    fn from(node: NodeId) -> Self {
        Self { node, port: Port(0) }
    }
}

impl From<(NodeId, Port)> for WireEnd {
    fn from((node, port): (NodeId, Port)) -> Self {
        Self { node, port }
    }
}

/// A node with two ports in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainNode {
    /// The node.
    pub id: NodeId,
    /// True if port 0 leads forward and port 1 back, for a node that works on the other direction.
    pub is_turned: bool,
}

impl ChainNode {
    /// The port at which packets that go forward enter the node, or those that go back.
    pub fn end(self, goes_forward: bool) -> WireEnd {
        WireEnd { node: self.id, port: Port(u32::from(goes_forward == self.is_turned)) }
    }
}

impl From<NodeId> for ChainNode {
    fn from(id: NodeId) -> Self {
        Self { id, is_turned: false }
    }
}

/// Where a wire leads, and which kind of node is there.
type Destination = (WireEnd, Kind);

/// The wires of all ports of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    /// All wires, and how many each node has, as the network is built.
    all: Vec<(NodeId, WireEnd)>,
    ports: Vec<u32>,
    /// The same, used while the network runs: of the first port of each node, and of all ports as one array,
    /// `ends[begin[node] + port]`.
    first: Vec<Option<Destination>>,
    begin: Vec<u32>,
    ends: Vec<Destination>,
}

impl Wires {
    pub(crate) fn add_node(&mut self) -> NodeId {
        self.ports.push(0);
        NodeId(self.ports.len() as u32 - 1)
    }

    /// Connects the next free port of `from` to `to`.
    pub(crate) fn add(&mut self, from: NodeId, to: WireEnd) -> Port {
        let ports = &mut self.ports[from.0 as usize];
        let port = Port(*ports);
        *ports += 1;
        self.all.push((from, to));
        self.first.clear();
        port
    }

    /// Rebuilds the arrays of ends, if anything changed.
    #[inline]
    pub(crate) fn settle(&mut self, kinds: &[Kind]) {
        if self.first.len() != self.ports.len() {
            self.rebuild(kinds);
        }
    }

    #[cold]
    fn rebuild(&mut self, kinds: &[Kind]) {
        let begins = self.ports.iter().scan(0, |next, ports| {
            let begin = *next;
            *next += ports;
            Some(begin)
        });
        self.begin = begins.collect();
        let mut next = self.begin.clone();
        self.ends = vec![(WireEnd::default(), Kind::Open); self.all.len()];
        for (from, end) in &self.all {
            let next = &mut next[from.0 as usize];
            self.ends[*next as usize] = (*end, kinds[end.node.0 as usize]);
            *next += 1;
        }
        let first = |(begin, ports): (&u32, &u32)| (*ports > 0).then(|| self.ends[*begin as usize]);
        self.first = self.begin.iter().zip(&self.ports).map(first).collect();
    }

    /// True if a port of `from` is wired to the node `to`. Settle first.
    pub(crate) fn leads_to(&self, from: NodeId, to: NodeId) -> bool {
        let ends = self.ends.iter().skip(self.begin[from.0 as usize] as usize);
        ends.take(self.ports[from.0 as usize] as usize).any(|(end, _)| end.node == to)
    }

    /// Where the wire at a port leads.
    #[inline]
    pub(crate) fn end(&self, from: NodeId, port: Port) -> Destination {
        if port.0 == 0 {
            return self.first[from.0 as usize].expect("a node sends only where it has a wire");
        }
        self.ends[(self.begin[from.0 as usize] + port.0) as usize]
    }
}
