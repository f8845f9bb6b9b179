//! Checks that flows have a path and that explicit routes do not form loops.

use super::Network;
use crate::diagnostic::{Fault, Result};
use crate::source::Span;
use crate::types::NodeKind;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Neighbours of each node, in file order.
type Neighbours = Vec<Vec<usize>>;

/// Returns the connected component of each node.
pub(super) fn check(network: &Network) -> Result<Vec<usize>> {
    let mut around: Neighbours = vec![Vec::new(); network.nodes.len()];
    for link in &network.links {
        around[link.a].push(link.b);
        around[link.b].push(link.a);
    }
    // Hosts behind the same router share its distances.
    let mut doors: BTreeMap<usize, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    for (n, (_, target, ..)) in network.routes.iter().enumerate() {
        let door = around[*target].first().copied().unwrap_or(*target);
        doors.entry(door).or_default().entry(*target).or_default().push(n);
    }
    for (door, targets) in doors {
        let hops = hops(network, &around, door);
        for (target, routes) in targets {
            RouteCheck { network, neighbours: &around, hops: &hops, last_router: door, target }
                .check(&routes)?;
        }
    }
    Ok(components(&around))
}

fn components(around: &Neighbours) -> Vec<usize> {
    let mut component = vec![usize::MAX; around.len()];
    for start in 0..around.len() {
        if component[start] != usize::MAX {
            continue;
        }
        component[start] = start;
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            for next in &around[node] {
                if component[*next] == usize::MAX {
                    component[*next] = start;
                    open.push(*next);
                }
            }
        }
    }
    component
}

/// Returns the hops from every router to the router `door`; `usize::MAX` if there is no path.
fn hops(network: &Network, around: &Neighbours, door: usize) -> Vec<usize> {
    let mut hops = vec![usize::MAX; around.len()];
    hops[door] = 0;
    let mut open = VecDeque::from([door]);
    while let Some(node) = open.pop_front() {
        for next in &around[node] {
            if hops[*next] == usize::MAX && network.nodes[*next].kind == NodeKind::Router {
                hops[*next] = hops[node] + 1;
                open.push_back(*next);
            }
        }
    }
    hops
}

/// Forwarding of packets for one host.
struct RouteCheck<'a> {
    network: &'a Network,
    neighbours: &'a Neighbours,
    hops: &'a [usize],
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
                node = next.filter(|n| self.forwards(*n)).ok_or_else(|| {
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

    fn next(&self, node: usize, explicit: &Explicit) -> Option<usize> {
        explicit.get(&node).map(|(next, _)| *next).or_else(|| self.shortest(node))
    }

    /// Next hop without an explicit route: the first neighbour with fewer hops.
    fn shortest(&self, node: usize) -> Option<usize> {
        if node == self.last_router {
            return Some(self.target);
        }
        self.neighbours[node].iter().copied().find(|n| self.hops[*n] < self.hops[node])
    }

    fn forwards(&self, node: usize) -> bool {
        node == self.target || self.network.nodes[node].kind == NodeKind::Router
    }

    fn name(&self, node: usize) -> &str {
        &self.network.nodes[node].name
    }

    /// Error for a loop through `start`, which has an explicit route.
    fn loop_fault(&self, start: usize, explicit: &Explicit) -> Fault {
        let mut names = vec![self.name(start)];
        let mut node = self.next(start, explicit);
        while let Some(at) = node.filter(|n| *n != start && names.len() < self.neighbours.len()) {
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
