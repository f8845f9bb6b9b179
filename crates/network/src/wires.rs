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
    /// Ends of each node's ports, while the network is built.
    ports: Vec<Vec<WireEnd>>,
    /// The same, used while the network runs: of the first port of each node, and of all ports as one array,
    /// `ends[begin[node] + port]`.
    first: Vec<Option<Destination>>,
    begin: Vec<u32>,
    ends: Vec<Destination>,
}

impl Wires {
    pub(crate) fn add_node(&mut self) -> NodeId {
        self.ports.push(Vec::new());
        NodeId(self.ports.len() as u32 - 1)
    }

    /// Connects the next free port of `from` to `to`.
    pub(crate) fn add(&mut self, from: NodeId, to: WireEnd) -> Port {
        let ports = &mut self.ports[from.0 as usize];
        ports.push(to);
        self.first.clear();
        Port(ports.len() as u32 - 1)
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
        self.first.clear();
        self.begin.clear();
        self.ends.clear();
        for ports in &self.ports {
            let ends = ports.iter().map(|end| (*end, kinds[end.node.0 as usize]));
            self.first.push(ends.clone().next());
            self.begin.push(self.ends.len() as u32);
            self.ends.extend(ends);
        }
    }

    /// True if a port of `from` is wired to the node `to`.
    pub(crate) fn leads_to(&self, from: NodeId, to: NodeId) -> bool {
        self.ports.get(from.0 as usize).is_some_and(|ports| ports.iter().any(|end| end.node == to))
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
