//! Resolves `[[flows]]`.

use super::app::{app, datagrams, reader};
use super::{FixedHasher, Network, check_name, start, tcp};
use crate::diagnostic::{Fault, Result, bail, did_you_mean, listed};
use crate::form::{At, Keys as _, OrTable};
use crate::keys::{FileKeys, FlowKeys, MAX_FLOWS, MAX_FLOWS_PER_HOST, ReceiverKeys, TcpKeys};
use crate::scalars::Name;
use crate::types::{App, FlowSpec, LinkSpec, NodeKind, Reader, Start};
use bentpipe_base::{Duration, Instant, Size};
use bentpipe_tcp::Encoding;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

pub(super) fn resolve(
    file: &FileKeys,
    network: &Network,
    reach: &[usize],
    duration: Duration,
) -> Result<Vec<FlowSpec>> {
    let mut flows = Vec::new();
    let mut taken: HashSet<Arc<str>, FixedHasher> = HashSet::default();
    let mut at_host = vec![0u32; network.nodes.len()];
    let served_last = network.links.iter().any(LinkSpec::serves_low_priority_last);
    if file.flows.value.is_empty() {
        bail!(file.flows.span, "there are no flows", "a scenario has at least one");
    }
    // names with numbers differ
    let may_repeat =
        file.flows.value.len() > 1 || file.flows.value.iter().any(|g| g.value.connections.is_some());
    for group in &file.flows.value {
        let keys = &group.value;
        let count = keys.count.map(|c| c.value.0);
        let parts = keys.connections.map_or(1, |c| c.value.0);
        if flows.len() as u64 + count.unwrap_or(1) * parts > MAX_FLOWS {
            let span = keys.count.map(|c| c.span).or(keys.connections.map(|c| c.span)).unwrap_or(group.span);
            return Err(Fault::too_many(span, "flows", MAX_FLOWS));
        }
        let proto = common_to_group(file, keys, served_last)?;
        let starts = start::resolve(keys, duration)?;
        let enabled = keys.enabled.is_none_or(|e| e.value);
        let (from, to) = (ends(network, &keys.from, count)?, ends(network, &keys.to, count)?);
        flows.reserve_exact(from.len() * parts as usize);
        for (n, (from, to)) in from.into_iter().zip(to).enumerate() {
            check_path(network, reach, keys, (from, to))?;
            let name: Arc<str> = match count {
                None => (*keys.name.value.0).into(),
                Some(_) => format!("{}{}", keys.name.value.0, n + 1).into(),
            };
            check_name(&name, keys.name.span)?;
            if may_repeat && !taken.insert(Arc::clone(&name)) {
                return Err(Fault::taken(keys.name.span, "flows", &name));
            }
            let start = starts.of(n as u64);
            for flow in connections(FlowSpec { name, from, to, start, ..proto.clone() }, keys)? {
                check_ports(network, keys, &mut at_host, [from, to])?;
                check_name(&flow.name, keys.name.span)?;
                if keys.connections.is_some() && !taken.insert(Arc::clone(&flow.name)) {
                    return Err(Fault::taken(keys.name.span, "flows", &flow.name));
                }
                if enabled {
                    flows.push(flow);
                }
            }
        }
    }
    if flows.is_empty() {
        bail!(file.flows.span, "there are no flows", "a scenario has at least one that is enabled");
    }
    Ok(flows)
}

/// Counts the ports that flows use at each host: each end of a flow needs one.
fn check_ports(network: &Network, keys: &FlowKeys, at_host: &mut [u32], ends: [usize; 2]) -> Result<()> {
    for host in ends {
        at_host[host] += 1;
        if at_host[host] > MAX_FLOWS_PER_HOST {
            let message = format!("there are too many flows at `{}`", network.nodes[host].name);
            let label = format!("a host has ports for {MAX_FLOWS_PER_HOST}");
            return Err(Fault::new(keys.name.span, message, label));
        }
    }
    Ok(())
}

/// Resolves what all flows of a group have in common.
fn common_to_group(file: &FileKeys, keys: &FlowKeys, served_last: bool) -> Result<FlowSpec> {
    let options = match &file.host {
        Some(host) => keys.tcp.clone().over(&host.value),
        None => keys.tcp.clone(),
    };
    if let Some(own) = &keys.receiver {
        check_receiver(keys, own)?;
    }
    let own = keys.receiver.as_ref().map(|own| &own.value.tcp);
    let (mut sender, receiver) = tcp::configs(&options, own, served_last)?;
    let app = keys.app.as_ref().map_or(Ok(App::Bulk), app)?;
    check_udp(keys, &app)?;
    if matches!(app, App::Requests { .. }) && options.nagle.is_none() {
        sender.nagle = false; // as usual for servers (TCP_NODELAY)
    }
    let flow = FlowSpec {
        name: "".into(),
        from: 0,
        to: 0,
        sender: Arc::new(sender),
        receiver: Arc::new(receiver),
        app,
        datagrams: datagrams(keys.app.as_ref())?,
        reader: keys.reader.as_ref().map_or(Ok(Reader::Eager), reader)?,
        start: Start::At(Instant::ZERO),
        group: keys.group.as_ref().map(|g| g.value.0.clone()),
    };
    check_datagrams(&options, &flow)?;
    Ok(flow)
}

