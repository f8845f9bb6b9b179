//! Follows the TCP connections of programs: polls the kernel ten times a second in each host's namespace.

use super::Flows;
use super::connections::{Connections, Found, Host};
use bentpipe_base::Duration;
use bentpipe_live::control::FlowState;
use bentpipe_os::Clock;
use bentpipe_os::diag::{Diag, Endings};
use bentpipe_os::namespace::in_network;
use bentpipe_scenario::Scenario;
use bentpipe_sim::build::lowest_rate;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time;

/// Polling interval.
const EVERY: Duration = Duration::from_millis(100);

/// A monitored host.
#[derive(Clone, Debug)]
pub struct Seat<'a> {
    /// Its name.
    pub name: String,
    /// Its index among the scenario's nodes.
    pub node: usize,
    /// Its network namespace.
    pub network: BorrowedFd<'a>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// True if all its traffic crosses the link: false for this machine's own network.
    pub own: bool,
}

/// Polls connections until it is stopped.
#[derive(Debug)]
pub struct Watch {
    thread: JoinHandle<Connections>,
    stop: Sender<()>,
    lately: Arc<Mutex<Vec<FlowState>>>,
    clock: Clock,
}

struct Looker {
    host: usize,
    diag: Diag,
    endings: Option<Endings>,
}

impl Watch {
    /// Starts polling; `clock` is the run's.
    ///
    /// # Errors
    /// When the kernel has no sock_diag, or a namespace is gone.
    pub fn start(seats: &[Seat<'_>], clock: Clock) -> io::Result<Self> {
        let mut lookers = Vec::new();
        for (host, seat) in seats.iter().enumerate() {
            // without events of closed sockets, what happens between two polls is missed
            let (diag, endings) = in_network(seat.network, || (Diag::open(), Endings::open().ok()))?;
            lookers.push(Looker { host, diag: diag?, endings });
        }
        let host = |s: &Seat<'_>| {
            let (name, addresses) = (s.name.clone(), s.addresses.clone());
            Host { name, node: s.node, addresses, own: s.own }
        };
        let known = Connections::new(seats.iter().map(host).collect(), EVERY, clock.now());
        let lately = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = channel();
        let shared = Arc::clone(&lately);
        let thread = Builder::new()
            .name("bentpipe-watch".to_owned())
            .spawn(move || watch(known, lookers, clock, (&stopped, &shared)))?;
        Ok(Self { thread, stop, lately, clock })
    }

    /// The connections at the last poll, the busiest first.
    pub fn lately(&self) -> Vec<FlowState> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Polls a last time, and stops. `gate` is the index of the host behind which other networks lie.
    pub fn stop(self, scenario: &Scenario, gate: Option<usize>) -> Flows {
        let _ = self.stop.send(());
        let Ok(known) = self.thread.join() else {
            let faults =
                vec!["the connections were not followed to the end: an internal check failed".to_owned()];
            return Flows { faults, ..Flows::default() };
        };
        let path = |from: Option<usize>, to: Option<usize>| {
            from.or(gate).zip(to.or(gate)).map_or(0, |(from, to)| lowest_rate(scenario, from, to))
        };
        known.finish(self.clock.now(), &path)
    }
}

fn watch(
    mut known: Connections,
    mut lookers: Vec<Looker>,
    clock: Clock,
    (stopped, lately): (&Receiver<()>, &Mutex<Vec<FlowState>>),
) -> Connections {
    loop {
        let wait = stopped.recv_timeout(time::Duration::from_nanos(EVERY.0));
        let found: Vec<Found> = lookers.iter_mut().map(look).collect();
        known.look(clock.now(), &found);
        *lately.lock().unwrap_or_else(PoisonError::into_inner) = known.states();
        if wait != Err(RecvTimeoutError::Timeout) {
            return known;
        }
    }
}

fn look(looker: &mut Looker) -> Found {
    // a failed poll finds nothing new; the next one may
    let connections = looker.diag.connections().unwrap_or_default();
    let ended = looker.endings.as_mut().map(|e| e.take().unwrap_or_default()).unwrap_or_default();
    Found { host: looker.host, connections, ended }
}
