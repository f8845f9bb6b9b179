//! Resolves `[[hosts]]`, `[[routers]]` and `[[links]]`.

use super::direction::DirectionContext;
use super::trace_files::TraceFiles;
use super::{Network, check_name, check_nodes, given_items};
use crate::diagnostic::{Fault, Result, bail, did_you_mean, listed};
use crate::form::{At, Keys as _};
use crate::keys::{DirectionKeys, FileKeys, LinkKeys, MAX_LINKS, MAX_ROUTES, RouteKeys, RouterKeys};
use crate::profile;
use crate::scalars::Name;
use crate::source::Span;
use crate::types::{DirectionSpec, LinkSpec, NodeKind, NodeSpec};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn build(file: &FileKeys, span: Span, files: &TraceFiles<'_>) -> Result<Network> {
    let hosts = given_items(file.hosts.as_ref());
    let routers = given_items(file.routers.as_ref());
    let links = given_items(file.links.as_ref());
    check_nodes(hosts.len() + routers.len(), span)?;
    if links.len() > MAX_LINKS {
        return Err(Fault::too_many(span, "links", MAX_LINKS));
    }

    // Nodes are in file order regardless of their kind: routes break ties by order.
    let mut nodes: Vec<(Span, &At<Name>, NodeKind)> =
        hosts.iter().map(|h| (h.span, &h.value.name, NodeKind::Host)).collect();
    nodes.extend(routers.iter().map(|r| (r.span, &r.value.name, NodeKind::Router)));
    nodes.sort_by_key(|(span, ..)| *span);

    let mut network = Network::with_room(nodes.len(), links.len());
    for (_, name, kind) in &nodes {
        if !network.add(NodeSpec { name: (*name.value.0).into(), kind: *kind, routes: Vec::new() }) {
            return Err(Fault::taken(name.span, "nodes", &name.value.0));
        }
    }
    let names = add_links(&mut network, links, files)?;
    check_hosts(&network, &nodes)?;
    for router in routers {
        add_routes(&mut network, &router.value, &names)?;
    }
    Ok(network)
}

/// Adds all links. Returns their indices by the names of both directions.
fn add_links(
    network: &mut Network,
    links: &[At<LinkKeys>],
    files: &TraceFiles<'_>,
) -> Result<BTreeMap<String, usize>> {
    let mut names = BTreeMap::new();
    for (index, link) in links.iter().enumerate() {
        let keys = &link.value;
        let name = keys.name.value.0.clone();
        let reverse =
            keys.reverse_name.as_ref().map_or_else(|| format!("{name}-return"), |n| n.value.0.clone());
        let reverse_span = keys.reverse_name.as_ref().map_or(keys.name.span, |n| n.span);
        for (name, span) in [(&name, keys.name.span), (&reverse, reverse_span)] {
            check_name(name, span)?;
            if names.insert(name.clone(), index).is_some() {
                return Err(Fault::taken(span, "links", name)
                    .help("help: the two directions of a link have a name each"));
            }
        }
        let (a, b) = (find_node(network, &keys.from)?, find_node(network, &keys.to)?);
        if a == b {
            bail!(keys.to.span, "link `{name}` ends where it begins");
        }
        let (forward, backward) = directions(link, files)?;
        let (name, reverse_name) = (name.into(), reverse.into());
        let (forward, backward) = (forward.into(), backward.into());
        network.links.push(LinkSpec { name, reverse_name, a, b, forward, backward });
    }
    Ok(names)
}

