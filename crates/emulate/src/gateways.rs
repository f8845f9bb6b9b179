//! Gateways of a scenario, live: each stands where it would in the field, in front of the hop, as the same data path that runs on real interfaces.
//!
//! ```text
//!  host (bent0) -- veth -- p0 [gateway] g0 -- veth -- h0 [relay]
//! ```
//!
//! A gateway acts on all that leaves a host, so it needs a host whose only link is the hop. The relay's network is the scenario's without gateways.

use crate::error::Error;
use crate::session::{HOST_MAC, HostEnd, MTU, PORT_MAC, wait_until_up};
use bentpipe_accelerate::path::{Running, Setup, Unit};
use bentpipe_base::Size;
use bentpipe_gateway::Gateway;
use bentpipe_os::netlink::{Netlink, VethPair};
use bentpipe_os::packet::VethPort;
use bentpipe_os::{Clock, PacketPort, namespace};
use bentpipe_report::GatewayReport;
use bentpipe_scenario::{GatewaySpec, NodeKind, Scenario};
use bentpipe_sim::report::gateway_report;
use std::os::fd::AsFd as _;

/// Addresses that a gateway can tell apart.
const ADDRESSES: u32 = 1 << 16;

/// Gateways that run.
#[derive(Debug, Default)]
pub(crate) struct Gateways(Vec<(String, Running<Gateway>)>);

/// Refuses a scenario with a gateway that has no place to stand.
///
/// # Errors
/// Which it is, and why.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Error> {
    for gateway in &scenario.gateways {
        let begin = begin(scenario, gateway);
        let node = &scenario.nodes[begin];
        let links = scenario.links.iter().filter(|l| l.a == begin || l.b == begin).count();
        let why = match node.kind {
            NodeKind::Host if links == 1 => continue,
            NodeKind::Host => format!("the host `{}` has {links} links", node.name),
            NodeKind::Router => format!("`{}` is not a host", node.name),
        };
        return Err(Error::Gateway { name: gateway.name.clone(), why });
    }
    Ok(())
}

/// Where the hop of a gateway begins.
fn begin(scenario: &Scenario, gateway: &GatewaySpec) -> usize {
    let link = &scenario.links[gateway.at.link];
    if gateway.at.backward { link.b } else { link.a }
}

/// What the relay is to do: all but the gateways.
pub(crate) fn without(scenario: &Scenario) -> Scenario {
    Scenario { gateways: Vec::new(), ..scenario.clone() }
}

impl Gateways {
    /// The relay's port to a host, the `node` of its scenario; with a gateway in front of it where the scenario has one there. Called in the relay's
    /// network namespace.
    ///
    /// # Errors
    /// When the kernel refuses something.
    pub(crate) fn port(
        &mut self,
        scenario: &Scenario,
        (node, host): (usize, &HostEnd),
        clock: Clock,
        realtime: bool,
    ) -> Result<Box<dyn PacketPort>, Error> {
        let port = Box::new(VethPort::open(&host.port, HOST_MAC)?);
        let Some(gateway) = scenario.gateways.iter().find(|g| begin(scenario, g) == node) else {
            return Ok(port);
        };
        let (ours, relays) = (format!("g{node}"), format!("h{node}"));
        let here = namespace::network().map_err(|e| Error::system("the network namespace", e))?;
        let mut netlink = Netlink::open()?;
        netlink.add_veth(&VethPair {
            name: &ours,
            mac: PORT_MAC,
            peer: &relays,
            peer_mac: PORT_MAC,
            peer_network: here.as_fd(),
            mtu: MTU,
        })?;
        for name in [&ours, &relays] {
            netlink.set_up(name)?;
        }
        for name in [&ours, &relays] {
            wait_until_up(name)
                .map_err(|e| Error::system(format!("the interface of {}", gateway.name), e))?;
        }
        let satellite = Box::new(VethPort::open(&ours, HOST_MAC)?);
        let config = gateway.config.clone();
        let memory = Size(config.limits.memory.0.saturating_mul(2));
        let running = Running::start(Setup {
            ports: [port, satellite],
            unit: Unit::Packet,
            node: Box::new(move |_| Gateway::new(config)),
            begin: None,
            attendants: Vec::new(),
            clock,
            seed: scenario.seed,
            memory,
            addresses: ADDRESSES,
            realtime,
        })
        .map_err(|e| Error::system(format!("the gateway {}", gateway.name), e))?;
        self.0.push((gateway.name.clone(), running));
        Ok(Box::new(VethPort::open(&relays, HOST_MAC)?))
    }

    /// Ends them; what they have done.
    ///
    /// # Errors
    /// When one had failed.
    pub(crate) fn stop(self) -> Result<Vec<GatewayReport>, Error> {
        let stop = |(name, running): (String, Running<Gateway>)| {
            let outcome = running.stop().map_err(|e| Error::system(format!("the gateway {name}"), e))?;
            Ok(gateway_report(name, &outcome.node))
        };
        self.0.into_iter().map(stop).collect()
    }
}
