//! Resolves the keys of an agent file. What an agent shares with a gateway is resolved by the gateway's code.

use super::datagrams;
use super::keys::{AgentDeployKeys, AgentKeys, AgentLimitKeys, AgentRuleKeys, OpenedFrom};
use super::types::{AgentFile, AgentLimits, Method, Place, Transport, Treatment};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::{At, Keys as _};
use crate::gateway_file::{
    Action, DeployKeys, Firewall, GatewayFile, Interface, Kind, OneOrList, Policy, RuleKeys, Status,
    resolve_deploy, rules,
};
use crate::keys::TcpKeys;
use crate::resolve::tcp_configs;
use crate::source::Span;
use crate::value::Table;
use bentpipe_base::{Duration, Size};
use bentpipe_gateway::Config as Unused;
use bentpipe_tcp::{Config, Encoding, ReceiveBuffer};

const NAME: &str = "agent";
const INNER_HOST: &str = "bentahost";
const INNER_NETWORK: &str = "bentanet";
const NFT_TABLE: &str = "bentpipe_agent";
const MARK: u32 = 0x6280;
const TABLE: u32 = 6280;
const DRAIN: Duration = Duration::from_secs(10);
const MOST_DRAIN: Duration = Duration::from_secs(3600);
const FLOWS: usize = 10_000;
const MEMORY: Size = Size(1 << 30);
/// Least memory of a connection: four buffers of 16 KiB.
const LEAST_PER_FLOW: u64 = 64 << 10;
const LEAST_FLOWS: usize = 16;
/// Most rates for sockets that `bentpipe_kernel_rate` has room for.
const MOST_SOCKETS: u64 = 65_536;
/// RFC 1122, section 4.2.3.6: not less than two hours.
const IDLE: Duration = Duration::from_secs(7200);
/// Window towards the network. A rate can be used from the first round trip on: the initial window is one of
/// 550 ms at 60 Mbit/s, the maximum three at 325 Mbit/s.
const WINDOW: ReceiveBuffer = ReceiveBuffer::Auto { initial: Size(4 << 20), max: Size(64 << 20) };
/// With the method `kernel`: the limits of all sockets of the host are raised to it. A window that the kernel
/// must grow first leaves the rate unused for six round trips.
const KERNEL_WINDOW: ReceiveBuffer = ReceiveBuffer::Fixed(Size(8 << 20));

pub(super) fn file(keys: AgentKeys) -> Result<AgentFile> {
    let (place, deploy) = deploy(&keys.deploy)?;
    if keys.rules.value.is_empty() {
        bail!(keys.rules.span, "there are no rules", "without one the agent takes no connection");
    }
    let method = keys.method.map_or(Method::Split, |m| m.value);
    if method == Method::Kernel {
        fits_kernel(&keys)?;
    }
    let limit_keys = keys.limits.as_ref().map(|l| &l.value);
    let (streams, datagrams) = datagrams::divide(keys.rules.value);
    let datagrams = datagrams::resolve(datagrams, place, limit_keys)?;
    let numbers = streams.iter().map(|(number, _)| *number).collect();
    let streams: Vec<_> = streams.into_iter().map(|(_, rule)| rule).collect();
    let asks = streams.iter().map(|rule| ask(&rule.value, method, place)).collect::<Result<Vec<_>>>()?;
    let rules = rules(streams.into_iter().map(|rule| rule.map(condition)).collect())?;
    let drain = keys.deploy.value.drain.map_or(Ok(DRAIN), |d| d.at_most("drain", MOST_DRAIN))?;
    let socket = keys.status.and_then(|status| status.value.socket);
    if let Some(path) = socket.as_ref().filter(|path| !path.value.0.starts_with('/')) {
        let label = "write it from the root: a service has no folder of its own";
        return Err(Fault::new(path.span, "this path is relative", label));
    }
    Ok(AgentFile {
        method,
        place,
        site: GatewayFile {
            config: Unused::default(),
            rate: None,
            deploy,
            policy: Policy { rules, otherwise: Action::Pass },
            bypass_when_slower: false,
            subscriber_prefix: (32, 64),
            customs: Vec::new(),
            status: Status { socket: socket.map(|s| s.value.0), ..Status::default() },
        },
        windows: windows(&asks),
        asks,
        numbers,
        datagrams,
        limits: limits(limit_keys, method)?,
        drain,
    })
}

