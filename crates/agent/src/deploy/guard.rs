//! What keeps structures from the host's TCP while no agent removes them, and for how long it must stay.
//!
//! The table for nftables stands from before the first flow until the last socket of a flow that was
//! negotiated is gone, whatever becomes of the agent. Its watcher looks at the sockets when the agent has
//! ended; `undo` does not wait, and resets them. An agent that is started meanwhile takes over both: the
//! peers that the table names, and the flows.

use super::Error;
use super::session::{self, Session};
use super::stop::{PATIENCE, STEP};
use crate::kernel::{open_sockets, peers, reset_sockets};
use crate::path::FlowFile;
use crate::split::{FlowKey, FlowLog as _, Link};
use bentpipe_accelerate::deploy::Step;
use bentpipe_base::{Prefix, Size};
use bentpipe_kernel_rate::guard;
use bentpipe_os::process::signal;
use bentpipe_os::{nft, sysctl};
use bentpipe_scenario::agent_file::{AgentFile, Method};
use bentpipe_service::{Entry as _, Finding, Process, Registry, wait_until};
use core::net::IpAddr;
use rustix::process::Signal;

/// What an earlier agent of the name has left: peers that its table names, its flows that are open, and the
/// watcher that keeps the table.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    peers: Vec<Prefix>,
    flows: Vec<FlowKey>,
    watcher: Option<Process>,
}

impl Inherited {
    /// What an agent that is gone has left. Changes nothing: the next agent may be refused.
    pub(super) fn of(registry: &Registry, dead: &Session) -> Self {
        if dead.guard.is_empty() {
            return Self::default();
        }
        let known = flows(registry, dead);
        let open = open_sockets(&known).map(|all| all.iter().map(crate::kernel::key).collect());
        // where it cannot be seen which of them are open, all may be
        let flows: Vec<FlowKey> = open.unwrap_or(known);
        if flows.is_empty() {
            return Self::default();
        }
        let named = dead.guard.iter().filter_map(|(address, length)| Prefix::new(*address, *length));
        Self { peers: named.collect(), flows, watcher: dead.watcher.clone() }
    }

    /// True if nothing was left.
    pub(super) const fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The watcher that keeps the table until another does.
    pub(super) const fn watcher(&self) -> Option<&Process> {
        self.watcher.as_ref()
    }

    /// Ends that watcher, which leaves the table.
    pub(super) fn take_over(&self) {
        stop_watcher(self.watcher());
    }

    /// The flow file of the next agent, for at most `most` flows of its own. Until it is whole, the earlier
    /// agent's is there.
    pub(super) fn flow_file(&self, registry: &Registry, name: &str, most: usize) -> Result<FlowFile, Error> {
        let failed = |e| Error::system("the flow file", e);
        let draft = registry.file(name, session::FLOWS_DRAFT);
        let mut file = FlowFile::create(&draft, most + self.flows.len()).map_err(failed)?;
        self.flows.iter().for_each(|key| file.opened(key, &[Link::default(); 2]));
        std::fs::rename(&draft, session::flow_file(registry, name)).map_err(failed)?;
        Ok(file)
    }

    /// The peers that the next agent's table must name.
    fn peers(&self, file: &AgentFile) -> Vec<Prefix> {
        let own = peers(&file.site.policy);
        let others = self.peers.iter().filter(|old| !own.iter().any(|own| within(**old, *own)));
        let mut all: Vec<Prefix> = others.copied().collect();
        all.extend(own.iter().filter(|own| !self.peers.iter().any(|old| within(**own, *old) && old != *own)));
        all
    }
}

/// True if all addresses of `inner` are in `outer`.
fn within(inner: Prefix, outer: Prefix) -> bool {
    outer.length() <= inner.length() && outer.contains(inner.address())
}

/// Removes what an agent has left of whose flows none is open.
pub(super) fn clear(dead: &Session) {
    if !dead.guard.is_empty() {
        stop_watcher(dead.watcher.as_ref());
        remove();
    }
}

fn stop_watcher(watcher: Option<&Process>) {
    let is_gone = || watcher.is_none_or(|watcher| !watcher.is_alive());
    if let Some(watcher) = watcher.filter(|_| !is_gone()) {
        signal(watcher.pid, Signal::TERM);
        wait_until(PATIENCE, STEP, is_gone);
    }
}

