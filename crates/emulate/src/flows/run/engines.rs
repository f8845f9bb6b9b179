//! The flows' thread drives the engine at each host.

use super::{Error, Flow, Flows, HostNamespace, KernelRequirements, WakeTarget};
use crate::flows::engine::{EndAt, EngineHost};
use crate::flows::setup::place_of;
use crate::flows::stream::Side;
use crate::flows::{ends_of, ports_of};
use bentpipe_base::NodeId;
use bentpipe_scenario::Scenario;
use bentpipe_sim::build::FlowEnds;
use std::cmp::Reverse;

/// Most turns of an endpoint before other flows are handled.
const TURNS: usize = 32;

/// Opens the engine at the hosts of flows that need it. The result has an entry for each node.
pub(super) fn open(
    scenario: &Scenario,
    ends: &[FlowEnds],
    needs: &KernelRequirements,
    places: &[Option<HostNamespace<'_>>],
) -> Result<Vec<Option<EngineHost>>, Error> {
    let mut at: Vec<Vec<EndAt>> = vec![Vec::new(); scenario.nodes.len()];
    let flows = scenario.flows.iter().zip(ends).zip(&needs.engine).enumerate();
    for (i, ((flow, ends), _)) in flows.filter(|(_, (_, own))| **own) {
        let (opener, acceptor) = ports_of(flow, ends);
        for ((_, node, ..), end) in
            ends_of(flow).into_iter().zip([(i, Side::Opener, opener), (i, Side::Acceptor, acceptor)])
        {
            place_of(places, flow, node)?;
            at[node].push(end);
        }
    }
    let open = |(node, ends): (usize, Vec<EndAt>)| {
        let place = places.get(node).and_then(Option::as_ref).filter(|_| !ends.is_empty());
        let seed = scenario.seed.wrapping_add(node as u64);
        place.map(|place| EngineHost::open(&scenario.nodes[node].name, place, ends, seed)).transpose()
    };
    at.into_iter().enumerate().map(open).collect()
}

impl Flows {
    /// Lets the engine at a host read and send packets, and runs the applications to which they matter.
    pub(super) fn turn(&mut self, node: usize) -> Result<(), Error> {
        let mut again = self.clock.now();
        for _ in 0..TURNS {
            let Some(host) = self.engines.get_mut(node).and_then(Option::as_mut) else { return Ok(()) };
            again = host.turn()?;
            for k in 0..host.ends.len() {
                let end = self.engines.get(node).and_then(Option::as_ref).and_then(|host| host.ends.get(k));
                if let Some((flow, side, _)) = end.copied() {
                    self.act_in_engine(node, (flow, side), false);
                }
            }
            let host = self.engines.get(node).and_then(Option::as_ref);
            let has_more = again <= self.clock.now();
            if !has_more && host.is_none_or(|host| !host.driver.endpoint().wants_to_send()) {
                break;
            }
        }
        let Some(host) = self.engines.get_mut(node).and_then(Option::as_mut) else { return Ok(()) };
        if host.driver.endpoint().wants_to_send() {
            again = self.clock.now();
        }
        if again < host.armed || host.armed <= self.clock.now() {
            host.armed = again;
            self.wakes.push(Reverse((again, node, WakeTarget::Packets)));
        }
        Ok(())
    }

    /// Runs the applications of an end, if they are `due` or the network did something, and sets the next
    /// wake-up.
    pub(super) fn act_in_engine(&mut self, node: usize, (i, side): (usize, Side), due: bool) {
        let Some(host) = self.engines.get_mut(node).and_then(Option::as_mut) else { return };
        let Some(Flow::Engine(flow)) = self.running.get_mut(i) else { return };
        let cx = &mut self.world.cx(self.clock.now(), NodeId(0));
        let Some(again) = flow.run(cx, host, (side, due)) else { return };
        let end = flow.end(side);
        if again < end.armed {
            end.armed = again;
            let what = if side == Side::Opener { WakeTarget::Opener } else { WakeTarget::Acceptor };
            self.wakes.push(Reverse((again, i, what)));
        }
    }
}
