//! A scenario back to TOML, with every default explicit: what `bentpipe check` prints.

use crate::form::Word as _;
use crate::types::{
    App, Buffer, DirectionSpec, FlowSpec, LinkSpec, NodeKind, NodeSpec, ParamValue, Reader, Scenario, Start,
};
use bentpipe_base::{Duration, Instant, Size};
use bentpipe_tcp::{Config, Growth, Jitter, JitterKind, ReceiveBuffer, RecoveryParams, Scheme};
use core::fmt::Write as _;

/// Writes a scenario as a file that loads back to an equal value.
///
/// That holds for what [`crate::load`] returned; a scenario built in code may hold what no file can say,
/// such as a receiver with other options than its sender.
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
    write_flows(&mut out, scenario);
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
        line(out, "measure", &format!("{{ from = {}, to = {} }}", at(from), at(to)));
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
    line(out, "forward", &direction(&link.forward));
    line(out, "backward", &direction(&link.backward));
}

fn direction(d: &DirectionSpec) -> String {
    let buffer = match d.buffer {
        Buffer::Packets(n) => quoted(&format!("{n} packets")),
        Buffer::Bytes(bytes) => size(bytes),
    };
    format!(
        "{{ rate = {}, delay = {}, buffer = {buffer}, loss = {:?}, ber = {:?}, framing = {} }}",
        quoted(&d.rate.to_string()),
        time(d.delay),
        d.loss.get(),
        d.ber.get(),
        size(d.framing)
    )
}

/// Options that all flows share go to `[host]`; each flow keeps the rest.
fn write_flows(out: &mut String, scenario: &Scenario) {
    let options: Vec<_> = scenario.flows.iter().map(|f| tcp_options(&f.sender, &f.receiver)).collect();
    let Some(first) = options.first() else { return };
    let shared: Vec<bool> = (0..first.len()).map(|n| options.iter().all(|o| o[n].1 == first[n].1)).collect();
    out.push_str("\n[host]\n");
    for ((key, value), _) in first.iter().zip(&shared).filter(|(_, shared)| **shared) {
        line(out, key, value);
    }
    for (flow, options) in scenario.flows.iter().zip(&options) {
        write_flow(out, flow, &scenario.nodes);
        for ((key, value), _) in options.iter().zip(&shared).filter(|(_, shared)| !**shared) {
            line(out, key, value);
        }
    }
}

fn write_flow(out: &mut String, flow: &FlowSpec, nodes: &[NodeSpec]) {
    out.push_str("\n[[flows]]\n");
    line(out, "name", &quoted(&flow.name));
    line(out, "from", &quoted(&nodes[flow.from].name));
    line(out, "to", &quoted(&nodes[flow.to].name));
    let app = match flow.app {
        App::Bulk => quoted("bulk"),
        App::Transfer(bytes) => format!("{{ transfer = {} }}", size(bytes)),
        App::Rate(rate) => format!("{{ rate = {} }}", quoted(&rate.to_string())),
    };
    line(out, "app", &app);
    let reader = match flow.reader {
        Reader::Eager => quoted("eager"),
        Reader::Slow(rate) => format!("{{ rate = {} }}", quoted(&rate.to_string())),
        Reader::Pause { from, to } => format!("{{ pause = {{ from = {}, to = {} }} }}", at(from), at(to)),
        Reader::StopAt(instant) => format!("{{ stop_at = {} }}", at(instant)),
    };
    line(out, "reader", &reader);
    let start = match flow.start {
        Start::At(instant) => at(instant),
        Start::Uniform(from, to) => format!("{{ from = {}, to = {} }}", at(from), at(to)),
    };
    line(out, "start", &start);
}

/// Every option of `[host]`, in the order of the table of keys.
fn tcp_options(sender: &Config, receiver: &Config) -> Vec<(&'static str, String)> {
    let switch = |on: bool| on.to_string();
    let limit = |limit: Option<Size>| limit.map_or_else(|| quoted("unlimited"), size);
    let jitter = sender.jitter.unwrap_or(Jitter { max: Duration::ZERO, kind: JitterKind::Opportunity });
    vec![
        ("tcp", scheme(&sender.scheme)),
        ("segment", size(Size(u64::from(sender.mss)))),
        ("window", window(receiver.receive_buffer)),
        ("iw", sender.initial_window.to_string()),
        ("ssthresh", limit(sender.initial_ssthresh)),
        ("delayed_ack", delayed_ack(receiver)),
        ("send_buffer", limit(sender.send_buffer)),
        ("nagle", switch(sender.nagle)),
        ("jitter", time(jitter.max)),
        ("jitter_kind", quoted(jitter.kind.word())),
        ("min_rto", time(sender.rto.min)),
        ("max_rto", time(sender.rto.max)),
        ("initial_rto", time(sender.rto.initial)),
        ("rto_granularity", time(sender.rto.granularity)),
        ("max_timeouts", sender.max_timeouts.to_string()),
        ("limited_transmit", switch(sender.limited_transmit)),
        ("validation", quoted(sender.validation.word())),
        ("pacing", switch(sender.pacing)),
        ("ecn", switch(sender.ecn)),
        ("timestamps", switch(sender.options.timestamps)),
        // The sender's is already what its scheme makes of it.
        ("sack", switch(receiver.options.sack)),
        ("window_scale", switch(sender.options.window_scale)),
        ("mss_option", switch(sender.options.mss)),
        ("time_wait", time(sender.time_wait)),
    ]
}

fn scheme(scheme: &Scheme) -> String {
    let mut out = format!("{{ scheme = {}, recovery = {}", quoted(scheme.name), recovery(scheme.recovery));
    let _ = match scheme.growth {
        Growth::Reno => Ok(()),
        Growth::Vegas(p) => {
            write!(out, ", alpha = {:?}, beta = {:?}, gamma = {:?}", p.alpha, p.beta, p.gamma)
        }
        Growth::Cubic(p) => write!(
            out,
            ", beta = {:?}, c = {:?}, fast_convergence = {}, hystart = {}",
            p.beta, p.c, p.fast_convergence, p.hystart
        ),
    };
    out + " }"
}

fn recovery(recovery: RecoveryParams) -> String {
    let (detection, reduction) = (recovery.detection.word(), recovery.reduction.word());
    format!("{{ detection = \"{detection}\", reduction = \"{reduction}\", frto = {} }}", recovery.frto)
}

fn window(buffer: ReceiveBuffer) -> String {
    match buffer {
        ReceiveBuffer::Fixed(bytes) => size(bytes),
        ReceiveBuffer::Auto { initial, max } => {
            format!("{{ initial = {}, max = {} }}", size(initial), size(max))
        }
    }
}

fn delayed_ack(config: &Config) -> String {
    match config.delayed_ack {
        None => "false".into(),
        Some(d) => format!("{{ count = {}, timeout = {} }}", d.count, time(d.timeout)),
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
    // 128 segments of 1000 B are 125 KiB, but nobody would recognise them.
    let round = bytes.0.is_multiple_of(1000);
    quoted(&if round { format!("{} B", bytes.0) } else { bytes.to_string() })
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
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
