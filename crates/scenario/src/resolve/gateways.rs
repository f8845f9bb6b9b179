//! Resolves `[[gateways]]`, each at the start of a link direction.

use super::direction::MAX_FRAMING;
use super::names::Directions;
use super::unique_name;
use crate::diagnostic::{Fault, Result, bail, fault};
use crate::form::At;
use crate::gateway_file::rules;
use crate::keys::{GatewayKeys, GatewayLimitKeys};
use crate::types::{DirectionSpec, GatewaySpec, LinkSpec};
use bentpipe_base::{Duration, Rate, Size};
use bentpipe_gateway::{Action, Config, Limits, Policy};
use bentpipe_link::{FadeEffect, Mtu, Orbit};
use std::collections::BTreeSet;

const MAX_GATEWAYS: usize = 1000;
const LEAST_KEEP_ALIVE: Duration = Duration::from_millis(10);
/// Minimum memory; less cannot hold a packet.
const LEAST_MEMORY: Size = Size(65_536);

pub(super) fn resolve(
    given: &[At<GatewayKeys>],
    links: &[LinkSpec],
    names: &Directions<'_>,
) -> Result<Vec<GatewaySpec>> {
    let mut all = Vec::new();
    let (mut taken, mut places) = (BTreeSet::new(), BTreeSet::new());
    for gateway in given {
        let keys = &gateway.value;
        let name = unique_name(&mut taken, &keys.name, gateway.span, ("gateways", MAX_GATEWAYS))?;
        let at = names.find(&keys.link)?;
        let config = config(keys, links[at.link].direction(at.backward))?;
        let policy = Policy {
            rules: rules(keys.rules.as_ref().map(|r| r.value.clone()).unwrap_or_default())?,
            otherwise: keys.otherwise.map_or(Action::Accelerate, |a| a.value),
        };
        if !keys.enabled.is_none_or(|e| e.value) {
            continue;
        }
        if config.accelerate && links[at.link].direction(at.backward).mtu.is_some_and(Mtu::may_refuse) {
            let message = format!("`{}` refuses long packets, and a gateway holds them", keys.link.value.0);
            let label =
                "give the `mtu` of that link `longer = \"fragment\"`, or put it on a link before the gateway";
            return Err(Fault::new(keys.link.span, message, label));
        }
        if !places.insert(at) {
            let message = format!("two gateways before `{}`", keys.link.value.0);
            return Err(Fault::new(keys.link.span, message, "this is the second"));
        }
        all.push(GatewaySpec { name, hop: at, config, policy });
    }
    Ok(all)
}

fn config(keys: &GatewayKeys, hop: &DirectionSpec) -> Result<Config> {
    if let Some(share) = keys.share.filter(|s| s.value <= 0.0 || s.value > 1.0) {
        bail!(share.span, "`share` is a part of the rate", "more than 0 and at most 1");
    }
    let default = Config::default();
    let rate = rate(keys, hop)?;
    Ok(Config {
        rate,
        framing: keys.framing.map_or(Ok(hop.framing), |f| f.at_most("framing", MAX_FRAMING))?,
        mode: keys.mode.map_or(default.mode, |m| m.value),
        alpha: keys.alpha.map(alpha).transpose()?.flatten(),
        k: keys.k.map_or(default.k, |k| k.value.0 as u32),
        share: keys.share.map_or(default.share, |s| s.value),
        copies: keys.copies.map_or(default.copies, |c| c.value),
        keep_alive: keys.keep_alive.map(keep_alive).transpose()?.flatten(),
        limits: limits(keys.limits.as_ref().map(|l| &l.value), rate)?,
        accelerate: keys.accelerate.map_or(default.accelerate, |a| a.value),
        ..default
    })
}

/// Checks the weight of the old value in a smoothed one.
pub(crate) fn alpha(given: At<Option<f64>>) -> Result<Option<f64>> {
    if given.value.is_some_and(|alpha| !(0.0..1.0).contains(&alpha)) {
        bail!(given.span, "`alpha` is the weight of the old value", "at least 0 and less than 1");
    }
    Ok(given.value)
}

/// Checks the interval of keep-alives, whose rate it limits: less than 100 kbit/s.
pub(crate) fn keep_alive(given: At<Option<Duration>>) -> Result<Option<Duration>> {
    let every = given.value.map(|value| At { value, span: given.span });
    every.map(|every| every.at_least("keep_alive", LEAST_KEEP_ALIVE, "short")).transpose()
}

/// Returns the given rate or that of the hop. It must be given if the hop's rate changes, because a gateway
/// that sends faster than the hop builds a queue there.
fn rate(keys: &GatewayKeys, hop: &DirectionSpec) -> Result<Option<Rate>> {
    if let Some(given) = keys.rate {
        return Ok(given.value);
    }
    let by_timeline = hop.dynamics.iter().flat_map(|d| &d.changes).any(|(_, change)| change.rate.is_some());
    if by_timeline || varies(hop) {
        let word = &keys.link.value.0;
        return Err(fault!(keys.link.span, "the rate of `{word}` changes", "give the gateway a `rate`")
            .help("help: its lowest rate, or \"none\": then the gateway does not shape"));
    }
    Ok(Some(hop.rate))
}

/// True if the rate of the hop changes during the run by itself, without the timeline.
pub(super) fn varies(hop: &DirectionSpec) -> bool {
    hop.dynamics.as_ref().is_some_and(|d| {
        d.capacity.is_some()
            || d.access.is_some()
            || d.fade.as_ref().is_some_and(|f| matches!(f.effect, FadeEffect::Acm(_)))
            || matches!(&d.orbit, Some(Orbit::Slots(slots)) if slots.rate.is_some())
    })
}

fn limits(keys: Option<&GatewayLimitKeys>, rate: Option<Rate>) -> Result<Limits> {
    let default = Limits::default();
    let size = |key: &str, given: Option<At<Size>>, default: Size| {
        given.map_or(Ok(default), |given| given.at_least(key, LEAST_MEMORY, "small"))
    };
    let flows = keys.and_then(|k| k.flows).map_or(default.flows, |f| f.value.0 as u32);
    let memory = size("memory", keys.and_then(|k| k.memory), default.memory)?;
    let limits = Limits { flows, memory, ..default };
    let per_flow = limits.per_flow_on(rate, default.per_flow);
    Ok(Limits { per_flow: size("per_flow", keys.and_then(|k| k.per_flow), per_flow)?, ..limits })
}
