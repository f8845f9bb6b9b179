//! Carries out a plan.

use super::error::Error;
use super::plan::{Plan, Step, VETH_MAC, VETH_PEER_MAC};
use bentpipe_os::netlink::{Netlink, VethPair};
use bentpipe_os::{PacketPort, TunPort, namespace, nft, sysctl};
use std::os::fd::AsFd as _;

/// Carries out all steps in the calling thread's network namespace; returns the opened ports, LAN first.
/// After an error the caller must undo the earlier steps.
///
/// # Errors
/// The step that failed.
pub fn apply(plan: &Plan) -> Result<Vec<Box<dyn PacketPort>>, Error> {
    let mut netlink = Netlink::open()?;
    let mut ports: Vec<Box<dyn PacketPort>> = Vec::new();
    for step in &plan.steps {
        carry_out(step, &mut netlink, &mut ports).map_err(|error| {
            // the command, without the script that may follow it
            let step = step.to_string().lines().next().unwrap_or_default().to_owned();
            Error::Step { step, reason: error.to_string() }
        })?;
    }
    Ok(ports)
}

fn carry_out(
    step: &Step,
    netlink: &mut Netlink,
    ports: &mut Vec<Box<dyn PacketPort>>,
) -> Result<(), Box<dyn core::error::Error>> {
    match step {
        Step::Tun(name) => ports.push(Box::new(TunPort::create(name)?)),
        Step::Setting { name, value, was: Some(_) } => sysctl::write(name, value)?,
        // not every kernel has these
        Step::Setting { name, value, was: None } => sysctl::write_if_there(name, value).map(drop)?,
        Step::Veth { name, peer, mtu } => netlink.add_veth(&VethPair {
            name,
            mac: VETH_MAC,
            peer,
            peer_mac: VETH_PEER_MAC,
            peer_network: namespace::network()?.as_fd(),
            mtu: *mtu,
        })?,
        Step::Mtu(name, mtu) => netlink.set_mtu(name, *mtu)?,
        Step::Up(name) => netlink.set_up(name)?,
        Step::Route { table, interface, v6 } => netlink.add_default_route(interface, *table, *v6)?,
        Step::Rule(rule) => netlink.add_rule(*rule)?,
        Step::Nft { script, .. } => nft::run(script)?,
    }
    Ok(())
}