/// Refuses what has no meaning for the host's own TCP.
fn fits_kernel(keys: &AgentKeys) -> Result<()> {
    let deploy = &keys.deploy.value;
    if deploy.kind.value != Place::Host {
        let label = "the rates are for the TCP of the host: the agent must be there";
        let help = "help: use `kind = \"host\"`, or the method \"split\"";
        return Err(
            Fault::new(deploy.kind.span, "the method \"kernel\" is not for this kind", label).help(help)
        );
    }
    let is_datagram = |rule: &At<AgentRuleKeys>| rule.value.protocol.filter(|p| p.value == Transport::Udp);
    if let Some(protocol) = keys.rules.value.iter().find_map(is_datagram) {
        let label = "with the method \"kernel\" the agent signals for TCP alone";
        let help = "help: have a second agent with the method \"split\" for datagrams";
        return Err(Fault::new(protocol.span, "a rule for datagrams", label).help(help));
    }
    let limits = keys.limits.as_ref().map(|limits| &limits.value);
    let of_limits = [
        ("memory", limits.and_then(|l| l.memory).map(|k| k.span)),
        ("idle", limits.and_then(|l| l.idle).map(|k| k.span)),
    ];
    let of_rules = keys.rules.value.iter().map(|rule| ("tcp", rule.value.tcp.as_ref().map(|k| k.span)));
    if let Some((key, span)) =
        of_limits.into_iter().chain(of_rules).find_map(|(key, span)| Some((key, span?)))
    {
        let label = "with the method \"kernel\" the host's own TCP decides that";
        return Err(Fault::new(span, format!("`{key}` has no effect"), label).help("help: leave it out"));
    }
    let off = keys.rules.value.iter().find_map(|rule| rule.value.encoding.filter(|e| e.value.is_none()));
    if let Some(off) = off {
        let label = "the method \"kernel\" does nothing but signal";
        let help = "help: use `action = \"pass\"`";
        return Err(Fault::new(off.span, "`encoding = \"off\"` has no effect", label).help(help));
    }
    Ok(())
}

/// The largest windows of all rules.
fn windows(asks: &[Option<Config>]) -> [Size; 2] {
    let largest = |of: fn(ReceiveBuffer) -> Size| {
        asks.iter().flatten().map(|config| of(config.receive_buffer)).max().unwrap_or_default()
    };
    [largest(ReceiveBuffer::initial), largest(ReceiveBuffer::max)]
}

fn deploy(given: &At<AgentDeployKeys>) -> Result<(Place, crate::gateway_file::Deploy)> {
    let keys = &given.value;
    let place = keys.kind.value;
    let kind = if place == Place::Inline { Kind::Inline } else { Kind::Routed };
    let lan = match (&keys.host, place) {
        (None, Place::Host) => {
            let inner = keys.inner_host.clone();
            let inner = inner.unwrap_or(At { value: Interface(INNER_HOST.to_owned()), span: keys.kind.span });
            At { span: inner.span, value: OneOrList(vec![inner]) }
        }
        (Some(host), Place::Host) => {
            let label = "the agent is on the host: it makes this interface itself";
            return Err(Fault::new(host.span, "`host` is not for this kind", label));
        }
        (None, _) => return Err(Fault::missing(given.span, "[deploy]", "host")),
        (Some(host), _) => host.clone(),
    };
    let of_host = |name: &Option<At<Interface>>| if place == Place::Host { None } else { name.clone() };
    let at = |value| At { value, span: keys.kind.span };
    let mut deploy = resolve_deploy(&At {
        span: given.span,
        value: DeployKeys {
            kind: at(kind),
            lan,
            satellite: keys.network.clone(),
            name: keys.name.clone(),
            tun_lan: of_host(&keys.inner_host),
            tun_satellite: keys.inner_network.clone(),
            nft_table: keys.nft_table.clone(),
            mark: keys.mark,
            table: keys.table,
            priority: keys.priority,
            firewall: keys.firewall,
            watch: None,
        },
    })?;
    let fill = |given: bool, to: &mut String, default: &str| {
        if !given {
            default.clone_into(to);
        }
    };
    fill(keys.name.is_some(), &mut deploy.name, NAME);
    fill(keys.inner_host.is_some() && place != Place::Host, &mut deploy.tun_lan, INNER_HOST);
    fill(keys.inner_network.is_some(), &mut deploy.tun_satellite, INNER_NETWORK);
    fill(keys.nft_table.is_some(), &mut deploy.nft_table, NFT_TABLE);
    deploy.mark = keys.mark.map_or(MARK, |_| deploy.mark);
    deploy.table = keys.table.map_or(TABLE, |_| deploy.table);
    deploy.priority = keys.priority.map_or(TABLE, |_| deploy.priority);
    deploy.firewall = keys.firewall.map_or(Firewall::Check, |f| f.value);
    deploy.watch = Duration::ZERO;
    if place == Place::Host {
        deploy.tun_lan = deploy.lan.first().cloned().unwrap_or_default();
    }
    for own in [&deploy.tun_lan, &deploy.tun_satellite] {
        let twice = deploy.tun_lan == deploy.tun_satellite || *own == deploy.satellite;
        if place != Place::Inline && twice {
            bail!(given.span, "interface `{own}` is named twice", "this name has a part already");
        }
    }
    Ok((place, deploy))
}

/// Returns the conditions of a rule as those of a gateway's rule.
pub(super) fn condition(keys: AgentRuleKeys) -> RuleKeys {
    let action = match keys.action {
        Some(At { value: Treatment::Pass, span }) => At { value: Action::Pass, span },
        Some(At { span, .. }) => At { value: Action::Accelerate, span },
        None => At { value: Action::Accelerate, span: Span::file(0..0) },
    };
    RuleKeys {
        action,
        from: keys.from,
        to: keys.to,
        port: keys.port,
        from_port: keys.from_port,
        dscp: None,
        opened_from: keys.opened_from.map(|side| side.map(OpenedFrom::side)),
    }
}

