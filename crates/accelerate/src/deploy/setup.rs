//! Carries out a plan, and takes it back.

use super::error::Error;
use super::plan::{Plan, Step};
use bentpipe_os::netlink::{MarkRule, Netlink};
use bentpipe_os::{PacketPort, TunPort, nft, sysctl};

/// Carries out all steps in the calling thread's network namespace; gives the ports that were opened, LAN first.
///
/// # Errors
/// The first step that fails. What was done before has to be taken back by the caller.
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

/// What has to be taken back; the rest goes with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Debts {
    /// nftables table.
    pub(super) table: Option<String>,
    /// Routing rules.
    pub(super) rules: Vec<MarkRule>,
    /// Settings and what they were.
    pub(super) settings: Vec<(String, String)>,
}

impl Debts {
    /// Of a plan.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut debts = Self::default();
        for step in &plan.steps {
            match step {
                Step::Nft { table, .. } => debts.table = Some(table.clone()),
                Step::Rule(rule) => debts.rules.push(*rule),
                Step::Setting { name, was, .. } => debts.settings.push((name.clone(), was.clone())),
                _ => {}
            }
        }
        debts
    }

    /// Takes everything back, last things first, in the calling thread's network namespace; says what, a line each. What is not there any more is no fault.
    pub(super) fn pay(&self) -> Vec<String> {
        let mut done = Vec::new();
        if let Some(table) = &self.table
            && nft::run(&format!("delete table inet {table}\n")).is_ok()
        {
            done.push(format!("nftables table inet {table} removed"));
        }
        for (name, was) in self.settings.iter().rev() {
            if sysctl::read(name).is_ok_and(|now| now != *was)
                && matches!(sysctl::write_if_there(name, was), Ok(true))
            {
                done.push(format!("setting {name} is {was} again"));
            }
        }
        if let Ok(mut netlink) = Netlink::open() {
            for rule in self.rules.iter().rev() {
                if netlink.delete_rule(*rule).is_ok() {
                    let family = if rule.v6 { "IPv6" } else { "IPv4" };
                    done.push(format!("{family} routing rule for mark {:#x} removed", rule.mark));
                }
            }
        }
        done
    }
}
