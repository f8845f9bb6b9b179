//! Writes a scenario as TOML with every default explicit, for `bentpipe check`.

mod direction;
mod flow;
mod flow_router;
mod gateway;
mod middlebox;
mod observe;
mod tcp;

use crate::form::Word as _;
use crate::types::{LinkSpec, NodeKind, NodeSpec, ParamValue, Scenario};
use bentpipe_base::{Duration, Instant, Rate, Size};
use bentpipe_link::Capacity;
use core::fmt::Write as _;

/// Writes a scenario as a file that loads back to an equal value.
///
/// This holds for scenarios from [`crate::load`]. One built in code may contain what a file cannot express.
pub fn to_toml(scenario: &Scenario) -> String {
    let mut out = String::new();
    head(&mut out, scenario);
    if !scenario.parameters.is_empty() {
        out.push_str("\n[resolved]\n");
        for (name, value) in &scenario.parameters {
            line(&mut out, name, &parameter(value));
        }
    }
    for node in &scenario.nodes {
        write_node(&mut out, node, scenario);
    }
    for link in &scenario.links {
        write_link(&mut out, link, &scenario.nodes);
    }
    scenario.gateways.iter().for_each(|g| gateway::write(&mut out, g, &scenario.links));
    scenario.flow_routers.iter().for_each(|r| flow_router::write(&mut out, r, &scenario.links));
    scenario.middleboxes.iter().for_each(|m| middlebox::write(&mut out, m, &scenario.links));
    for (at, custom) in &scenario.custom_nodes {
        out.push_str("\n[[nodes]]\n");
        line(&mut out, "name", &quoted(&custom.name));
        line(&mut out, "kind", &quoted(custom.kind));
        line(&mut out, "link", &observe::direction_name(&scenario.links, *at));
        custom.settings.lines().for_each(|(key, value)| line(&mut out, key, &value));
    }
    observe::timeline(&mut out, scenario);
    write_flows(&mut out, scenario);
    observe::instruments(&mut out, scenario);
    observe::captures(&mut out, scenario);
    observe::references(&mut out, scenario);
    out
}

fn line(out: &mut String, key: &str, value: &str) {
    let _ = writeln!(out, "{key} = {value}");
}

fn head(out: &mut String, scenario: &Scenario) {
    line(out, "schema", "1");
    line(out, "title", &quoted(&scenario.title));
    line(out, "seed", &scenario.seed.to_string());
    line(out, "duration", &time(scenario.duration));
    line(out, "stop", &quoted(scenario.stop.word()));
    if let Some((from, to)) = scenario.measure {
        let links = if scenario.measure_links { ", links = true" } else { "" };
        line(out, "measure", &format!("{{ from = {}, to = {}{links} }}", at(from), at(to)));
    }
}

fn write_node(out: &mut String, node: &NodeSpec, scenario: &Scenario) {
    out.push_str(match node.kind {
        NodeKind::Host => "\n[[hosts]]\n",
        NodeKind::Router => "\n[[routers]]\n",
    });
    line(out, "name", &quoted(&node.name));
    if !node.routes.is_empty() {
        let route = |(to, via): &(usize, usize)| {
            let (to, via) = (&scenario.nodes[*to].name, &scenario.links[*via].name);
            format!("    {{ to = {}, via = {} }},\n", quoted(to), quoted(via))
        };
        let routes: String = node.routes.iter().map(route).collect();
        line(out, "routes", &format!("[\n{routes}]"));
    }
}

fn write_link(out: &mut String, link: &LinkSpec, nodes: &[NodeSpec]) {
    out.push_str("\n[[links]]\n");
    line(out, "name", &quoted(&link.name));
    line(out, "reverse_name", &quoted(&link.reverse_name));
    line(out, "from", &quoted(&nodes[link.a].name));
    line(out, "to", &quoted(&nodes[link.b].name));
    line(out, "forward", &direction::direction(&link.forward));
    line(out, "backward", &direction::direction(&link.backward));
}

/// Writes the flows. Options that are the same for all flows are written to `[host]`.
fn write_flows(out: &mut String, scenario: &Scenario) {
    let options: Vec<_> = scenario.flows.iter().map(tcp::flow_options).collect();
    let Some((first, _)) = options.first() else { return };
    let shared: Vec<bool> =
        (0..first.len()).map(|n| options.iter().all(|(o, _)| o[n].1 == first[n].1)).collect();
    out.push_str("\n[host]\n");
    for ((key, value), _) in first.iter().zip(&shared).filter(|(_, shared)| **shared) {
        line(out, key, value);
    }
    for (flow, (options, receiver)) in scenario.flows.iter().zip(&options) {
        flow::write(out, flow, &scenario.nodes);
        if let Some(receiver) = receiver {
            line(out, "receiver", receiver);
        }
        for ((key, value), _) in options.iter().zip(&shared).filter(|(_, shared)| !**shared) {
            line(out, key, value);
        }
    }
}

fn parameter(value: &ParamValue) -> String {
    match value {
        ParamValue::Text(text) => quoted(text),
        ParamValue::Number(n) => format!("{n:?}"),
        ParamValue::Integer(n) => n.to_string(),
        ParamValue::Switch(on) => on.to_string(),
    }
}

fn time(duration: Duration) -> String {
    quoted(&duration.to_string())
}

fn at(instant: Instant) -> String {
    time(Duration(instant.0))
}

fn size(bytes: Size) -> String {
    // 128 segments of 1000 B are 125 KiB, but 128000 B is easier to recognise.
    let round = bytes.0.is_multiple_of(1000);
    quoted(&if round { format!("{} B", bytes.0) } else { bytes.to_string() })
}

fn rate(rate: Rate) -> String {
    quoted(&rate.to_string())
}

fn buffer(buffer: Capacity) -> String {
    match buffer {
        Capacity::Packets(n) => quoted(&format!("{n} packets")),
        Capacity::Bytes(bytes) => size(bytes),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}
