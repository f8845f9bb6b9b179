//! Who reaches whom, and that explicit routes do not lead in circles.

use super::Network;
use crate::diagnostic::{Fault, Result};
use crate::types::NodeKind;
use std::collections::{BTreeMap, VecDeque};

/// Which nodes are connected.
pub(super) struct Reach {
    component: Vec<usize>,
}

impl Reach {
    /// True when there is a path between two nodes.
    pub(super) fn connected(&self, a: usize, b: usize) -> bool {
        self.component[a] == self.component[b]
    }
}

/// For each node its links, in the order of the file, and who is at their other end.
type Neighbours = Vec<Vec<(usize, usize)>>;

pub(super) fn check(network: &Network) -> Result<Reach> {
    let mut around: Neighbours = vec![Vec::new(); network.nodes.len()];
    for (index, link) in network.links.iter().enumerate() {
        around[link.a].push((index, link.b));
        around[link.b].push((index, link.a));
    }
    let mut targets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (n, (_, target, ..)) in network.routes.iter().enumerate() {
        targets.entry(*target).or_default().push(n);
    }
    for (target, routes) in targets {
        check_target(network, &around, target, &routes)?;
    }
    Ok(Reach { component: components(&around) })
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
            for (_, next) in &around[node] {
                if component[*next] == usize::MAX {
                    component[*next] = start;
                    open.push(*next);
                }
            }
        }
    }
    component
}

/// Hops from every node to `target`; `usize::MAX` where there is no path.
fn hops(around: &Neighbours, target: usize) -> Vec<usize> {
    let mut hops = vec![usize::MAX; around.len()];
    hops[target] = 0;
    let mut open = VecDeque::from([target]);
    while let Some(node) = open.pop_front() {
        for (_, next) in &around[node] {
            if hops[*next] == usize::MAX {
                hops[*next] = hops[node] + 1;
                open.push_back(*next);
            }
        }
    }
    hops
}

/// Follows packets for `target` from every router that has an explicit route for it.
fn check_target(network: &Network, around: &Neighbours, target: usize, routes: &[usize]) -> Result<()> {
    let hops = hops(around, target);
    let mut explicit = BTreeMap::new();
    for (node, _, link, span) in routes.iter().map(|n| network.routes[*n]) {
        let ends = &network.links[link];
        explicit.insert(node, (ends.a + ends.b - node, span));
    }
    let next = |node: usize| match explicit.get(&node) {
        Some((next, _)) => Some(*next),
        None => around[node].iter().find(|(_, n)| hops[*n] < hops[node]).map(|(_, n)| *n),
    };
    let name = |node: usize| network.nodes[node].name.as_str();

    // Nodes from which packets are known to arrive.
    let mut fine = vec![false; around.len()];
    fine[target] = true;
    for (&start, &(_, span)) in &explicit {
        let mut path = vec![start];
        let mut node = start;
        while !fine[node] {
            let Some(step) =
                next(node).filter(|n| *n == target || network.nodes[*n].kind == NodeKind::Router)
            else {
                let wrong = next(node).map_or_else(|| name(node), name);
                let message = format!("packets for `{}` end at `{wrong}`", name(target));
                return Err(Fault::new(span, message, "this route does not lead there"));
            };
            if let Some(at) = path.iter().position(|n| *n == step) {
                let circle: Vec<&str> = path[at..].iter().chain([&step]).map(|n| name(*n)).collect();
                let guilty = path[at..].iter().find_map(|n| explicit.get(n)).map_or(span, |(_, span)| *span);
                let message =
                    format!("packets for `{}` go in a circle: {}", name(target), circle.join(" -> "));
                return Err(Fault::new(guilty, message, "this route is part of it"));
            }
            path.push(step);
            node = step;
        }
        for node in path {
            fine[node] = true;
        }
    }
    Ok(())
}
