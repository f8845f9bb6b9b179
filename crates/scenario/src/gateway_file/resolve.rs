//! Resolves the keys of a gateway file: checks that concern several keys, and all defaults.

use super::keys::{DeployKeys, GatewayKeys, HopKeys, LimitKeys, MAX_RULES, PolicyKeys, RuleKeys, StatusKeys};
use super::rate;
use super::scalars::{Interface, OneOrList, Percent};
use super::types::{
    Action, Config, Deploy, Firewall, GatewayFile, Kind, Policy, Prefix, RecordFormat, Rule, Status,
};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::{At, Keys as _};
use crate::resolve::custom::of_gateway_file;
use crate::resolve::gateways::{alpha, keep_alive};
use crate::resolve::given_items;
use crate::scalars::Name;
use bentpipe_base::{Duration, Size};
use bentpipe_gateway::Limits;

/// Default fraction of the rate that is used. It is less than 1 so that the queue stays in the gateway: in a
/// measurement, a rate 4 % too high cost three quarters of the goodput.
const SHARE: f64 = 0.995;
/// Smallest plausible share; a smaller one is assumed to be a mistake.
const LEAST_SHARE: f64 = 0.5;
const MOST_RTT: Duration = Duration::from_secs(60);
/// Maximum framing per packet, more than any link layer adds.
const MOST_FRAMING: Size = Size(1000);
/// Default of `watch`: stalled connections are noticed within seconds, and most hosts of a site send
/// something within a minute.
const WATCH: Duration = Duration::from_secs(60);
const MOST_WATCH: Duration = Duration::from_secs(600);
const MARK: u32 = 0x6270;
const TABLE: u32 = 6270;
/// Minimum memory. It has room for a table with two segments of every size.
const LEAST_MEMORY: Size = Size(1 << 20);
const LEAST_PER_FLOW: Size = Size(64 << 10);

pub(super) fn file(keys: GatewayKeys) -> Result<GatewayFile> {
    let mut config = hop(&keys.satellite.value)?;
    let deploy = deploy(&keys.deploy)?;
    let rules = rules(keys.rules.map(|r| r.value).unwrap_or_default())?;
    let policy = keys.policy.as_ref().map(|p| &p.value);
    config.sample = sample(policy)?;
    let customs = of_gateway_file(given_items(keys.nodes.as_ref()))?;
    let rate = keys.rate.as_ref().map(|r| rate::resolve(r, &config, deploy.kind)).transpose()?.flatten();
    limits(keys.limits.map(|l| l.value), &mut config)?;
    let subscriber = policy.and_then(|p| p.subscriber_prefix.as_ref()).map(|s| &s.value);
    Ok(GatewayFile {
        config,
        deploy,
        policy: Policy {
            rules,
            otherwise: policy.and_then(|p| p.otherwise).map_or(Action::Accelerate, |a| a.value),
        },
        rate,
        bypass_when_slower: policy.and_then(|p| p.bypass_when_slower).is_some_and(|b| b.value),
        subscriber_prefix: (
            subscriber.and_then(|s| s.v4).map_or(32, |n| n.value.0 as u8),
            subscriber.and_then(|s| s.v6).map_or(64, |n| n.value.0 as u8),
        ),
        customs,
        status: status(keys.status.map(|s| s.value))?,
    })
}

fn hop(keys: &HopKeys) -> Result<Config> {
    let framing = keys.framing.map(|f| f.at_most("framing", MOST_FRAMING)).transpose()?;
    let rtt = keys.rtt.map(|rtt| rtt.positive("rtt").and(rtt.at_most("rtt", MOST_RTT))).transpose()?;
    if let Some(At { value: Percent(share), span }) = keys.share {
        if keys.rate.is_none() {
            bail!(span, "`share` is of a rate", "there is no `rate`");
        }
        if share < LEAST_SHARE {
            bail!(span, "`share` is too small", "at least 50 %");
        }
    }
    let default = Config::default();
    Ok(Config {
        rate: keys.rate.map(|r| r.value),
        framing: framing.unwrap_or_default(),
        rtt,
        mode: keys.mode.map_or(default.mode, |m| m.value),
        alpha: keys.alpha.map(alpha).transpose()?.flatten(),
        k: keys.k.map_or(default.k, |k| k.value.0 as u32),
        share: keys.share.map_or(SHARE, |s| s.value.0),
        copies: keys.copies.map_or(default.copies, |c| c.value.0),
        keep_alive: keys.keep_alive.map(keep_alive).transpose()?.flatten(),
        limits: Limits {
            flows: 1_000_000,
            memory: Size(512 << 20),
            per_flow: Size(32 << 20),
            ..default.limits
        },
        ..default
    })
}

