//! Resolves `[dumbbell]`: pairs of hosts on both sides of one bottleneck.

use super::Network;
use super::direction::DirectionContext;
use super::trace_files::TraceFiles;
use crate::diagnostic::{Fault, Result};
use crate::form::{At, Keys as _, OrTable};
use crate::keys::{ChannelKeys, DirectionKeys, DumbbellKeys};
use crate::profile;
use crate::types::{DirectionSpec, LinkSpec, NodeKind, NodeSpec};
use bentpipe_base::Duration;
use std::sync::Arc;

pub(super) fn build(given: &At<DumbbellKeys>, files: &TraceFiles<'_>) -> Result<Network> {
    let keys = &given.value;
    let side =
        DirectionContext { name_in_errors: "the access links", span: keys.access.span, forward: None, files };
    let access = side.direction(&keys.access.value)?;
    let (forward, backward) = bottleneck(given, access.delay, files)?;
    let access = Arc::new(access);
    let pairs = keys.pairs.map_or(1, |p| p.value.0) as usize;

    let mut network = Network::with_room(2 * pairs + 2, 2 * pairs + 1);
    for side in ["src", "dst"] {
        for n in 1..=pairs {
            network.add(node(&format!("{side}{n}"), NodeKind::Host));
        }
    }
    let (left, right) = (2 * pairs, 2 * pairs + 1);
    network.add(node("left", NodeKind::Router));
    network.add(node("right", NodeKind::Router));
    network.links.push(link("bottleneck", (left, right), &forward.into(), &backward.into()));
    for n in 0..pairs {
        network.links.push(link(&format!("src{}-access", n + 1), (n, left), &access, &access));
    }
    for n in 0..pairs {
        network.links.push(link(&format!("dst{}-access", n + 1), (right, pairs + n), &access, &access));
    }
    Ok(network)
}

pub(super) fn node(name: &str, kind: NodeKind) -> NodeSpec {
    NodeSpec { name: name.into(), kind, routes: Vec::new() }
}

/// Creates a link whose other direction has the suffix `-return`.
pub(super) fn link(
    name: &str,
    (a, b): (usize, usize),
    forward: &Arc<DirectionSpec>,
    backward: &Arc<DirectionSpec>,
) -> LinkSpec {
    let reverse_name = format!("{name}-return").into();
    let (forward, backward) = (Arc::clone(forward), Arc::clone(backward));
    LinkSpec { reverse_name, name: name.into(), a, b, forward, backward }
}

/// Returns the one-way delay that the access links at both ends leave of `rtt`.
pub(super) fn delay_between_access(rtt: At<Duration>, access: Duration) -> Result<Duration> {
    let (one_way, taken) = (rtt.value / 2, access * 2);
    if one_way < taken {
        let label = format!("two access links of {access} each way take {} of it", taken * 2);
        return Err(Fault::new(rtt.span, "`rtt` is too short for the access links", label));
    }
    Ok(one_way - taken)
}

/// Resolves both directions. By default, the return direction is that of the profile; without a profile, it
/// has the rate, buffer, framing and orbit of the forward direction and no errors.
fn bottleneck(
    given: &At<DumbbellKeys>,
    access: Duration,
    files: &TraceFiles<'_>,
) -> Result<(DirectionSpec, DirectionSpec)> {
    let keys = &given.value;
    let delay = keys.rtt.map(|rtt| delay_between_access(rtt, access)).transpose()?;
    let (mut there, mut back) = match &keys.profile {
        Some(name) => profile::profile_keys(name)?,
        None if delay.is_none() => return Err(Fault::missing(given.span, "[dumbbell]", "rtt")),
        None => {
            let shared = DirectionKeys { delay: None, channel: return_defaults(&keys.channel) };
            (shared.clone(), shared)
        }
    };
    there.channel = keys.channel.clone().over(&there.channel);
    if let Some(own) = &keys.r#return {
        back.channel = own.value.clone().over(&back.channel);
    }
    let resolve = |side: &DirectionContext<'_>, keys: &DirectionKeys| match delay {
        Some(_) => side.channel(&keys.channel, delay),
        None => side.direction(keys),
    };
    let side = DirectionContext { name_in_errors: "[dumbbell]", span: given.span, forward: None, files };
    let forward = resolve(&side, &there)?;
    let span = keys.r#return.as_ref().map_or(given.span, |r| r.span);
    let side = DirectionContext { name_in_errors: "`return`", span, forward: Some(forward.rate), files };
    let backward = resolve(&side, &back)?;
    Ok((forward, backward))
}

/// Returns the keys that the return direction takes from the forward direction.
fn return_defaults(forward: &ChannelKeys) -> ChannelKeys {
    ChannelKeys {
        rate: forward.rate.clone().filter(|r| matches!(r.value, OrTable::Plain(_))),
        loss: None,
        loss_draw: None,
        ber: None,
        capacity: None,
        fade: None,
        bursts: None,
        outages: None,
        dama: None,
        idle_release: None,
        ..forward.clone()
    }
}
