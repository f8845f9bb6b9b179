//! Resolves `[satellite]`: users behind the stations of one satellite.

use super::direction::DirectionContext;
use super::dumbbell::{delay_between_access, link, node};
use super::trace_files::TraceFiles;
use super::{Network, check_nodes};
use crate::diagnostic::Result;
use crate::form::At;
use crate::keys::{SatelliteKeys, Topology};
use crate::types::NodeKind;
use std::sync::Arc;

pub(super) fn build(given: &At<SatelliteKeys>, files: &TraceFiles<'_>) -> Result<Network> {
    let keys = &given.value;
    let side = |whose, span| DirectionContext { name_in_errors: whose, span, forward: None, files };
    let access = side("the access links", keys.access.span).direction(&keys.access.value)?;
    let hop = delay_between_access(keys.rtt, access.delay)?;
    // a star has one link through the satellite to the hub, a mesh has separate links up and down
    let (up, down) = match keys.topology.value {
        Topology::Star => (hop, hop),
        Topology::Mesh => (hop / 2, hop - hop / 2),
    };
    let uplink = side("the uplink", keys.uplink.span).channel(&keys.uplink.value, Some(up))?;
    let mut downlink = side("the downlink", keys.downlink.span).channel(&keys.downlink.value, Some(down))?;
    let switch = match keys.topology.value {
        Topology::Star => "hub",
        Topology::Mesh => {
            downlink.buffer = keys.onboard_buffer.map_or(downlink.buffer, |b| b.value);
            "satellite"
        }
    };
    let stations = keys.stations.map_or(2, |n| n.value.0) as usize;
    check_nodes(2 * stations + 1, given.span)?;

    let [access, uplink, downlink] = [access, uplink, downlink].map(Arc::new);
    let mut network = Network::with_room(2 * stations + 1, 2 * stations);
    for n in 1..=stations {
        network.add(node(&format!("user{n}"), NodeKind::Host));
    }
    for n in 1..=stations {
        network.add(node(&format!("station{n}"), NodeKind::Router));
    }
    network.add(node(switch, NodeKind::Router));
    for n in 0..stations {
        let ends = (stations + n, 2 * stations);
        let mut hop = link(&format!("station{}-uplink", n + 1), ends, &uplink, &downlink);
        hop.reverse_name = format!("station{}-downlink", n + 1).into();
        network.links.push(hop);
    }
    for n in 0..stations {
        network.links.push(link(&format!("user{}-access", n + 1), (n, stations + n), &access, &access));
    }
    Ok(network)
}
