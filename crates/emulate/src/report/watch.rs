//! Follows the TCP connections of programs: polls the kernel ten times a second in each host's namespace.

use super::connections::{Connections, Host, PollResult};
use crate::flows::FlowResults;
use bentpipe_base::Duration;
use bentpipe_live::control::FlowState;
use bentpipe_os::Clock;
use bentpipe_os::diag::{ClosedConnections, Diag};
use bentpipe_os::namespace::in_network;
use bentpipe_scenario::Scenario;
use bentpipe_sim::build::lowest_rate;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time;

/// Polling interval.
const EVERY: Duration = Duration::from_millis(100);

/// Polls connections until it is stopped.
#[derive(Debug)]
pub(crate) struct Watch {
    thread: JoinHandle<Connections>,
    stop: Sender<()>,
    lately: Arc<Mutex<Vec<FlowState>>>,
    clock: Clock,
}

/// The queries at a host.
type HostQueries = (Diag, Option<ClosedConnections>);

impl Watch {
    /// Starts polling hosts in their network namespaces; `clock` is the run's.
    pub(crate) fn start<'a>(
        watched: impl Iterator<Item = (Host, BorrowedFd<'a>)>,
        clock: Clock,
    ) -> io::Result<Self> {
        let (mut hosts, mut lookers) = (Vec::new(), Vec::new());
        for (host, network) in watched {
            // without events of closed sockets, what happens between two polls is missed
            let (diag, endings) = in_network(network, || (Diag::open(), ClosedConnections::open().ok()))?;
            lookers.push((diag?, endings));
            hosts.push(host);
        }
        let known = Connections::new(hosts, EVERY, clock.now());
        let lately = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = channel();
        let shared = Arc::clone(&lately);
        let thread = Builder::new()
            .name("bentpipe-watch".to_owned())
            .spawn(move || watch(known, lookers, clock, (&stopped, &shared)))?;
        Ok(Self { thread, stop, lately, clock })
    }

    /// The connections at the last poll, the busiest first.
    pub(crate) fn lately(&self) -> Vec<FlowState> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Polls a last time, and stops. `gate` is the index of the host behind which other networks lie.
    pub(crate) fn stop(self, scenario: &Scenario, gate: Option<usize>) -> FlowResults {
        let _ = self.stop.send(());
        let Ok(known) = self.thread.join() else {
            let faults =
                vec!["the connections were not followed to the end: an internal check failed".to_owned()];
            return FlowResults { faults, ..FlowResults::default() };
        };
        let path = |from: Option<usize>, to: Option<usize>| {
            from.or(gate).zip(to.or(gate)).map_or(0, |(from, to)| lowest_rate(scenario, from, to))
        };
        known.finish(self.clock.now(), &path)
    }
}

fn watch(
    mut known: Connections,
    mut lookers: Vec<HostQueries>,
    clock: Clock,
    (stopped, lately): (&Receiver<()>, &Mutex<Vec<FlowState>>),
) -> Connections {
    loop {
        let wait = stopped.recv_timeout(time::Duration::from_nanos(EVERY.0));
        let found: Vec<PollResult> = lookers.iter_mut().map(look).collect();
        known.look(clock.now(), &found);
        *lately.lock().unwrap_or_else(PoisonError::into_inner) = known.states();
        if wait != Err(RecvTimeoutError::Timeout) {
            return known;
        }
    }
}

fn look((diag, endings): &mut HostQueries) -> PollResult {
    // a failed poll finds nothing new; the next one may
    let connections = diag.connections().unwrap_or_default();
    let ended = endings.as_mut().map(|e| e.take().unwrap_or_default()).unwrap_or_default();
    PollResult { connections, ended }
}
