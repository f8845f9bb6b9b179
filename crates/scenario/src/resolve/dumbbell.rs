//! `[dumbbell]`: pairs of hosts on both sides of one bottleneck.

use super::{Network, graph};
use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::keys::{ChannelKeys, DirectionKeys, DumbbellKeys};
use crate::types::{DirectionSpec, LinkSpec, NodeKind, NodeSpec};
use bentpipe_base::{Duration, Probability};

pub(super) fn build(given: &At<DumbbellKeys>) -> Result<Network> {
    let keys = &given.value;
    let access = graph::direction(&keys.access.value, keys.access.span, "the access links")?;
    let delay = bottleneck_delay(keys, access.delay)?;
    let (forward, backward) = bottleneck(given, delay)?;
    let pairs = keys.pairs.map_or(1, |p| p.value.0) as usize;

    let mut network = Network::empty();
    for side in ["src", "dst"] {
        for n in 1..=pairs {
            network.add(node(format!("{side}{n}"), NodeKind::Host));
        }
    }
    let (left, right) = (2 * pairs, 2 * pairs + 1);
    network.add(node("left".into(), NodeKind::Router));
    network.add(node("right".into(), NodeKind::Router));
    network.links.push(link("bottleneck".into(), (left, right), forward, backward));
    for n in 0..pairs {
        network.links.push(link(format!("src{}-access", n + 1), (n, left), access, access));
    }
    for n in 0..pairs {
        network.links.push(link(format!("dst{}-access", n + 1), (right, pairs + n), access, access));
    }
    Ok(network)
}

fn node(name: String, kind: NodeKind) -> NodeSpec {
    NodeSpec { name, kind, routes: Vec::new() }
}

fn link(name: String, (a, b): (usize, usize), forward: DirectionSpec, backward: DirectionSpec) -> LinkSpec {
    LinkSpec { reverse_name: format!("{name}-return"), name, a, b, forward, backward }
}

/// What the access links leave of the way there.
fn bottleneck_delay(keys: &DumbbellKeys, access: Duration) -> Result<Duration> {
    let (one_way, taken) = (keys.rtt.value / 2, access * 2);
    if one_way < taken {
        let label = format!("two access links of {access} each way take {} of it", taken * 2);
        return Err(Fault::new(keys.rtt.span, "`rtt` is too short for the access links", label));
    }
    Ok(one_way - taken)
}

/// Both directions: the return has the forward rate, buffer and framing unless told otherwise, and no errors.
fn bottleneck(given: &At<DumbbellKeys>, delay: Duration) -> Result<(DirectionSpec, DirectionSpec)> {
    let keys = &given.value;
    let with_delay = |channel: ChannelKeys| DirectionKeys {
        delay: Some(At { value: delay, span: keys.rtt.span }),
        channel,
    };
    let forward = graph::direction(&with_delay(keys.channel.clone()), given.span, "[dumbbell]")?;
    let mut backward = DirectionSpec { loss: Probability::ZERO, ber: Probability::ZERO, ..forward };
    if let Some(back) = &keys.r#return {
        let back = &back.value;
        backward.rate = back.rate.map_or(backward.rate, |v| v.value);
        backward.buffer = back.buffer.map_or(backward.buffer, |v| v.value);
        backward.loss = back.loss.map_or(backward.loss, |v| v.value);
        backward.ber = back.ber.map_or(backward.ber, |v| v.value);
        backward.framing = back.framing.map_or(backward.framing, |v| v.value);
    }
    Ok((forward, backward))
}
