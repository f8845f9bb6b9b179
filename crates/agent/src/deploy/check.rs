//! Checks whether an agent can run on this machine, before anything is changed.

use super::guard::{self, Inherited};
use super::ports;
use super::session::{Session, is_running};
use crate::kernel::tagger_config;
use bentpipe_accelerate::deploy::{self, check_host, check_site};
use bentpipe_scenario::agent_file::{AgentFile, Method, Place};
use bentpipe_service::{Finding, Registry};
use std::path::Path;

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Check {
    /// How the agent would act for the host.
    pub method: String,
    /// What would go through it, what would be changed, and findings.
    pub site: deploy::Check,
}

/// Runs all checks without changing anything.
pub fn check(file: &AgentFile, registry: &Registry) -> Check {
    let name = &file.site.deploy.name;
    let is_dead = |session: &Session| !is_running(registry, name) && session.base.undo.is_here();
    let dead =
        registry.entry(name).filter(|dead: &Session| dead.base.process.is_of_this_boot() && is_dead(dead));
    let inherited = dead.map_or_else(Inherited::default, |dead| Inherited::of(registry, &dead));
    check_after(file, &inherited, leftovers(registry, name))
}

/// The same for an agent that takes over what an earlier one has left; `left` is a word of what else it left.
pub(super) fn check_after(file: &AgentFile, inherited: &Inherited, left: Option<Finding>) -> Check {
    let has_left = left.is_some() || !inherited.is_empty();
    let mut site = match file.place {
        Place::Host => check_host(&file.site, ports::plan(file, inherited), left),
        Place::Inline | Place::Routed => check_site(&file.site, left),
    };
    site.findings = site.findings.into_iter().map(of_agent).chain(socket(file)).collect();
    if file.method != Method::Kernel && !inherited.is_empty() {
        site.findings.push(guard::other_method(inherited));
    }
    if file.method == Method::Kernel {
        site.findings.extend(guard::findings(has_left));
        // the MTU of the interface is known later
        let unfit = tagger_config(file, ports::LEAST_MTU).err();
        site.findings.extend(unfit.map(|why| Finding::failure("rules", why.to_string())));
    }
    site.intercepted = intercepted(file);
    let method = match file.method {
        Method::Split => {
            "split: the agent ends the host's connections and goes on with its own; no socket limits of the \
             host are raised"
        }
        Method::Kernel => {
            "kernel: the agent signals in the packets of the host's own TCP, which sends at the granted rates"
        }
    };
    Check { method: method.to_owned(), site }
}

fn intercepted(file: &AgentFile) -> Vec<String> {
    let deploy = &file.site.deploy;
    let (host, network) = (deploy.lan.join(", "), &deploy.satellite);
    let datagrams = file.datagrams.as_ref().filter(|_| file.place == Place::Host);
    let datagrams = datagrams.map(|_| format!("UDP of this host over {network} that a rule names"));
    let packets = match file.place {
        Place::Inline => vec![format!("every frame between {host} and {network}; what no rule takes passes")],
        Place::Routed => {
            vec![format!("TCP that a rule could take and that is forwarded between {host} and {network}")]
        }
        Place::Host => vec![format!("TCP of this host over {network} that a rule could take")],
    };
    packets.into_iter().chain(datagrams).collect()
}

/// The machine is checked as for a gateway; the commands to type are the agent's.
fn of_agent(mut finding: Finding) -> Finding {
    for mend in &mut finding.mends {
        *mend = mend.replace("bentpipe gateway", "bentpipe agent");
    }
    finding
}

/// An agent of this name that was killed or is running.
fn leftovers(registry: &Registry, name: &str) -> Option<Finding> {
    let session: Session = registry.entry(name)?;
    let title = format!("agent `{name}`");
    if is_running(registry, name) {
        let pid = session.base.process.pid;
        let found = format!("it is running (process {pid})");
        return Some(Finding::failure(title, found).with_help("sudo bentpipe agent undo"));
    }
    let found = "it was killed and left rules behind; the next run removes them first";
    Some(Finding::warning(title, found).with_help("sudo bentpipe agent undo"))
}

fn socket(file: &AgentFile) -> Option<Finding> {
    let path = file.site.status.socket.as_ref()?;
    let folder = Path::new(path).parent().filter(|folder| !folder.is_dir())?;
    let mend = format!("sudo mkdir -p {}", folder.display());
    Some(Finding::failure(format!("socket {path}"), "there is no such folder").with_help(mend))
}