pub(crate) fn deploy(given: &At<DeployKeys>) -> Result<Deploy> {
    let keys = &given.value;
    if keys.kind.value == Kind::Inline {
        let OneOrList(lan) = &keys.lan.value;
        if let [_, second, ..] = &lan[..] {
            let label = "one interface on each side; routed can have more";
            return Err(Fault::new(second.span, "inline is between two interfaces", label));
        }
        // all optional keys but the name are for `routed`
        let routed_only = keys.given().into_iter().filter(|(key, _)| *key != "name");
        if let Some(span) = routed_only.map(|(_, span)| span).min() {
            bail!(span, "inline needs no routes, marks or TUN interfaces", "it belongs to kind = \"routed\"");
        }
    }
    let name = |given: &Option<At<Interface>>, default: &str| {
        given.as_ref().map_or_else(|| default.to_owned(), |g| g.value.0.clone())
    };
    let (tun_lan, tun_satellite) = (name(&keys.tun_lan, "bentlan"), name(&keys.tun_satellite, "bentsat"));
    check_interface_names(keys, &tun_lan, &tun_satellite)?;
    let number = |given: Option<u64>, default: u32| given.map_or(default, |n| n as u32);
    let table = number(keys.table.map(|t| t.value.0), TABLE);
    if let Some(span) = keys.table.map(|t| t.span).filter(|_| (252..=255).contains(&table)) {
        bail!(span, "`table` is taken", "253 to 255 are the kernel's; this one and the next are used");
    }
    Ok(Deploy {
        kind: keys.kind.value,
        lan: keys.lan.value.0.iter().map(|l| l.value.0.clone()).collect(),
        satellite: keys.satellite.value.0.clone(),
        name: gateway_name(keys)?,
        tun_lan,
        tun_satellite,
        nft_table: nft_table(keys)?,
        mark: number(keys.mark.map(|m| m.value.0), MARK),
        table,
        priority: number(keys.priority.map(|p| p.value.0), TABLE),
        firewall: keys.firewall.map_or(Firewall::Check, |f| f.value),
        watch: keys.watch.map_or(Ok(WATCH), |w| w.at_most("watch", MOST_WATCH))?,
    })
}

/// Returns the name of the gateway, which becomes part of a file name.
fn gateway_name(keys: &DeployKeys) -> Result<String> {
    let Some(name) = &keys.name else { return Ok("gateway".to_owned()) };
    if name.value.0.starts_with('.') || name.value.0.len() > 40 {
        bail!(name.span, "`name` cannot be the name of a file", "at most 40 characters, and not a dot first");
    }
    Ok(name.value.0.clone())
}

/// Returns the name of the nftables table. nftables allows fewer characters in names than scenario files.
fn nft_table(keys: &DeployKeys) -> Result<String> {
    let Some(At { value: Name(name), span }) = &keys.nft_table else {
        return Ok("bentpipe_gateway".to_owned());
    };
    if name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        return Ok(name.clone());
    }
    let label = "a letter first, then letters, digits and `_`";
    Err(Fault::new(*span, "`nft_table` cannot be the name of a table", label))
}

/// Returns an error if an interface has two roles.
fn check_interface_names(keys: &DeployKeys, tun_lan: &str, tun_satellite: &str) -> Result<()> {
    let mut taken: Vec<&str> = Vec::new();
    let tuns = keys.kind.value == Kind::Routed;
    let lan = keys.lan.value.0.iter().map(|l| (l.value.0.as_str(), l.span));
    let satellite = [(keys.satellite.value.0.as_str(), keys.satellite.span)];
    let own = |given: &Option<At<Interface>>| given.as_ref().map_or(keys.kind.span, |g| g.span);
    let tun = [(tun_lan, own(&keys.tun_lan)), (tun_satellite, own(&keys.tun_satellite))];
    for (name, span) in lan.chain(satellite).chain(tun.into_iter().filter(|_| tuns)) {
        if taken.contains(&name) {
            bail!(span, "interface `{name}` is named twice", "this name has a part already");
        }
        taken.push(name);
    }
    Ok(())
}

