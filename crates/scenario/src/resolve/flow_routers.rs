//! Resolves `[[flow_routers]]`, each at the start of a link direction.

use super::gateways::varies;
use super::names::Directions;
use super::{given_items, signalling, unique_name};
use crate::addresses::host_addresses;
use crate::diagnostic::{Fault, Result, bail, did_you_mean, fault, listed};
use crate::form::At;
use crate::gateway_file::EncodingList;
use crate::keys::{ClassKeys, FlowRouterKeys, RateRuleKeys, SharingKeys};
use crate::types::{DirectionSpec, FlowRouterSpec, FlowSpec, LinkSpec};
use bentpipe_base::{Prefix, Rate, Size};
use bentpipe_flow_router::{ClassConfig, Encodings, Policy, RouterConfig, Rule};
use std::collections::BTreeSet;

const MAX_ROUTERS: usize = 1000;
const MAX_CLASSES: usize = 64;
/// Maximum number of rules of a flow router, each prefix counted.
const MAX_RULES: usize = 1000;
/// Share of the rate that all classes together may reserve by default.
const RESERVABLE: f64 = 0.5;
/// A sum of decimal shares may miss 1 by a rounding error.
const ROUNDING: f64 = 1e-9;
/// Smallest and largest MTU: what every IPv4 host accepts (RFC 791), and the longest packet.
const MTU: (Size, Size) = (Size(576), Size(65_535));

pub(super) fn resolve(
    given: &[At<FlowRouterKeys>],
    links: &[LinkSpec],
    names: &Directions<'_>,
    (flows, hosts): (&[FlowSpec], usize),
) -> Result<Vec<FlowRouterSpec>> {
    let longest = longest_packet(flows);
    let mut all = Vec::new();
    let (mut taken, mut places) = (BTreeSet::new(), BTreeSet::new());
    for router in given {
        let keys = &router.value;
        let name = unique_name(&mut taken, &keys.name, router.span, ("flow routers", MAX_ROUTERS))?;
        let at = names.find(&keys.link)?;
        let direction = links[at.link].direction(at.backward);
        let of_link = config(&keys.sharing, direction.rate, longest)?;
        let encodings =
            keys.encodings.as_ref().map_or(Ok(of_link.encodings), |given| encodings(&given.value))?;
        let config = RouterConfig { rate: rate(keys, direction, &of_link)?, encodings, ..of_link };
        check_sources(given_items(keys.sharing.rules.as_ref()), hosts)?;
        config.check().map_err(|why| Fault::new(router.span, format!("this flow router: {why}"), ""))?;
        if !keys.enabled.is_none_or(|e| e.value) {
            continue;
        }
        if !places.insert(at) {
            let message = format!("two flow routers before `{}`", keys.link.value.0);
            return Err(Fault::new(keys.link.span, message, "this is the second"));
        }
        let changes = direction.dynamics.iter().flat_map(|dynamics| &dynamics.changes);
        let of_packets = |rate| config.of_packets(rate, direction.framing);
        let rates = changes.filter_map(|(at, change)| Some((*at, of_packets(change.rate?)))).collect();
        all.push(FlowRouterSpec { name, hop: at, config, rates });
    }
    Ok(all)
}

/// The configuration of a flow router that shares out `rate`. `longest`: its MTU if the keys say none.
pub(crate) fn config(keys: &SharingKeys, rate: Rate, longest: Size) -> Result<RouterConfig> {
    let mtu = keys.mtu.map(|mtu| mtu.at_least("mtu", MTU.0, "small").and(mtu.at_most("mtu", MTU.1)));
    let default = RouterConfig { mtu: mtu.transpose()?.unwrap_or(longest), ..RouterConfig::new(rate) };
    if let Some(given) = keys.utilisation.filter(|u| u.value <= 0.0 || u.value > 1.0) {
        bail!(given.span, "`utilisation` is a part of the rate", "more than 0 and at most 1");
    }
    let classes = keys.classes.as_ref().map_or(Ok(default.classes), classes)?;
    let policy = Policy { rules: rules(given_items(keys.rules.as_ref()), &classes)? };
    let limits = keys.limits.as_ref().map(|limits| &limits.value);
    let half_open_time = limits.and_then(|l| l.half_open_time).map(|time| time.positive("half_open_time"));
    Ok(RouterConfig {
        utilisation: keys.utilisation.map_or(default.utilisation, |u| u.value),
        classes,
        policy,
        idle: keys.idle.map_or(Ok(default.idle), |idle| idle.positive("idle"))?,
        idle_maximum: keys.idle_maximum.map_or(Ok(default.idle_maximum), |i| i.positive("idle_maximum"))?,
        half_open: limits.and_then(|l| l.half_open).map_or(default.half_open, |n| n.value.0 as u32),
        half_open_time: half_open_time.unwrap_or(Ok(default.half_open_time))?,
        flows: limits.and_then(|l| l.flows).map_or(default.flows, |n| n.value.0 as u32),
        ..default
    })
}