/// Returns the TCP that a rule asks for; `None` if it lets connections pass.
fn ask(keys: &AgentRuleKeys, method: Method, place: Place) -> Result<Option<Config>> {
    let off = keys.encoding.is_some_and(|encoding| encoding.value.is_none());
    let passes = keys.action.is_some_and(|action| action.value == Treatment::Pass);
    let options = [
        ("encoding", keys.encoding.map(|k| k.span)),
        ("tcp", keys.tcp.as_ref().map(|k| k.span)),
        ("window", keys.window.as_ref().map(|k| k.span)),
        ("ask", keys.ask.as_ref().map(|k| k.span)),
        ("take", keys.take.map(|k| k.span)),
        ("trust_path", keys.trust_path.map(|k| k.span)),
        ("ask_fallback", keys.ask_fallback.map(|k| k.span)),
    ];
    // the first three also hold without signalling
    let from = if passes { 0 } else { 3 };
    if (passes || off)
        && let Some((key, span)) = options.iter().skip(from).find_map(|(key, span)| Some((key, (*span)?)))
    {
        let label = if passes { "the rule lets connections pass" } else { "`encoding` is \"off\"" };
        return Err(Fault::new(span, format!("`{key}` has no effect"), label).help("help: leave it out"));
    }
    if passes {
        return Ok(None);
    }
    if let Some(At { value: Some(encoding), span }) = keys.encoding {
        speaks(method, place, encoding, span)?;
    }
    let none = Span::file(0..0);
    let mut tcp = TcpKeys::pick(&Table::default(), none, "")?;
    tcp.tcp.clone_from(&keys.tcp);
    tcp.window.clone_from(&keys.window);
    tcp.encoding = Some(keys.encoding.unwrap_or(At { value: Some(Encoding::Tia1039), span: none }));
    tcp.ask.clone_from(&keys.ask);
    tcp.take = keys.take;
    (tcp.trust_path, tcp.ask_fallback) = (keys.trust_path, keys.ask_fallback);
    let mut config = tcp_configs(&tcp, None, false)?.0;
    if keys.window.is_none() {
        config.receive_buffer = match method {
            Method::Kernel => KERNEL_WINDOW,
            Method::Split => WINDOW,
        };
    }
    config.send_buffer = Some(config.receive_buffer.max().max(Size(64 << 10)));
    // what the host sends has passed its own Nagle algorithm
    config.nagle = false;
    Ok(Some(config))
}

/// Refuses an encoding that an agent of this method cannot speak at this place.
fn speaks(method: Method, place: Place, encoding: Encoding, span: Span) -> Result<()> {
    if method == Method::Kernel && encoding != Encoding::Tia1039 {
        let message = format!("the method \"kernel\" does not speak `{}`", encoding.word());
        let help = "help: or use the method \"split\"";
        return Err(Fault::new(span, message, "use \"tia-1039\"").help(help));
    }
    if place == Place::Routed && encoding == Encoding::QuickStart {
        let label = "this machine forwards the agent's packets as a router that takes no part";
        let help = "help: use the kind \"inline\" or \"host\", or another encoding";
        return Err(Fault::new(span, "`quick-start` is not for the kind \"routed\"", label).help(help));
    }
    Ok(())
}

/// Least memory for so many connections: what each has at least, and a quarter more to share out.
const fn least_memory(flows: usize) -> Size {
    Size(LEAST_PER_FLOW * flows as u64 / 4 * 5)
}

fn limits(given: Option<&AgentLimitKeys>, method: Method) -> Result<AgentLimits> {
    let mut limits = AgentLimits { flows: FLOWS, memory: MEMORY, idle: IDLE };
    let Some(keys) = given else { return Ok(limits) };
    limits.flows = keys.flows.map_or(FLOWS, |flows| flows.value.0 as usize);
    if method == Method::Kernel {
        if let Some(flows) = keys.flows.filter(|flows| flows.value.0 > MOST_SOCKETS) {
            let label = format!("the kernel has room for the rates of {MOST_SOCKETS}");
            return Err(Fault::new(flows.span, "`flows` is too large for the method \"kernel\"", label));
        }
        return Ok(limits);
    }
    let least = least_memory(limits.flows);
    if let Some(memory) = keys.memory {
        limits.memory = memory.at_least("memory", least_memory(LEAST_FLOWS), "small")?;
        if memory.value < least && keys.flows.is_some() {
            bail!(memory.span, "`memory` is too small for so many connections", "at least {least}");
        }
        if memory.value < least {
            limits.flows = (memory.value.0 / 5 * 4 / LEAST_PER_FLOW) as usize;
        }
    } else if limits.memory < least {
        let span = keys.flows.map_or(Span::file(0..0), |flows| flows.span);
        bail!(span, "so many connections need more memory", "give `memory`, at least {least}");
    }
    if let Some(idle) = keys.idle {
        limits.idle = idle.at_least("idle", Duration::from_secs(1), "short")?;
    }
    Ok(limits)
}
