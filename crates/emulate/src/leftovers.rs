//! Cleans up after sessions: processes of one that ends, everything of one that was killed.

use crate::registry::{self, Entry};
use crate::session::SESSION_VARIABLE;
use crate::uplink;
use bentpipe_base::Duration;
use bentpipe_os::process;
use bentpipe_service::{Registry, wait_until};
use rustix::process::Signal;

/// Time for processes to end after SIGTERM, and again after SIGKILL.
const PATIENCE: Duration = Duration::from_millis(500);
/// Polling interval.
pub(crate) const STEP: Duration = Duration::from_millis(5);

/// Removes what dead sessions left behind; reports each item. Call it with the registry locked.
pub fn clean(registry: &Registry, report: &mut dyn FnMut(String)) {
    for entry in found(registry) {
        if entry.process.is_of_this_boot() && !clean_running(registry, &entry, report) {
            continue;
        }
        registry.remove(&entry.id, &registry::KINDS);
        report(format!("session {}: files removed", entry.id));
    }
    registry::remove_strays(registry);
}

/// Entries of dead sessions, by name.
pub fn found(registry: &Registry) -> Vec<Entry> {
    registry.entries().into_iter().filter(|e: &Entry| !e.process.is_alive()).collect()
}

/// Cleans up after a session that died since the last boot; false if something is not accessible from here.
fn clean_running(registry: &Registry, entry: &Entry, report: &mut dyn FnMut(String)) -> bool {
    let id = &entry.id;
    end_nested_sessions(registry, id);
    let recorded: Vec<u64> = entry.hosts.iter().filter(|h| h.own).map(|h| h.network).collect();
    let count = end_processes(&networks_of_session(&recorded, id), &mut || ());
    if count > 0 {
        report(format!("session {id}: {count} processes ended"));
    }
    if let Some(connector) = entry.connector.as_ref().filter(|process| process.is_alive()) {
        process::signal(connector.pid, Signal::KILL);
        report(format!("session {id}: its uplink ended"));
    }
    if let Some(uplink) = &entry.uplink {
        if !uplink.is_here() {
            report(format!("session {id}: clean up in the network namespace in which it was started"));
            return false;
        }
        for line in uplink::undo(uplink, registry, id) {
            report(format!("session {id}: {line}"));
        }
    }
    true
}

/// Returns the recorded networks that still belong to the session, possibly more than once. The kernel reuses
/// the inode of a deleted network, so at least one process in it must carry the session's name.
fn networks_of_session(recorded: &[u64], id: &str) -> Vec<u64> {
    process::all()
        .into_iter()
        .filter_map(|pid| Some((pid, process::network_inode(pid).filter(|inode| recorded.contains(inode))?)))
        .filter(|(pid, _)| process::environment(*pid, SESSION_VARIABLE).as_deref() == Some(id))
        .map(|(_, inode)| inode)
        .collect()
}

/// Stops the sessions within this one, and waits for them.
pub(crate) fn end_nested_sessions(registry: &Registry, id: &str) {
    let is_inner = |e: &Entry| e.parent.as_deref() == Some(id) && e.process.is_alive();
    let inner = || registry.entries().into_iter().filter(is_inner);
    let asked: Vec<Entry> = inner().collect();
    for entry in &asked {
        process::signal(entry.process.pid, Signal::TERM);
    }
    if asked.is_empty() || wait_until(PATIENCE + PATIENCE, STEP, || inner().next().is_none()) {
        return;
    }
    for entry in inner() {
        end_nested_sessions(registry, &entry.id);
        process::signal(entry.process.pid, Signal::KILL);
    }
}

/// Ends all processes in these networks; returns their number. `bury` is called meanwhile, to reap zombies.
pub(crate) fn end_processes(networks: &[u64], bury: &mut dyn FnMut()) -> usize {
    let is_inside = |pid: &i32| process::network_inode(*pid).is_some_and(|inode| networks.contains(&inode));
    let inside = || -> Vec<i32> { process::all().into_iter().filter(is_inside).collect() };
    let first = if networks.is_empty() { Vec::new() } else { inside() };
    if first.is_empty() {
        return 0;
    }
    for pid in &first {
        process::signal(*pid, Signal::TERM);
        // a stopped process handles SIGTERM only after SIGCONT
        process::signal(*pid, Signal::CONT);
    }
    let gone = |bury: &mut dyn FnMut()| {
        bury();
        inside().is_empty()
    };
    if !wait_until(PATIENCE, STEP, || gone(bury)) {
        wait_until(PATIENCE, STEP, || {
            for pid in inside() {
                process::signal(pid, Signal::KILL);
            }
            gone(bury)
        });
    }
    first.len()
}