pub(crate) fn rules(given: Vec<At<RuleKeys>>) -> Result<Vec<Rule>> {
    let mut all: Vec<Rule> = Vec::with_capacity(given.len());
    for At { value: keys, span } in given {
        if all.len() == MAX_RULES {
            return Err(Fault::too_many(span, "rules", MAX_RULES));
        }
        if let Some(n) = all.iter().position(matches_all) {
            let label = format!("rule {} matches everything before it", n + 1);
            return Err(Fault::new(span, format!("rule {} is never asked", all.len() + 1), label)
                .help("help: the first rule that matches decides"));
        }
        let place = keys.to.as_ref().map_or(span, |t| t.span);
        let (from, to) = (plain(keys.from), plain(keys.to));
        let family = |p: &Prefix| p.address().is_ipv4();
        let meet = from.is_empty()
            || to.is_empty()
            || from.iter().any(|a| to.iter().any(|b| family(a) == family(b)));
        if !meet {
            let message = "this rule never matches: its ends are of different families";
            return Err(Fault::new(place, message, "write a rule for IPv4 and one for IPv6"));
        }
        all.push(Rule {
            action: keys.action.value,
            from,
            to,
            ports: plain(keys.port),
            from_ports: plain(keys.from_port),
            dscp: plain(keys.dscp).into_iter().map(|class| class.0).collect(),
            opened_from: keys.opened_from.map(|o| o.value),
        });
    }
    Ok(all)
}

/// Returns the values of a list without their positions; none if it is not given.
fn plain<T>(given: Option<At<OneOrList<T>>>) -> Vec<T> {
    given.into_iter().flat_map(|many| many.value.0).map(|item| item.value).collect()
}

/// True if the rule has no condition.
fn matches_all(rule: &Rule) -> bool {
    let Rule { action: _, from, to, ports, from_ports, dscp, opened_from } = rule;
    let conditions = from.len() + to.len() + ports.len() + from_ports.len() + dscp.len();
    conditions == 0 && opened_from.is_none()
}

fn sample(policy: Option<&PolicyKeys>) -> Result<f64> {
    let Some(policy) = policy else { return Ok(0.0) };
    let share = policy.sample.map_or(0.0, |s| s.value.0);
    if let Some(bypass) = policy.bypass_when_slower.filter(|b| b.value && share == 0.0) {
        return Err(Fault::new(bypass.span, "`bypass_when_slower` has nothing to compare with", "")
            .help("help: add sample = \"10 %\": so many connections are left alone"));
    }
    if let Some(sample) = policy.sample.filter(|s| s.value.0 >= 1.0) {
        let label = "nothing would be accelerated; otherwise = \"pass\" says so";
        return Err(Fault::new(sample.span, "`sample` is everything", label));
    }
    Ok(share)
}

/// Replaces the default limits and timeouts by the given ones.
fn limits(given: Option<LimitKeys>, config: &mut Config) -> Result<()> {
    let Some(keys) = given else {
        config.limits.per_flow = config.limits.per_flow_on(config.rate, config.limits.per_flow);
        return Ok(());
    };
    let (limits, timeouts) = (&mut config.limits, &mut config.timeouts);
    limits.flows = keys.flows.map_or(limits.flows, |f| f.value.0 as u32);
    let memory = keys.memory.map(|m| m.at_least("memory", LEAST_MEMORY, "small")).transpose()?;
    limits.memory = memory.unwrap_or(limits.memory);
    let per_flow = keys.per_flow.map(|p| p.at_least("per_flow", LEAST_PER_FLOW, "small")).transpose()?;
    limits.per_flow = per_flow.unwrap_or(limits.per_flow_on(config.rate, limits.per_flow));
    if let Some(per_flow) = keys.per_flow.filter(|p| p.value > limits.memory) {
        let label = format!("all together have {}", limits.memory);
        return Err(Fault::new(per_flow.span, "`per_flow` is more than `memory`", label));
    }
    for (key, given, to) in [
        ("opening", keys.opening, &mut timeouts.opening),
        ("idle", keys.idle, &mut timeouts.established),
        ("closing", keys.closing, &mut timeouts.closing),
    ] {
        if let Some(given) = given {
            *to = given.at_least(key, Duration::from_secs(1), "short")?;
        }
    }
    Ok(())
}

fn status(given: Option<StatusKeys>) -> Result<Status> {
    let Some(keys) = given else { return Ok(Status::default()) };
    if let Some(format) = keys.record_format.filter(|_| keys.records.is_none()) {
        bail!(format.span, "there are no records to write", "give `records`, the file");
    }
    for path in [&keys.socket, &keys.records].into_iter().flatten() {
        if !path.value.0.starts_with('/') {
            let label = "write it from the root: a service has no folder of its own";
            return Err(Fault::new(path.span, "this path is relative", label));
        }
    }
    let records = keys.records.map(|path| {
        let path = path.value.0;
        let is_csv = path.to_ascii_lowercase().ends_with(".csv");
        let by_name = if is_csv { RecordFormat::Csv } else { RecordFormat::JsonLines };
        (path, keys.record_format.map_or(by_name, |f| f.value))
    });
    Ok(Status {
        socket: keys.socket.map(|s| s.value.0),
        prometheus: keys.prometheus.map(|p| p.value),
        records,
    })
}
