//! Wires: from a port of one node to a port of another.

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

/// The wires of all ports of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    /// Ends of each node's ports, while the network is built.
    ports: Vec<Vec<WireEnd>>,
    /// The same as one array, used while the network runs: `ends[first[node] + port]`.
    first: Vec<u32>,
    ends: Vec<WireEnd>,
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

    /// Rebuilds the array of ends, if anything changed.
    pub(crate) fn settle(&mut self) {
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

    /// True if a port of `from` is wired to the node `to`.
    pub(crate) fn leads_to(&self, from: NodeId, to: NodeId) -> bool {
        self.ports.get(from.0 as usize).is_some_and(|ports| ports.iter().any(|end| end.node == to))
    }

    #[inline]
    pub(crate) fn end(&self, from: NodeId, port: Port) -> WireEnd {
        self.ends[(self.first[from.0 as usize] + port.0) as usize]
    }
}
