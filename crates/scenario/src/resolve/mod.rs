//! Resolves the keys of a file to a [`Scenario`].

mod app;
pub(crate) mod custom;
mod direction;
mod dumbbell;
mod dynamics;
mod fade;
pub(crate) mod flow_routers;
mod flows;
pub(crate) mod gateways;
mod graph;
mod middleboxes;
mod names;
mod observe;
mod queue;
mod routes;
mod satellite;
mod scheme;
mod series;
mod shared;
pub(crate) mod signalling;
mod start;
mod tcp;
mod timeline;
mod trace_files;

pub(crate) use self::signalling::LONGEST_BURST;
pub(crate) use self::tcp::configs as tcp_configs;

use self::names::Directions;
use self::trace_files::TraceFiles;
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::keys::{DirectionKeys, FileKeys, MAX_NODES, MeasureKeys};
use crate::scalars::{MAX_NAME, Name};
use crate::source::Span;
use crate::trace::{Files, NoFiles};
use crate::types::{App, DirectionSpec, FlowSpec, LinkSpec, NodeKind, NodeSpec, ParamValue, Scenario, Stop};
use bentpipe_base::{Duration, Instant};
use bentpipe_link::{CapacityTrace, FadeSource};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// Maximum number of points of rates, delays, losses and fades, summed over all directions.
const MAX_POINTS: usize = 200_000;
/// Maximum number of opportunities of mahimahi traces, summed over all directions.
const MAX_OPPORTUNITIES: usize = 500_000;

/// The same in every run. For sets of names that are only asked, never listed: of 200 000 names, a tree needs
/// several times as long.
type FixedHasher = BuildHasherDefault<DefaultHasher>;

/// Nodes and links, with the data needed to check routes and flows.
struct Network {
    nodes: Vec<NodeSpec>,
    links: Vec<LinkSpec>,
    by_name: HashMap<Arc<str>, usize, FixedHasher>,
    /// Explicit routes with their positions: router, destination, link, span.
    routes: Vec<(usize, usize, usize, Span)>,
}

impl Network {
    /// Without nodes and links, for as many of them.
    fn with_room(nodes: usize, links: usize) -> Self {
        let room = nodes;
        let (nodes, links) = (Vec::with_capacity(nodes), Vec::with_capacity(links));
        Self {
            nodes,
            links,
            by_name: HashMap::with_capacity_and_hasher(room, FixedHasher::default()),
            routes: Vec::new(),
        }
    }

    /// The node of this name, which may be the one at `guess`.
    fn find(&self, name: &str, guess: usize) -> Option<usize> {
        let is_it = self.nodes.get(guess).is_some_and(|node| *node.name == *name);
        if is_it { Some(guess) } else { self.by_name.get(name).copied() }
    }

    /// Adds a node. Returns false if its name is taken.
    fn add(&mut self, node: NodeSpec) -> bool {
        let fresh = self.by_name.insert(Arc::clone(&node.name), self.nodes.len()).is_none();
        self.nodes.push(node);
        fresh
    }
}