/// Resolves both directions of a link. Direction keys override link keys, which override the profile.
fn directions(link: &At<LinkKeys>, files: &TraceFiles<'_>) -> Result<(DirectionSpec, DirectionSpec)> {
    let keys = &link.value;
    let (profile_there, profile_back) = keys.profile.as_ref().map(profile::profile_keys).transpose()?.unzip();
    let merged = |given: &Option<At<DirectionKeys>>, profile: Option<DirectionKeys>| {
        let given = given.as_ref().map(|d| d.value.clone());
        let merged = given.map_or_else(|| keys.both.clone(), |d| d.over(&keys.both));
        match profile {
            Some(profile) => merged.over(&profile),
            None => merged,
        }
    };
    let name = &keys.name.value.0;
    let (whose, back) = (format!("link `{name}` (forward)"), format!("link `{name}` (backward)"));
    let side = DirectionContext { name_in_errors: &whose, span: link.span, forward: None, files };
    let forward = side.direction(&merged(&keys.forward, profile_there))?;
    let side = DirectionContext { name_in_errors: &back, forward: Some(forward.rate), ..side };
    let backward = side.direction(&merged(&keys.backward, profile_back))?;
    Ok((forward, backward))
}

fn find_node(network: &Network, name: &At<Name>) -> Result<usize> {
    let word = &name.value.0;
    let names = network.nodes.iter().map(|n| &*n.name);
    network.by_name.get(&**word).copied().ok_or_else(|| Fault::unknown(name.span, "node", word, names))
}

fn check_hosts(network: &Network, nodes: &[(Span, &At<Name>, NodeKind)]) -> Result<()> {
    let mut count = vec![0_usize; network.nodes.len()];
    for link in &network.links {
        count[link.a] += 1;
        count[link.b] += 1;
    }
    for ((_, name, kind), count) in nodes.iter().zip(count) {
        let host = &name.value.0;
        let (message, label) = match (kind, count) {
            (NodeKind::Router, _) | (_, 1) => continue,
            (_, 0) => (format!("host `{host}` has no link"), "a host has exactly one"),
            (_, n) => {
                (format!("host `{host}` has {n} links"), "a host has exactly one: put a router before it")
            }
        };
        return Err(Fault::new(name.span, message, label));
    }
    Ok(())
}

fn add_routes(network: &mut Network, router: &RouterKeys, links: &BTreeMap<String, usize>) -> Result<()> {
    let node = find_node(network, &router.name)?;
    let mut taken = BTreeSet::new();
    if let Some(routes) = router.routes.as_ref().filter(|r| network.routes.len() + r.value.len() > MAX_ROUTES)
    {
        return Err(Fault::too_many(routes.span, "routes", MAX_ROUTES));
    }
    for route in router.routes.iter().flat_map(|r| &r.value) {
        let RouteKeys { to, via } = &route.value;
        let target = find_node(network, to)?;
        if network.nodes[target].kind == NodeKind::Router {
            let message = format!("`{}` is a router", to.value.0);
            return Err(Fault::new(to.span, message, "a route leads to a host"));
        }
        let link = *links.get(&via.value.0).ok_or_else(|| unknown_link(network, node, via))?;
        let ends = &network.links[link];
        if ends.a != node && ends.b != node {
            let message = format!("link `{}` does not touch `{}`", via.value.0, router.name.value.0);
            return Err(Fault::new(via.span, message, "a router sends over its own links")
                .help(format!("help: its links: {}", listed(links_of(network, node)))));
        }
        if !taken.insert(target) {
            let message = format!("`{}` has two routes to `{}`", router.name.value.0, to.value.0);
            return Err(Fault::new(to.span, message, "this is the second"));
        }
        network.nodes[node].routes.push((target, link));
        network.routes.push((node, target, link, via.span));
    }
    Ok(())
}

fn unknown_link(network: &Network, node: usize, via: &At<Name>) -> Fault {
    let word = &via.value.0;
    let names = || links_of(network, node);
    Fault::new(via.span, format!("there is no link `{word}`"), did_you_mean(word, names())).help(format!(
        "help: links of `{}`: {}",
        network.nodes[node].name,
        listed(names())
    ))
}

fn links_of(network: &Network, node: usize) -> impl Iterator<Item = &str> {
    network.links.iter().filter(move |l| l.a == node || l.b == node).map(|l| &*l.name)
}
