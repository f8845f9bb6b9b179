//! Checks that flows have a path and that explicit routes do not form loops.

use super::Network;
use crate::diagnostic::{Fault, Result};
use crate::source::Span;
use crate::types::NodeKind;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Neighbours of each node, in file order.
struct Neighbours {
    /// Where those of each node begin in `all`.
    begin: Vec<u32>,
    all: Vec<usize>,
}

impl Neighbours {
    fn new(network: &Network) -> Self {
        let pairs = || network.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let mut begin = vec![0_u32; network.nodes.len() + 1];
        pairs().for_each(|(node, _)| begin[node + 1] += 1);
        for node in 1..begin.len() {
            begin[node] += begin[node - 1];
        }
        let mut next = begin.clone();
        let mut all = vec![0; 2 * network.links.len()];
        for (node, neighbour) in pairs() {
            all[next[node] as usize] = neighbour;
            next[node] += 1;
        }
        Self { begin, all }
    }

    fn of(&self, node: usize) -> &[usize] {
        &self.all[self.begin[node] as usize..self.begin[node + 1] as usize]
    }
}

/// Value of a node that a search has not reached.
const UNREACHED: usize = usize::MAX;

/// Checks explicit routes. Returns the connected component of each node, as the index of its first node.
pub(super) fn check(network: &Network) -> Result<Vec<usize>> {
    let neighbours = Neighbours::new(network);
    let nodes = network.nodes.len();
    // Hosts behind the same router share the number of hops to it.
    let mut by_last_router: BTreeMap<usize, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    for (n, (_, target, ..)) in network.routes.iter().enumerate() {
        let last_router = neighbours.of(*target).first().copied().unwrap_or(*target);
        by_last_router.entry(last_router).or_default().entry(*target).or_default().push(n);
    }
    for (last_router, targets) in by_last_router {
        let mut hops = vec![UNREACHED; nodes];
        hops[last_router] = 0;
        search(&neighbours, last_router, &mut hops, 1, |n| network.nodes[n].kind == NodeKind::Router);
        for (target, routes) in targets {
            RouteCheck { network, neighbours: &neighbours, hops_to_last_router: &hops, last_router, target }
                .check(&routes)?;
        }
    }
    let mut component = vec![UNREACHED; nodes];
    for start in 0..nodes {
        if component[start] == UNREACHED {
            component[start] = start;
            search(&neighbours, start, &mut component, 0, |_| true);
        }
    }
    Ok(component)
}

/// Breadth-first search from `start` over nodes that `enters` allows. Each node that it reaches gets the
/// value of the node before it plus `step`.
fn search(
    neighbours: &Neighbours,
    start: usize,
    values: &mut [usize],
    step: usize,
    enters: impl Fn(usize) -> bool,
) {
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for &next in neighbours.of(node) {
            if values[next] == UNREACHED && enters(next) {
                values[next] = values[node] + step;
                queue.push_back(next);
            }
        }
    }
}

/// Forwarding of packets for one host.
struct RouteCheck<'a> {
    network: &'a Network,
    neighbours: &'a Neighbours,
    /// Hops from each router to the last one; [`UNREACHED`] if there is no path.
    hops_to_last_router: &'a [usize],
    /// Router to which the host is attached.
    last_router: usize,
    target: usize,
}

/// Next hop of each router with an explicit route, and the route's position in the file.
type Explicit = BTreeMap<usize, (usize, Span)>;

impl RouteCheck<'_> {
    /// Follows packets to the host from every router that has one of the explicit `routes`.
    fn check(&self, routes: &[usize]) -> Result<()> {
        let mut explicit = Explicit::new();
        for (node, _, link, span) in routes.iter().map(|n| self.network.routes[*n]) {
            let ends = &self.network.links[link];
            explicit.insert(node, (ends.a + ends.b - node, span));
        }
        // Every loop contains an explicit route: routes with the fewest hops have no loops.
        let mut fine = BTreeSet::new();
        for (&start, &(_, span)) in &explicit {
            let mut passed = BTreeSet::from([start]);
            let mut node = start;
            while node != self.target && !fine.contains(&node) {
                let next = self.next(node, &explicit);
                node = next.filter(|n| self.can_forward(*n)).ok_or_else(|| {
                    let end = self.name(next.unwrap_or(node));
                    let message = format!("packets for `{}` end at `{end}`", self.name(self.target));
                    Fault::new(span, message, "this route does not lead there")
                })?;
                if explicit.contains_key(&node) && !passed.insert(node) {
                    return Err(self.loop_fault(node, &explicit));
                }
            }
            fine.append(&mut passed);
        }
        Ok(())
    }

    /// Returns the next hop of packets at `node`.
    fn next(&self, node: usize, explicit: &Explicit) -> Option<usize> {
        explicit.get(&node).map(|(next, _)| *next).or_else(|| self.shortest(node))
    }

    /// Returns the next hop without an explicit route: the first neighbour with fewer hops.
    fn shortest(&self, node: usize) -> Option<usize> {
        if node == self.last_router {
            return Some(self.target);
        }
        self.neighbours
            .of(node)
            .iter()
            .copied()
            .find(|n| self.hops_to_last_router[*n] < self.hops_to_last_router[node])
    }

    fn can_forward(&self, node: usize) -> bool {
        node == self.target || self.network.nodes[node].kind == NodeKind::Router
    }

    fn name(&self, node: usize) -> &str {
        &self.network.nodes[node].name
    }

    /// Returns the error for a loop through `start`, which has an explicit route.
    fn loop_fault(&self, start: usize, explicit: &Explicit) -> Fault {
        let mut names = vec![self.name(start)];
        let mut node = self.next(start, explicit);
        while let Some(at) = node.filter(|n| *n != start && names.len() < self.network.nodes.len()) {
            names.push(self.name(at));
            node = self.next(at, explicit);
        }
        names.push(self.name(start));
        let message =
            format!("packets for `{}` go in a circle: {}", self.name(self.target), names.join(" -> "));
        let span = explicit.get(&start).map_or(Span::file(0..0), |(_, span)| *span);
        Fault::new(span, message, "this route is part of it")
    }
}