/// Resolves a whole file. `parameters` come from `[parameters]`; `seed` comes from the command line.
pub(crate) fn scenario(
    file: FileKeys,
    parameters: Vec<(String, ParamValue)>,
    seed: Option<u64>,
    files: &dyn Files,
) -> Result<Scenario> {
    let duration = file.duration.positive("duration")?;
    let measure = file.measure.as_ref().map(|m| measure(m, duration)).transpose()?;
    let parameters = match &file.resolved {
        None => parameters,
        Some(resolved) if file.parameters.is_some() => {
            let label = "drop this, unless `bentpipe check` wrote the file";
            return Err(Fault::new(resolved.span, "[resolved] and [parameters] exclude each other", label));
        }
        Some(resolved) => resolved.value.clone(),
    };
    let mut network = network(&file, &TraceFiles::new(files))?;
    let reach = routes::check(&network)?;
    let flows = flows::resolve(&file, &network, &reach, duration)?;
    let stop = stop(&file, &flows)?;
    timeline::apply(given_items(file.timeline.as_ref()), &mut network.links, duration)?;
    let names = Directions::new(&network.links);
    let gateways = gateways::resolve(given_items(file.gateways.as_ref()), &network.links, &names)?;
    let hosts = network.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
    let routers = given_items(file.flow_routers.as_ref());
    let flow_routers = flow_routers::resolve(routers, &network.links, &names, (&flows, hosts))?;
    let middleboxes = middleboxes::resolve(given_items(file.middleboxes.as_ref()), &names, duration)?;
    let customs = custom::resolve(given_items(file.nodes.as_ref()), &names)?;
    let references = observe::references(given_items(file.references.as_ref()))?;
    let instruments = observe::instruments(given_items(file.instruments.as_ref()), &names, &flows, duration)?;
    let captures = observe::captures(given_items(file.captures.as_ref()), &names, duration)?;
    Ok(Scenario {
        title: file.title.value.0,
        seed: seed.or(file.seed.map(|s| s.value.0)).unwrap_or(1),
        duration,
        stop,
        measure,
        measure_links: file.measure.as_ref().and_then(|m| m.value.links).is_some_and(|l| l.value),
        parameters,
        nodes: network.nodes,
        links: network.links,
        gateways,
        flow_routers,
        middleboxes,
        custom_nodes: customs,
        flows,
        instruments,
        captures,
        references,
    })
}

fn measure(given: &At<MeasureKeys>, duration: Duration) -> Result<(Instant, Instant)> {
    let MeasureKeys { from, to, .. } = given.value;
    check_order("measure", from, to)?;
    if to.value.0 > duration.0 {
        bail!(to.span, "the measurement ends after the run", "the run lasts {duration}");
    }
    Ok((from.value, to.value))
}

/// Returns an error for an empty interval.
fn check_order(key: &str, from: At<Instant>, to: At<Instant>) -> Result<()> {
    if from.value < to.value {
        return Ok(());
    }
    let start = Duration(from.value.0);
    Err(Fault::new(to.span, format!("`{key}` ends before it begins"), format!("it begins at {start}")))
}

/// Returns the items of a list; none if it is not given.
pub(crate) fn given_items<T>(given: Option<&At<Vec<T>>>) -> &[T] {
    given.map_or(&[], |given| &given.value)
}

/// Returns the error for keys of which exactly one must be given.
fn exactly_one(span: Span, key: &str, keys: &str) -> Fault {
    Fault::new(span, format!("`{key}` takes exactly one of {keys}"), "")
}

fn network(file: &FileKeys, files: &TraceFiles<'_>) -> Result<Network> {
    let given = [
        file.dumbbell.as_ref().map(|d| (d.span, "[dumbbell]")),
        file.satellite.as_ref().map(|s| (s.span, "[satellite]")),
        file.hosts.as_ref().map(|h| (h.span, "[[hosts]]")),
        file.routers.as_ref().map(|r| (r.span, "[[routers]]")),
        file.links.as_ref().map(|l| (l.span, "[[links]]")),
    ];
    let mut given = given.into_iter().flatten();
    let Some((span, ready)) = given.next() else {
        let label = "give [dumbbell], [satellite], or [[hosts]], [[routers]] and [[links]]";
        return Err(Fault::new(file.flows.span, "these flows have no network", label));
    };
    let complete = file.dumbbell.is_some() || file.satellite.is_some();
    if let Some((span, title)) = given.next().filter(|_| complete) {
        let what = ready.trim_matches(['[', ']']);
        let message = format!("{title} and {ready} exclude each other");
        return Err(Fault::new(span, message, format!("the file has a {ready}")).help(format!(
            "help: a {what}'s network is complete; to change it, write out hosts, routers and links"
        )));
    }
    let mut network = match (&file.dumbbell, &file.satellite) {
        (Some(dumbbell), _) => dumbbell::build(dumbbell, files)?,
        (None, Some(satellite)) => satellite::build(satellite, files)?,
        (None, None) => graph::build(file, span, files)?,
    };
    for link in &mut network.links {
        for side in [&mut link.forward, &mut link.backward] {
            if side.dynamics.is_some() {
                direction::fill_in_shared_names(Arc::make_mut(side), &link.name);
            }
        }
    }
    shared::check(&network.links, span)?;
    check_points(&network, span)?;
    Ok(network)
}

