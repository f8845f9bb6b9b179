//! An upgrade of the package while a gateway accelerates connections: none breaks, all are accelerated again.

use super::machine::Machine;
use crate::Outcome;
use lab::chain::{Chain, SENDER};
use lab::join;
use lab::passage::Host;
use lab::streams::{STACK, TransferRecord, endpoint, listen, receive, serve};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

pub(super) const CONNECTIONS: u32 = 100;
/// Bytes of each: together they take the link of [`super::deb`] three quarters of a minute.
const BYTES: u64 = 3_000_000;
/// Time for all to open.
const OPENING: Duration = Duration::from_secs(20);
/// Time until all must be accelerated again.
pub(super) const AGAIN_S: f64 = 15.0;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// What an upgrade did to the connections.
pub(super) struct Upgraded {
    /// Transfers with every byte right and a clean end, and all of them.
    pub intact: (usize, usize),
    /// Accelerated just before.
    pub before: usize,
    /// Most that the new gateway took over and accelerated at once, and when, s after the stop of the old one
    /// began.
    pub again: (usize, f64),
    /// Whether another process runs the gateway now.
    pub replaced: bool,
}

/// Installs the package at `new` while the connections transfer.
pub(super) fn upgrade(chain: &Chain, machine: &Machine<'_>, new: &str) -> Outcome<Upgraded> {
    let at = endpoint(SENDER[0], 0)?;
    let listener = chain.at(Host::Sender, || listen(at, "cubic"))?;
    let to = listener.local_addr().map_err(|e| e.to_string())?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(&listener, CONNECTIONS as usize, &over));
        let received = scope.spawn(|| chain.at(Host::Receiver, || receive_all(to)));
        let watched = watch(machine, new);
        let received = join(received);
        over.store(true, Ordering::Release);
        join(served)?;
        let all: Vec<Outcome<TransferRecord>> = received?;
        if let Some(Err(why)) = all.iter().find(|one| one.is_err()) {
            return Err(why.clone());
        }
        let intact = all.iter().flatten().filter(|t| t.intact && t.bytes == BYTES).count();
        Ok(Upgraded { intact: (intact, all.len()), ..watched? })
    })
}

fn receive_all(to: SocketAddr) -> Outcome<Vec<Outcome<TransferRecord>>> {
    thread::scope(|scope| {
        let one = |number| {
            let receive =
                move || Ok(receive(to, number, BYTES).map_err(|e| format!("transfer {number} {e}")));
            // threads inherit the namespace
            Builder::new().stack_size(STACK).spawn_scoped(scope, receive).map_err(|e| e.to_string())
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(one).collect::<Outcome<_>>()?;
        threads.into_iter().map(join).collect()
    })
}

/// Waits until all connections are accelerated, upgrades, and waits until they are so again.
fn watch(machine: &Machine<'_>, new: &str) -> Outcome<Upgraded> {
    let all = CONNECTIONS as usize;
    let begin = Instant::now();
    let mut before = 0;
    while before < all && begin.elapsed() < OPENING {
        thread::sleep(LOOK);
        before = accelerated(machine, |_| true)?;
    }
    let old = process(machine)?;
    let (most, at_s) = thread::scope(|scope| {
        let install = format!("DEBIAN_FRONTEND=noninteractive dpkg -i {new}");
        let installed = scope.spawn(move || machine.run(&install));
        let taken_over = wait_for_all(machine);
        join(installed).and(taken_over)
    })?;
    // systemd's clock and that of /proc/uptime begin with the machine
    let stopped_us = property(machine, "ActiveExitTimestampMonotonic")?;
    let stopped_s = stopped_us.parse::<f64>().map_err(|e| format!("the time of the stop: {e}"))? / 1e6;
    let replaced = process(machine)? != old;
    Ok(Upgraded { intact: (0, 0), before, again: (most, at_s - stopped_s), replaced })
}

/// Waits until the new gateway has taken over and accelerates all connections; returns the most at once,
/// and when, s since the machine's start.
fn wait_for_all(machine: &Machine<'_>) -> Outcome<(usize, f64)> {
    let (mut most, start) = ((0, 0.0), Instant::now());
    while most.0 < CONNECTIONS as usize && start.elapsed().as_secs_f64() < 4.0 * AGAIN_S {
        // the SYNs of connections that were taken over were not seen; for a moment no gateway answers
        let now = accelerated(machine, |flow| flow["opened_from"].is_null()).unwrap_or_default();
        if now > most.0 {
            most = (now, uptime_s()?);
        }
        thread::sleep(LOOK);
    }
    Ok(most)
}

/// Number of accelerated connections that pass data and are `wanted`.
fn accelerated(machine: &Machine<'_>, wanted: fn(&Value) -> bool) -> Outcome<usize> {
    let text = machine.run("bentpipe gateway flows --json --most 1000")?;
    let page: Value = serde_json::from_str(&text).map_err(|e| format!("gateway flows: {e}"))?;
    let flows = page["flows"].as_array().into_iter().flatten();
    let counts = |flow: &&Value| {
        flow["why_passing"].is_null() && flow["acked_bytes"].as_u64() > Some(0) && wanted(flow)
    };
    Ok(flows.filter(counts).count())
}

/// The process of the gateway.
pub(super) fn process(machine: &Machine<'_>) -> Outcome<String> {
    property(machine, "MainPID")
}

/// What systemd knows of the gateway's unit.
fn property(machine: &Machine<'_>, name: &str) -> Outcome<String> {
    let value = machine.run(&format!("systemctl show --property={name} --value bentpipe-gateway"))?;
    Ok(value.trim().to_owned())
}

fn uptime_s() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/uptime").map_err(|e| format!("/proc/uptime: {e}"))?;
    text.split(' ').next().and_then(|s| s.parse().ok()).ok_or_else(|| "/proc/uptime: no number".to_owned())
}
