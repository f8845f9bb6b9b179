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
    /// Index of the link.
    pub link: usize,
    /// The port.
    pub port: Port,
    /// Rate of the link in this direction, bit/s.
    pub bps: u64,
}

/// The next hop of every node towards every host.
#[derive(Clone, Debug)]
pub struct RouteTable<'a> {
    ports: &'a [Vec<Hop>],
    /// Port of a node on a given link.
    over: BTreeMap<(usize, usize), Hop>,
    /// For each node with hosts: the next hop of every router towards it.
    towards: BTreeMap<usize, BTreeMap<usize, Hop>>,
    explicit: BTreeMap<(usize, usize), Hop>,
}

impl<'a> RouteTable<'a> {
    /// Computes the routes to the hosts `ends`. `ports` are the ports of each node.
    pub fn new(scenario: &spec::Scenario, ports: &'a [Vec<Hop>], ends: &[usize]) -> Self {
        let over = ports.iter().enumerate().flat_map(|(n, hops)| hops.iter().map(move |h| ((n, h.link), *h)));
        let over: BTreeMap<_, _> = over.collect();
        let mut towards = BTreeMap::new();
        for gate in ends.iter().filter_map(|&host| ports[host].first()).map(|hop| hop.to) {
            towards.entry(gate).or_insert_with(|| fewest_hops(scenario, ports, &over, gate));
        }
        let mut explicit = BTreeMap::new();
        for (node, spec) in scenario.nodes.iter().enumerate() {
            let hop = |(to, link): &(usize, usize)| Some(((node, *to), *over.get(&(node, *link))?));
            explicit.extend(spec.routes.iter().filter_map(hop));
        }
        Self { ports, over, towards, explicit }
    }

    /// The next hop of `node` towards `host`.
    pub fn next(&self, node: usize, host: usize) -> Option<Hop> {
        if let Some(hop) = self.explicit.get(&(node, host)) {
            return Some(*hop);
        }
        let last = self.ports[host].first()?;
        if last.to == node {
            return self.over.get(&(node, last.link)).copied();
        }
        self.towards.get(&last.to)?.get(&node).copied()
    }

    /// Lowest rate on the path between two hosts in bit/s; 0 without a route.
    pub fn lowest_rate(&self, from: usize, to: usize) -> u64 {
        let mut hop = self.ports[from].first().copied();
        let mut lowest = u64::MAX;
        // a route visits no node twice: the scenario was checked for loops
        for _ in 0..self.ports.len() {
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
fn fewest_hops(
    scenario: &spec::Scenario,
    ports: &[Vec<Hop>],
    over: &BTreeMap<(usize, usize), Hop>,
    gate: usize,
) -> BTreeMap<usize, Hop> {
    let mut next = BTreeMap::new();
    let mut queue = VecDeque::from([gate]);
    while let Some(at) = queue.pop_front() {
        for hop in &ports[at] {
            let neighbour = hop.to;
            let router = scenario.nodes[neighbour].kind == spec::NodeKind::Router;
            if neighbour == gate || !router || next.contains_key(&neighbour) {
                continue;
            }
            if let Some(back) = over.get(&(neighbour, hop.link)) {
                next.insert(neighbour, *back);
                queue.push_back(neighbour);
            }
        }
    }
    next
}
