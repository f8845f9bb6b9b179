//! Transfers during which the gateway is killed, killed and restarted, or stopped normally.
//!
//! As in TCP-SuperCharger, the receiver opens each connection. It checks every byte and the end of the
//! stream. The sender uses CUBIC.

use super::routed::Routed;
use crate::Outcome;
use lab::chain::{SENDER, kill};
use lab::passage::Host;
use lab::streams::{STACK, TransferRecord, endpoint, listen, receive, serve};
use lab::{Running, join};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// Time until a restart: as `RestartSec` of the systemd unit.
const RESTART: Duration = Duration::from_secs(1);

/// What happens to the gateway, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayEvent {
    Absent,
    /// `kill -9`.
    Killed,
    /// `kill -9`, and another gateway is started a second later.
    Restarted,
    Stopped,
}

/// A trial: the transfers, and what happens to the gateway.
pub(super) struct Trial<'a> {
    /// Rate of the hop, with a unit.
    pub rate: &'a str,
    pub transfers: u32,
    pub bytes: u64,
    pub v6: bool,
    pub event: GatewayEvent,
    /// When it happens, s after the first opening.
    pub at: f64,
}

pub(super) struct TrialResult {
    /// Transfers in the order of their numbers.
    pub transfers: Vec<TransferRecord>,
    /// Transfers that had ended before the event.
    pub ended_before: u32,
    /// When the new gateway was running, s after the first opening.
    pub restarted_at: Option<f64>,
    /// Most connections that the new gateway took over and accelerated.
    pub accelerated_again: usize,
    /// The largest window that it advertised to one of their senders.
    pub largest_window: u64,
}

pub(super) fn run(place: &Routed, trial: &Trial<'_>) -> Outcome<TrialResult> {
    let gateway = (trial.event != GatewayEvent::Absent).then(|| place.gateway(trial.rate)).transpose()?;
    let at = endpoint(SENDER[usize::from(trial.v6)], 0)?;
    let listener = place.at(Host::Sender, || listen(at, "cubic"))?;
    let to = listener.local_addr().map_err(|e| e.to_string())?;
    let (ended, since) = (AtomicU32::new(0), Instant::now());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(&listener, trial.transfers as usize, &over));
        let courses = scope.spawn(|| place.at(Host::Receiver, || receive_all(trial, to, &ended)));
        let met = apply_event(place, trial, gateway, &ended, since);
        let courses = join(courses);
        over.store(true, Ordering::Release);
        join(served)?;
        Ok(TrialResult { transfers: courses?, ..met? })
    })
}

fn receive_all(trial: &Trial<'_>, to: SocketAddr, ended: &AtomicU32) -> Outcome<Vec<TransferRecord>> {
    thread::scope(|scope| {
        let one = |number| {
            let receive = move || {
                let course = receive(to, number, trial.bytes).map_err(|e| format!("transfer {number} {e}"));
                ended.fetch_add(1, Ordering::Relaxed);
                course
            };
            // threads inherit the namespace
            Builder::new().stack_size(STACK).spawn_scoped(scope, receive).map_err(|e| e.to_string())
        };
        let threads: Vec<_> = (0..trial.transfers).map(one).collect::<Outcome<_>>()?;
        threads.into_iter().map(join).collect()
    })
}

/// Kills, restarts or stops the gateway as the trial says, and stops it when all transfers have ended.
fn apply_event(
    place: &Routed,
    trial: &Trial<'_>,
    mut gateway: Option<Running>,
    ended: &AtomicU32,
    since: Instant,
) -> Outcome<TrialResult> {
    let all_over = || ended.load(Ordering::Relaxed) == trial.transfers;
    let wait = |until: Duration| {
        while since.elapsed() < until && !all_over() {
            thread::sleep(Duration::from_millis(5));
        }
    };
    wait(Duration::from_secs_f64(trial.at));
    let ended_before = ended.load(Ordering::Relaxed);
    let mut met = TrialResult {
        transfers: Vec::new(),
        ended_before,
        restarted_at: None,
        accelerated_again: 0,
        largest_window: 0,
    };
    match &mut gateway {
        Some(gateway) if trial.event == GatewayEvent::Stopped => gateway.signal(Signal::TERM),
        Some(gateway) => kill(gateway)?,
        None => {}
    }
    if trial.event == GatewayEvent::Restarted {
        wait(since.elapsed() + RESTART);
        let new = place.gateway(trial.rate)?;
        met.restarted_at = Some(since.elapsed().as_secs_f64());
        while !all_over() {
            let flows = place.flows()?;
            let again: Vec<_> = flows.iter().filter(|f| is_accelerated_again(f)).collect();
            met.accelerated_again = met.accelerated_again.max(again.len());
            met.largest_window =
                again.iter().filter_map(|f| f["shown_bytes"].as_u64()).fold(met.largest_window, u64::max);
            wait(since.elapsed() + Duration::from_secs(1));
        }
        gateway = Some(new);
    }
    wait(Duration::MAX);
    drop(gateway);
    Ok(met)
}

/// True for a flow that was not seen opening, is accelerated, and had data acknowledged.
fn is_accelerated_again(flow: &serde_json::Value) -> bool {
    flow["why_passing"].is_null() && flow["opened_from"].is_null() && flow["acked_bytes"].as_u64() > Some(0)
}