/// Checks the total length of all traces, because `check` writes them out for every direction.
fn check_points(network: &Network, span: Span) -> Result<()> {
    let (mut points, mut opportunities) = (0_usize, 0_usize);
    for dynamics in network.links.iter().flat_map(|l| [&l.forward.dynamics, &l.backward.dynamics]).flatten() {
        match &dynamics.capacity {
            Some(CapacityTrace::Steps { points: list, .. }) => points += list.len(),
            Some(CapacityTrace::Opportunities { at, .. }) => opportunities += at.len(),
            None => {}
        }
        points += dynamics.delay.as_ref().map_or(0, |series| series.points.len());
        points += dynamics.loss.as_ref().map_or(0, |series| series.points.len());
        if let Some(FadeSource::Profile(list)) = dynamics.fade.as_ref().map(|f| &f.source) {
            points += list.len();
        }
    }
    for (what, count, most) in [
        ("points of rates, delays, losses and fades", points, MAX_POINTS),
        ("opportunities of traces", opportunities, MAX_OPPORTUNITIES),
    ] {
        if count > most {
            let label = format!("all directions together have {count}, the limit is {most}");
            return Err(Fault::new(span, format!("there are too many {what}"), label));
        }
    }
    Ok(())
}

/// Resolves both directions of a ready-made link. `name` is used where a link's name is needed.
pub(crate) fn profile_directions(
    name: &str,
    span: Span,
    forward: &DirectionKeys,
    backward: &DirectionKeys,
) -> Result<(DirectionSpec, DirectionSpec)> {
    let files = TraceFiles::new(&NoFiles);
    let side = direction::DirectionContext { name_in_errors: name, span, forward: None, files: &files };
    let mut there = side.direction(forward)?;
    let mut back = direction::DirectionContext { forward: Some(there.rate), ..side }.direction(backward)?;
    direction::fill_in_shared_names(&mut there, name);
    direction::fill_in_shared_names(&mut back, name);
    Ok((there, back))
}

fn stop(file: &FileKeys, flows: &[FlowSpec]) -> Result<Stop> {
    let Some(stop) = file.stop else { return Ok(Stop::Duration) };
    let ends =
        |app: &App| matches!(app, App::Transfer(_) | App::Lasting(_) | App::Requests { count: Some(_), .. });
    if stop.value == Stop::Finished && !flows.iter().any(|f| ends(&f.app)) {
        let label = "give a flow `app = { transfer = \"50 kB\" }`, or stop at \"duration\"";
        return Err(Fault::new(stop.span, "no flow ever finishes", label));
    }
    Ok(stop.value)
}

/// Returns the name of a table and adds it to `taken`. `of`: what has the name, and how many there can be.
fn unique_name(
    taken: &mut BTreeSet<String>,
    name: &At<Name>,
    span: Span,
    of: (&str, usize),
) -> Result<String> {
    let (what, most) = of;
    if taken.len() == most {
        return Err(Fault::too_many(span, what, most));
    }
    if !taken.insert(name.value.0.clone()) {
        return Err(Fault::taken(name.span, what, &name.value.0));
    }
    Ok(name.value.0.clone())
}

/// Returns an error for a generated name that is too long: `check` could not print it.
fn check_name(name: &str, span: Span) -> Result<()> {
    if name.len() > MAX_NAME {
        bail!(span, "this name is too long", "it becomes `{name}`, and the limit is {MAX_NAME} characters");
    }
    Ok(())
}

fn check_nodes(count: usize, span: Span) -> Result<()> {
    if count > MAX_NODES { Err(Fault::too_many(span, "nodes", MAX_NODES)) } else { Ok(()) }
}
