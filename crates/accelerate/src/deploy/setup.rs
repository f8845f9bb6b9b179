//! Carries out a plan.

use super::error::Error;
use super::plan::{Plan, Step};
use bentpipe_os::netlink::Netlink;
use bentpipe_os::{PacketPort, TunPort, nft, sysctl};

/// Carries out all steps in the calling thread's network namespace; returns the opened ports, LAN first.
///
/// # Errors
/// The first step that fails. The caller must undo the earlier ones.
pub(super) fn apply(plan: &Plan) -> Result<Vec<Box<dyn PacketPort>>, Error> {
    let mut netlink = Netlink::open()?;
    let mut ports: Vec<Box<dyn PacketPort>> = Vec::new();
    for step in &plan.steps {
        let failed = |reason: String| Error::Step { step: first_line(step), reason };
        match step {
            Step::Tun(name) => {
                let port = TunPort::create(name).map_err(|e| failed(e.to_string()))?;
                ports.push(Box::new(port));
            }
            Step::Own { name, value } => {
                sysctl::write_if_there(name, value).map_err(|e| failed(e.to_string()))?;
            }
            Step::Setting { name, value, .. } => {
                sysctl::write(name, value).map_err(|e| failed(e.to_string()))?;
            }
            Step::Mtu(name, mtu) => netlink.set_mtu(name, *mtu).map_err(|e| failed(e.to_string()))?,
            Step::Up(name) => netlink.set_up(name).map_err(|e| failed(e.to_string()))?,
            Step::Route { table, interface, v6 } => {
                netlink.add_default_route(interface, *table, *v6).map_err(|e| failed(e.to_string()))?;
            }
            Step::Rule(rule) => netlink.add_rule(*rule).map_err(|e| failed(e.to_string()))?,
            Step::Nft { script, .. } => nft::run(script).map_err(failed)?,
        }
    }
    Ok(ports)
}

/// The command of a step, without the script that may follow it.
fn first_line(step: &Step) -> String {
    step.to_string().lines().next().unwrap_or_default().to_owned()
}