/// True if sockets of an agent's flows are open, or may be.
pub(super) fn is_needed(registry: &Registry, session: &Session) -> bool {
    !session.guard.is_empty() && !open_sockets(&flows(registry, session)).is_ok_and(|open| open.is_empty())
}

/// The flows of an agent that has ended.
pub(super) fn flows(registry: &Registry, session: &Session) -> Vec<FlowKey> {
    let read = FlowFile::read(&session::flow_file(registry, session.name()));
    read.unwrap_or_default().into_iter().map(|(key, _)| key).collect()
}

/// Prefixes of the guard of an agent for `file`, for its session: those of IPv4, which alone needs one.
pub(super) fn named(file: &AgentFile, inherited: &Inherited) -> Vec<(IpAddr, u8)> {
    if file.method == Method::Split {
        return Vec::new();
    }
    let all = inherited.peers(file).into_iter().filter(|prefix| prefix.address().is_ipv4());
    all.map(|prefix| (prefix.address(), prefix.length())).collect()
}

/// The steps before all others: the table, and higher limits of sockets.
pub(super) fn steps(file: &AgentFile, inherited: &Inherited) -> Vec<Step> {
    // without a guard of its own it leaves that of another agent alone
    let table = (!named(file, inherited).is_empty())
        .then(|| Step::Nft { table: guard::TABLE.to_owned(), script: guard::script(&inherited.peers(file)) });
    let [initial, most] = file.windows.map(|window| window.0.saturating_mul(2));
    let limits = [("net/ipv4/tcp_rmem", Some(initial), most), ("net/ipv4/tcp_wmem", None, most)];
    let raised = limits.into_iter().filter_map(|(name, initial, most)| raise(name, initial, most));
    table.into_iter().chain(raised).collect()
}

/// Raises the second and third value of a setting; `None` if they are high enough. The kernel counts whole
/// buffers, of which about half is data.
fn raise(name: &str, initial: Option<u64>, most: u64) -> Option<Step> {
    let was = sysctl::read(name).ok()?;
    let mut words = was.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (least, usual, top) = (words.next()??, words.next()??, words.next()??);
    let limit = Size(i32::MAX as u64).0;
    let most = top.max(most.min(limit));
    let value = [least, usual.max(initial.unwrap_or(0).min(most)), most];
    let value = value.map(|n| n.to_string()).join("\t");
    (value != was).then(|| Step::Setting { name: name.to_owned(), value, was: Some(was) })
}

/// Removes the guard of an agent that has ended, once its flows are reset; says what was done.
pub(super) fn release(registry: &Registry, session: &Session) -> Result<Vec<String>, Error> {
    if session.guard.is_empty() {
        return Ok(Vec::new());
    }
    stop_watcher(session.watcher.as_ref());
    let mut done = Vec::new();
    let reset = reset_sockets(&flows(registry, session));
    let reset = reset.map_err(|e| Error::system("its connections cannot be reset, so the guard stays", e))?;
    if reset > 0 {
        done.push(format!("{reset} connections that signalled were reset"));
    }
    done.extend(remove());
    Ok(done)
}

/// Removes the table; says so if it was there.
pub(super) fn remove() -> Option<String> {
    nft::list_table(guard::TABLE).ok()?;
    nft::run(&guard::removal()).ok()?;
    Some(format!("nftables table inet {} removed", guard::TABLE))
}

/// Refuses another method while flows of an earlier agent of this name are open, whose guard must stay.
pub(super) fn other_method(inherited: &Inherited) -> Finding {
    let found = format!(
        "{} connections of an earlier agent with the method \"kernel\" are open, and need its table for nftables",
        inherited.flows.len()
    );
    Finding::failure("method", found).with_help("sudo bentpipe agent undo")
}

/// Checks what the method needs; `left` says that an earlier agent of this name has left its table.
pub(super) fn findings(left: bool) -> Vec<Finding> {
    let name = "rates for sockets";
    let mut all = vec![match bentpipe_kernel_rate::KernelRate::check() {
        Ok(()) => Finding::good(name, "this kernel can have a congestion control in BPF"),
        Err(why) => Finding::failure(name, why.to_string()).with_help("or use the method \"split\""),
    }];
    if !left && nft::list_table(guard::TABLE).is_ok() {
        let found = "there already: another agent with the method \"kernel\" is or was here";
        let mend = "one agent can have several rules; `bentpipe agent undo` ends others";
        all.push(Finding::failure(format!("nftables table inet {}", guard::TABLE), found).with_help(mend));
    }
    all
}
