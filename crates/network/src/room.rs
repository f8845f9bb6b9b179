//! Room for the nodes of a large network, so that its tables are not moved while they grow.

use crate::network::Network;

impl Network {
    /// Makes room for this many more hosts.
    pub fn reserve_hosts(&mut self, count: usize) {
        self.nodes.hosts.reserve_exact(count);
        self.nodes.kinds.reserve(count);
    }

    /// Makes room for this many more links.
    pub fn reserve_links(&mut self, count: usize) {
        self.nodes.links.reserve_exact(count);
        self.nodes.kinds.reserve(count);
    }
}
