//! Keys as written to a [`Scenario`] with nothing left to interpret.

mod dumbbell;
mod flows;
mod graph;
mod routes;
mod scheme;
mod tcp;

use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::keys::{FileKeys, MAX_NODES, MeasureKeys};
use crate::scalars::MAX_NAME;
use crate::source::Span;
use crate::types::{App, FlowSpec, LinkSpec, NodeSpec, ParamValue, Scenario, Stop};
use bentpipe_base::{Duration, Instant};
use std::collections::BTreeMap;

/// Nodes and links, and what is needed to check routes and flows against them.
struct Network {
    nodes: Vec<NodeSpec>,
    links: Vec<LinkSpec>,
    /// Node index by name.
    by_name: BTreeMap<String, usize>,
    /// Where each explicit route was written: router, destination, link, span.
    routes: Vec<(usize, usize, usize, Span)>,
}

impl Network {
    fn empty() -> Self {
        Self { nodes: Vec::new(), links: Vec::new(), by_name: BTreeMap::new(), routes: Vec::new() }
    }

    /// Adds a node, unless its name is taken.
    fn add(&mut self, node: NodeSpec) -> bool {
        let fresh = self.by_name.insert(node.name.clone(), self.nodes.len()).is_none();
        self.nodes.push(node);
        fresh
    }
}

/// Resolves a whole file. `parameters` are those of `[parameters]`; `seed` is the command line's.
pub(crate) fn scenario(
    file: FileKeys,
    parameters: Vec<(String, ParamValue)>,
    seed: Option<u64>,
) -> Result<Scenario> {
    let duration = duration(&file.duration)?;
    let measure = file.measure.as_ref().map(|m| measure(m, duration)).transpose()?;
    let parameters = match &file.resolved {
        None => parameters,
        Some(resolved) if file.parameters.is_some() => {
            return Err(Fault::new(
                resolved.span,
                "[resolved] and [parameters] exclude each other",
                "drop this, unless `bentpipe check` wrote the file",
            ));
        }
        Some(resolved) => resolved.value.0.clone(),
    };
    let network = network(&file)?;
    let reach = routes::check(&network)?;
    let flows = flows::resolve(&file, &network, &reach, duration)?;
    let stop = stop(&file, &flows)?;
    Ok(Scenario {
        title: file.title.value.0,
        seed: seed.or(file.seed.map(|s| s.value.0)).unwrap_or(1),
        duration,
        stop,
        measure,
        parameters,
        nodes: network.nodes,
        links: network.links,
        flows,
    })
}

fn duration(given: &At<Duration>) -> Result<Duration> {
    if given.value.is_zero() {
        return Err(Fault::new(given.span, "`duration` must be more than zero", ""));
    }
    Ok(given.value)
}

fn measure(given: &At<MeasureKeys>, duration: Duration) -> Result<(Instant, Instant)> {
    let MeasureKeys { from, to } = given.value;
    ordered("measure", from, to)?;
    if to.value.0 > duration.0 {
        return Err(Fault::new(
            to.span,
            "the measurement ends after the run",
            format!("the run lasts {duration}"),
        ));
    }
    Ok((from.value, to.value))
}

/// Refuses an interval that is empty.
fn ordered(key: &str, from: At<Instant>, to: At<Instant>) -> Result<()> {
    if from.value < to.value {
        return Ok(());
    }
    let start = Duration(from.value.0);
    Err(Fault::new(to.span, format!("`{key}` ends before it begins"), format!("it begins at {start}")))
}

fn network(file: &FileKeys) -> Result<Network> {
    let explicit = [
        file.hosts.as_ref().map(|h| (h.span, "[[hosts]]")),
        file.routers.as_ref().map(|r| (r.span, "[[routers]]")),
        file.links.as_ref().map(|l| (l.span, "[[links]]")),
    ];
    let explicit = explicit.into_iter().flatten().next();
    let network = match (&file.dumbbell, explicit) {
        (Some(_), Some((span, title))) => {
            return Err(Fault::new(
                span,
                format!("{title} and [dumbbell] exclude each other"),
                "the file has a [dumbbell]",
            )
            .help(
                "help: a dumbbell's network is complete; to change it, write out hosts, routers and links",
            ));
        }
        (Some(dumbbell), None) => dumbbell::build(dumbbell)?,
        (None, Some((span, _))) => graph::build(file, span)?,
        (None, None) => {
            return Err(Fault::new(
                file.flows.span,
                "these flows have no network",
                "give [dumbbell], or [[hosts]], [[routers]] and [[links]]",
            ));
        }
    };
    Ok(network)
}

fn stop(file: &FileKeys, flows: &[FlowSpec]) -> Result<Stop> {
    let Some(stop) = file.stop else { return Ok(Stop::Duration) };
    if stop.value == Stop::Finished && !flows.iter().any(|f| matches!(f.app, App::Transfer(_))) {
        let label = "give a flow `app = { transfer = \"50 kB\" }`, or stop at \"duration\"";
        return Err(Fault::new(stop.span, "no flow ever finishes", label));
    }
    Ok(stop.value)
}

/// Refuses a name that became too long by what was added to it: `check` could not print it.
fn check_name(name: &str, span: Span) -> Result<()> {
    if name.len() > MAX_NAME {
        let label = format!("it becomes `{name}`, and the limit is {MAX_NAME} characters");
        return Err(Fault::new(span, "this name is too long", label));
    }
    Ok(())
}

/// Refuses networks beyond the limit.
fn check_nodes(count: usize, span: Span) -> Result<()> {
    if count > MAX_NODES {
        return Err(Fault::new(span, "there are too many nodes", format!("the limit is {MAX_NODES}")));
    }
    Ok(())
}