/// Returns an error for datagrams that ask for a rate in an encoding that they do not speak.
fn check_datagrams(options: &TcpKeys, flow: &FlowSpec) -> Result<()> {
    let encoding = options.encoding.and_then(|given| Some((given.span, given.value?)));
    match encoding {
        Some((span, word)) if flow.asks_for_datagrams() && word != Encoding::Tia1039 => {
            let message = format!("datagrams do not speak `{}`", word.word());
            Err(Fault::new(span, message, "use \"tia-1039\""))
        }
        _ => Ok(()),
    }
}

/// Returns an error for options that only a sender has.
fn check_receiver(keys: &FlowKeys, own: &At<ReceiverKeys>) -> Result<()> {
    if let Some(span) = own.value.tcp.jitter.map(|j| j.span).or(own.value.tcp.jitter_kind.map(|j| j.span)) {
        bail!(span, "a receiver has no jitter", "give it to the flow: it is the sender's");
    }
    match keys.app.as_ref().map(|a| &a.value) {
        Some(OrTable::Table(app)) if app.udp.is_some() => {
            let is_tcp = |(key, _): &(&str, _)| !["encoding", "take"].contains(key);
            let Some((_, span)) = own.value.tcp.given().into_iter().find(is_tcp) else { return Ok(()) };
            Err(Fault::new(span, "datagrams have no TCP", "only `encoding` and `take` concern them"))
        }
        _ => Ok(()),
    }
}

/// Returns an error for a UDP flow with a `reader` that limits it: datagrams have no flow control.
fn check_udp(keys: &FlowKeys, app: &App) -> Result<()> {
    match &keys.reader {
        Some(reader) if matches!(app, App::Udp { .. }) && !matches!(reader.value, OrTable::Plain(_)) => {
            Err(Fault::new(reader.span, "datagrams are always read at once", "drop this"))
        }
        _ => Ok(()),
    }
}

/// Returns the connections of a flow: itself, or `name.1`, `name.2`, ... with equal parts of its transfer.
fn connections(flow: FlowSpec, keys: &FlowKeys) -> Result<Vec<FlowSpec>> {
    let Some(given) = keys.connections else { return Ok(vec![flow]) };
    let App::Transfer(Size(bytes)) = flow.app else {
        let label = "only `app = { transfer = ... }` can be parted";
        return Err(Fault::new(given.span, "these connections have nothing to share", label));
    };
    if let Some(group) = &keys.group {
        bail!(group.span, "`group` and `connections` exclude each other", "drop this");
    }
    let parts = given.value.0;
    if bytes < parts {
        bail!(given.span, "some of these connections would carry nothing", "the transfer has {bytes} B");
    }
    // the first connections carry the remainder
    let share = |n: u64| Size(bytes / parts + u64::from(n < bytes % parts));
    let part = |n: u64| FlowSpec {
        name: format!("{}.{}", flow.name, n + 1).into(),
        app: App::Transfer(share(n)),
        group: Some(flow.name.to_string()),
        ..flow.clone()
    };
    Ok((0..parts).map(part).collect())
}

/// Returns the hosts at one end of a group: `name` itself, or `name1`, `name2`, ...
fn ends(network: &Network, name: &At<Name>, count: Option<u64>) -> Result<Vec<usize>> {
    let word = &name.value.0;
    if let Some(node) = network.by_name.get(&**word) {
        if network.nodes[*node].kind == NodeKind::Router {
            bail!(name.span, "`{word}` is a router", "flows begin and end at hosts");
        }
        return Ok(vec![*node; count.unwrap_or(1) as usize]);
    }
    let Some(count) = count.filter(|_| network.by_name.contains_key(&*format!("{word}1"))) else {
        return Err(unknown_host(network, name, count));
    };
    let (mut numbered, mut after) = (word.clone(), 0);
    (1..=count)
        .map(|n| match network.find(with_number(&mut numbered, word.len(), n), after) {
            Some(node) if network.nodes[node].kind == NodeKind::Host => {
                after = node + 1;
                Ok(node)
            }
            _ => {
                let message = format!("there is no host `{word}{n}` for flow {n} of {count}");
                Err(Fault::new(name.span, message, format!("hosts `{word}1` to `{word}{}` exist", n - 1)))
            }
        })
        .collect()
}

/// Puts a number in place of what follows the first bytes of a name.
fn with_number(name: &mut String, stem: usize, n: u64) -> &str {
    name.truncate(stem);
    let _ = write!(name, "{n}");
    name
}

fn unknown_host(network: &Network, name: &At<Name>, count: Option<u64>) -> Fault {
    let word = &name.value.0;
    let names = || network.nodes.iter().filter(|n| n.kind == NodeKind::Host).map(|n| &*n.name);
    let numbered = count.is_none() && network.by_name.contains_key(&*format!("{word}1"));
    let label = if numbered {
        format!("`{word}1` exists; `{word}` alone works with `count`")
    } else {
        did_you_mean(word, names())
    };
    Fault::new(name.span, format!("there is no host `{word}`"), label)
        .help(format!("help: hosts: {}", listed(names())))
}

fn check_path(network: &Network, reach: &[usize], keys: &FlowKeys, (from, to): (usize, usize)) -> Result<()> {
    if from == to {
        let message = format!("a flow from `{0}` to `{0}`", network.nodes[from].name);
        return Err(Fault::new(keys.to.span, message, "a flow has two hosts"));
    }
    if reach[from] != reach[to] {
        let message =
            format!("no path leads from `{}` to `{}`", network.nodes[from].name, network.nodes[to].name);
        return Err(Fault::new(keys.to.span, message, "not connected"));
    }
    Ok(())
}
