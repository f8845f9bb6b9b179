//! Static routes with the fewest hops between routers; explicit routes override them.
//!
//! A host has one link, so routes lead to the router at its other end. They are computed between routers
//! only, so that the cost depends on the number of routers, not of hosts.

use bentpipe_base::Port;
use bentpipe_scenario as spec;
use std::collections::{BTreeMap, VecDeque};

/// A port of a node and its destination.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Index of the node at the other end.
    pub to: usize,
    /// The port.
    pub port: Port,
    /// Rate of the link in this direction, bit/s.
    pub bps: u64,
}

/// The ports of all nodes.
#[derive(Clone, Debug)]
pub struct Ports {
    /// The hop of each link direction, forward and backward of each link in turn.
    hops: Vec<Hop>,
    /// Where the ports of each node begin in `of_node`, which has indices of directions.
    begin: Vec<u32>,
    of_node: Vec<u32>,
}

impl Ports {
    /// `hops` are those of the directions of all links of the scenario, in turn.
    pub fn new(scenario: &spec::Scenario, hops: Vec<Hop>) -> Self {
        let origins = || scenario.links.iter().flat_map(|link| [link.a, link.b]);
        let mut begin = vec![0_u32; scenario.nodes.len() + 1];
        origins().for_each(|node| begin[node + 1] += 1);
        for node in 1..begin.len() {
            begin[node] += begin[node - 1];
        }
        let mut next = begin.clone();
        let mut of_node = vec![0; hops.len()];
        for (direction, node) in origins().enumerate() {
            of_node[next[node] as usize] = direction as u32;
            next[node] += 1;
        }
        Self { hops, begin, of_node }
    }

    /// The directions that begin at a node, in the order of its ports, each with its hop.
    fn of(&self, node: usize) -> impl Iterator<Item = (usize, Hop)> {
        let range = self.begin[node] as usize..self.begin[node + 1] as usize;
        self.of_node[range].iter().map(|at| (*at as usize, self.hops[*at as usize]))
    }

    /// The first port of a node, and its direction.
    fn first(&self, node: usize) -> Option<(usize, Hop)> {
        self.of(node).next()
    }

    /// The hop of the link's other direction.
    fn back(&self, direction: usize) -> Hop {
        self.hops[direction ^ 1]
    }
}

/// The next hop of every node towards every host.
#[derive(Clone, Debug)]
pub struct RouteTable<'a> {
    ports: &'a Ports,
    /// For each node with hosts: the next hop of every router towards it.
    towards: BTreeMap<usize, BTreeMap<usize, Hop>>,
    explicit: BTreeMap<(usize, usize), Hop>,
}

impl<'a> RouteTable<'a> {
    /// Computes the routes to the hosts `ends`. `ports` are the ports of each node.
    pub fn new(scenario: &spec::Scenario, ports: &'a Ports, ends: &[usize]) -> Self {
        let mut towards = BTreeMap::new();
        for gate in ends.iter().filter_map(|&host| ports.first(host)).map(|(_, hop)| hop.to) {
            towards.entry(gate).or_insert_with(|| fewest_hops(scenario, ports, gate));
        }
        let mut explicit = BTreeMap::new();
        for (node, spec) in scenario.nodes.iter().enumerate() {
            let hop = |(to, link): &(usize, usize)| {
                let (forward, backward) = (2 * link, 2 * link + 1);
                let ends = &scenario.links[*link];
                let direction = if ends.a == node { forward } else { backward };
                (ends.a == node || ends.b == node).then(|| ((node, *to), ports.hops[direction]))
            };
            explicit.extend(spec.routes.iter().filter_map(hop));
        }
        Self { ports, towards, explicit }
    }

    /// The next hop of `node` towards `host`.
    pub fn next(&self, node: usize, host: usize) -> Option<Hop> {
        if let Some(hop) = self.explicit.get(&(node, host)) {
            return Some(*hop);
        }
        let (direction, last) = self.ports.first(host)?;
        if last.to == node {
            return Some(self.ports.back(direction));
        }
        self.towards.get(&last.to)?.get(&node).copied()
    }

    /// Lowest rate on the path between two hosts in bit/s; 0 without a route.
    pub fn lowest_rate(&self, from: usize, to: usize) -> u64 {
        let mut hop = self.ports.first(from).map(|(_, hop)| hop);
        let mut lowest = u64::MAX;
        // a route visits no node twice: the scenario was checked for loops
        for _ in 1..self.ports.begin.len() {
            let Some(h) = hop else { return 0 };
            lowest = lowest.min(h.bps);
            if h.to == to {
                return lowest;
            }
            hop = self.next(h.to, to);
        }
        0
    }
}

/// Breadth-first search from `gate` over routers; each router's route is its port back towards `gate`.
fn fewest_hops(scenario: &spec::Scenario, ports: &Ports, gate: usize) -> BTreeMap<usize, Hop> {
    let mut next = BTreeMap::new();
    let mut queue = VecDeque::from([gate]);
    while let Some(at) = queue.pop_front() {
        for (direction, hop) in ports.of(at) {
            let neighbour = hop.to;
            let router = scenario.nodes[neighbour].kind == spec::NodeKind::Router;
            if neighbour == gate || !router || next.contains_key(&neighbour) {
                continue;
            }
            next.insert(neighbour, ports.back(direction));
            queue.push_back(neighbour);
        }
    }
    next
}