/// Returns the encodings, each of them once.
pub(crate) fn encodings(given: &EncodingList) -> Result<Encodings> {
    given.0.iter().try_fold(Encodings::default(), |all, encoding| {
        if all.has(encoding.value) {
            let word = encoding.value.word();
            bail!(encoding.span, "`encodings` has `{word}` twice", "drop one");
        }
        Ok(all.with(encoding.value))
    })
}

/// Returns the given rate or that of the direction. It must be given if that changes in a way that the flow
/// router is not told of: a rate that does not exist would be shared out.
fn rate(keys: &FlowRouterKeys, direction: &DirectionSpec, of_link: &RouterConfig) -> Result<Rate> {
    if let Some(given) = keys.rate {
        return Ok(given.value);
    }
    if varies(direction) {
        let word = &keys.link.value.0;
        return Err(fault!(keys.link.span, "the rate of `{word}` changes", "give the flow router a `rate`")
            .help("help: its lowest rate; only changes in [[timeline]] are followed"));
    }
    Ok(of_link.of_packets(direction.rate, direction.framing))
}

/// The longest packet of the flows, at least an Ethernet's: segments with their headers.
fn longest_packet(flows: &[FlowSpec]) -> Size {
    let lengths =
        flows.iter().map(|flow| u64::from(flow.sender.mss) + u64::from(flow.sender.ip.header()) + 20);
    Size(lengths.fold(1500, u64::max)).min(MTU.1)
}

fn classes(given: &At<Vec<At<ClassKeys>>>) -> Result<Vec<ClassConfig>> {
    let count = given.value.len();
    if count == 0 {
        bail!(given.span, "there are no classes", "drop this, or give one");
    }
    let mut taken = BTreeSet::new();
    let mut all = Vec::with_capacity(count);
    let mut sum = 0.0;
    for class in &given.value {
        let keys = &class.value;
        let name = unique_name(&mut taken, &keys.name, class.span, ("classes", MAX_CLASSES))?;
        if keys.weight.value <= 0.0 {
            return Err(Fault::zero(keys.weight.span, "weight"));
        }
        let share = keys.reservable.map(|r| r.within("reservable", (0.0, 1.0), "")).transpose()?;
        let reservable = share.unwrap_or(RESERVABLE / count as f64);
        sum += reservable;
        if sum > 1.0 + ROUNDING {
            let span = keys.reservable.map_or(class.span, |r| r.span);
            bail!(span, "the classes may reserve more than the rate", "`reservable` is {sum} up to here");
        }
        all.push(ClassConfig { name, weight: keys.weight.value, reservable });
    }
    Ok(all)
}

fn rules(given: &[At<RateRuleKeys>], classes: &[ClassConfig]) -> Result<Vec<Rule>> {
    let mut all: Vec<Rule> = Vec::new();
    for At { value: keys, span } in given {
        for from in &keys.from.value.0 {
            if all.len() == MAX_RULES {
                return Err(Fault::too_many(*span, "rules", MAX_RULES));
            }
            if let Some(earlier) = all.iter().find(|rule| covers(rule.from, from.value)) {
                let label = format!("an earlier rule has {}; the first that matches applies", earlier.from);
                return Err(Fault::new(from.span, "this prefix is never looked at", label));
            }
            all.push(rule(keys, from, classes)?);
        }
    }
    Ok(all)
}

/// Returns an error for a rule that no host of the scenario has an address for.
fn check_sources(rules: &[At<RateRuleKeys>], hosts: usize) -> Result<()> {
    let hosts = u16::try_from(hosts).unwrap_or(u16::MAX);
    let mut all = rules.iter().flat_map(|rule| &rule.value.from.value.0);
    let is_used = |from: &Prefix| {
        (0..hosts).any(|host| host_addresses(0, host).into_iter().any(|address| from.contains(address)))
    };
    match all.find(|from| !is_used(&from.value)) {
        None => Ok(()),
        Some(from) => {
            Err(Fault::new(from.span, "no host has an address with this prefix", "the rule has no effect")
                .help("help: the first host has 10.55.0.1 and fd55::1, the second 10.55.0.2, and so on"))
        }
    }
}

fn rule(keys: &RateRuleKeys, from: &At<Prefix>, classes: &[ClassConfig]) -> Result<Rule> {
    let rate = |key: &str, given: Option<At<Rate>>| {
        given.map(|given| signalling::least_unit(key, given)).transpose()
    };
    let names = || classes.iter().map(|class| class.name.as_str());
    let class = match &keys.class {
        None => 0,
        Some(At { value, span }) => names().position(|name| name == value.0).ok_or_else(|| {
            Fault::new(*span, format!("there is no class `{}`", value.0), did_you_mean(&value.0, names()))
                .help(format!("help: classes: {}", listed(names())))
        })?,
    };
    Ok(Rule {
        class,
        available: rate("available", keys.available)?,
        guaranteed: rate("guaranteed", keys.guaranteed)?,
        preemption: keys.preemption.map_or(0, |p| p.value.0 as u8),
        delay: keys.delay.map_or(0, |d| d.value.0 as u8),
        from: from.value,
    })
}

/// True if all addresses of `prefix` are in `earlier`.
fn covers(earlier: Prefix, prefix: Prefix) -> bool {
    earlier.length() <= prefix.length() && earlier.contains(prefix.address())
}
