//! Follows the TCP connections of programs: polls the kernel ten times a second in each host's namespace.

use super::connections::{Connections, PollResult};
use crate::flows::FlowResults;
use crate::session::SessionHost;
use bentpipe_base::Duration;
use bentpipe_live::control::FlowState;
use bentpipe_os::Clock;
use bentpipe_os::diag::{ClosedConnections, Diag};
use bentpipe_os::namespace::in_network;
use bentpipe_scenario::Scenario;
use bentpipe_sim::build::lowest_rate;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
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

impl Watch {
    /// Starts polling hosts in their network namespaces; `clock` is the run's.
    pub(crate) fn start(watched: &[SessionHost], clock: Clock) -> io::Result<Self> {
        let (mut hosts, mut lookers) = (Vec::new(), Vec::new());
        for SessionHost { entry, node, network, .. } in watched {
            // without events of closed sockets, what happens between two polls is missed
            let (diag, endings) = in_network(network, || (Diag::open(), ClosedConnections::open().ok()))?;
            lookers.push((diag?, endings));
            hosts.push((*node, entry.clone()));
        }
        let mut known = Connections::new(hosts, EVERY, clock.now());
        let lately = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = channel();
        let shared = Arc::clone(&lately);
        let watch = move || loop {
            let wait = stopped.recv_timeout(time::Duration::from_nanos(EVERY.0));
            let found: Vec<PollResult> = lookers.iter_mut().map(look).collect();
            known.process_poll(clock.now(), &found);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = known.states();
            if wait != Err(RecvTimeoutError::Timeout) {
                return known;
            }
        };
        let thread = Builder::new().name("bentpipe-watch".to_owned()).spawn(watch)?;
        Ok(Self { thread, stop, lately, clock })
    }

    /// The connections at the last poll, the busiest first.
    pub(crate) fn lately(&self) -> Vec<FlowState> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Polls a last time, and stops. `gate` is the index of the host behind which other networks lie.
    pub(crate) fn stop(self, scenario: &Scenario, gate: usize) -> FlowResults {
        let _ = self.stop.send(());
        let Ok(known) = self.thread.join() else {
            let fault = "the connections were not followed to the end: an internal check failed";
            return FlowResults { faults: vec![fault.to_owned()], ..FlowResults::default() };
        };
        let path = |from: Option<usize>, to: Option<usize>| {
            lowest_rate(scenario, from.unwrap_or(gate), to.unwrap_or(gate))
        };
        known.finish(self.clock.now(), &path)
    }
}

fn look((diag, endings): &mut (Diag, Option<ClosedConnections>)) -> PollResult {
    // a failed poll finds nothing new; the next one may
    let connections = diag.connections().unwrap_or_default();
    let ended = endings.as_mut().map(|e| e.take().unwrap_or_default()).unwrap_or_default();
    PollResult { connections, ended }
}
