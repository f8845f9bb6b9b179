//! The ports of an agent, and the changes on the machine that bring packets to them.

use super::Error;
use super::guard::{self, Inherited};
use crate::path::{HostPort, Scope};
use bentpipe_accelerate::deploy::{self, Plan, Step, VETH_MAC};
use bentpipe_driver::Unit;
use bentpipe_os::netlink::Netlink;
use bentpipe_os::{FramePort, PacketPort, VethPort};
use bentpipe_scenario::agent_file::{AgentFile, Method, Place};

/// Smallest MTU for TCP (RFC 8200, section 5).
pub(super) const LEAST_MTU: u16 = 576;
const USUAL_MTU: u32 = 1500;

/// Open ports, the host's first.
pub(super) struct Opened {
    pub(super) ports: [Box<dyn PacketPort>; 2],
    pub(super) unit: Unit,
    pub(super) scope: Option<Scope>,
    /// Of both sides.
    pub(super) mtu: [u16; 2],
}

/// Carries out the plan and opens the ports.
pub(super) fn open(file: &AgentFile, plan: &Plan) -> Result<Opened, Error> {
    let made = deploy::apply(plan)?;
    let mtu = mtu(file)?;
    match file.place {
        Place::Inline => {
            let open = |name: &str| FramePort::open(name).map(|port| Box::new(port) as Box<dyn PacketPort>);
            let host = file.site.deploy.lan.first().map_or("", String::as_str);
            let ports = [open(host)?, open(&file.site.deploy.satellite)?];
            Ok(Opened { ports, unit: Unit::Frame, scope: None, mtu })
        }
        Place::Host => {
            let network = HostPort::open(&file.site.deploy.satellite)?;
            let host = VethPort::open(&file.site.deploy.tun_satellite, VETH_MAC)?;
            let ports: [Box<dyn PacketPort>; 2] = [Box::new(host), Box::new(network)];
            Ok(Opened { ports, unit: Unit::Packet, scope: Some(Scope::new(file.site.policy.clone())), mtu })
        }
        Place::Routed => {
            let ports = made.try_into().map_err(|_| Error::Path("it needs two ports".to_owned()))?;
            Ok(Opened { ports, unit: Unit::Packet, scope: None, mtu })
        }
    }
}

/// Opens the ports of an agent that has died. Its rules still bring packets to its interfaces; TUN
/// interfaces, which vanished with it, are made again.
pub(super) fn reopen(file: &AgentFile) -> Result<Opened, Error> {
    let mut plan = plan(file, &Inherited::default());
    if file.place == Place::Host {
        plan.steps.clear();
    }
    plan.steps.retain(|step| match step {
        Step::Rule(_) | Step::Nft { .. } => false,
        Step::Setting { was, .. } => was.is_none(),
        _ => true,
    });
    open(file, &plan)
}

/// The changes for `file` on this machine.
pub(super) fn plan(file: &AgentFile, inherited: &Inherited) -> Plan {
    let mtu = mtu(file).unwrap_or([USUAL_MTU as u16; 2]);
    let mut plan = match file.place {
        Place::Host => {
            let datagrams = file.datagrams.as_ref().map(|rules| &rules.policy);
            Plan::on_host(&file.site, datagrams, u32::from(mtu[1]))
        }
        Place::Inline | Place::Routed => Plan::new(&file.site, u32::from(mtu[0].max(mtu[1]))),
    };
    if file.method == Method::Kernel {
        plan.steps.splice(..0, guard::steps(file, inherited));
    }
    plan
}

/// The MTUs towards the host and towards the network.
fn mtu(file: &AgentFile) -> Result<[u16; 2], Error> {
    let mut netlink = Netlink::open()?;
    let mut least = |names: &[String]| {
        let all = names.iter().filter_map(|name| netlink.mtu(name).ok().flatten());
        all.min().unwrap_or(USUAL_MTU).clamp(u32::from(LEAST_MTU), 65_535) as u16
    };
    let network = least(std::slice::from_ref(&file.site.deploy.satellite));
    // on the host itself, its own TCP uses the size of the network
    let host = if file.place == Place::Host { network } else { least(&file.site.deploy.lan) };
    Ok([host, network])
}
