//! `emulate SCENARIO` without a command: runs the scenario's flows over its links in real time, as kernel
//! sockets or, where the kernel cannot, with the engine at both ends; the report is that of a simulated run.

use crate::emulation::start_link;
use crate::error::Error;
use crate::flows::{FlowResults, Flows, HostNamespace, KernelRequirements, kernel_requirements};
use crate::panel::{self, ControlSocket};
use crate::plan::Plan;
use crate::report;
use crate::session::{Session, listen};
use bentpipe_base::Instant;
use bentpipe_live::control::FlowState;
use bentpipe_os::{Clock, tcp};
use bentpipe_report::Report;
use bentpipe_scenario::Scenario;
use bentpipe_service::Signals;
use bentpipe_sim::Record;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// Result of a run.
#[derive(Debug)]
pub struct Measured {
    /// The report.
    pub report: Report,
    /// The course of links and flows.
    pub record: Record,
    /// Files in the requested folder.
    pub files: Vec<PathBuf>,
    /// The signal that ended it early.
    pub interrupted: Option<Signal>,
}

/// Runs the flows. The process must have only one thread. `begun` is called when all is set up; `log` gets a
/// line for each change during the run; `seen` is called once a second with the seconds and the flows.
///
/// # Errors
/// What is missing and how to fix it. Nothing is left behind.
pub fn run(
    plan: &Plan,
    begun: &mut dyn FnMut(),
    log: &mut dyn FnMut(&str),
    seen: &mut dyn FnMut(f64, &[FlowState]),
) -> Result<Measured, Error> {
    let scenario = &plan.scenario;
    // check the kernel's features before anything is created
    let needs = requirements(scenario)?;
    let signals = listen()?;
    let http = panel::listen(plan)?;
    let mut session = Session::open(plan, false)?;
    let mut panel = ControlSocket::open(&session, &plan.title, http)?;
    let flows = Flows::open(scenario, &needs, &places(scenario, &session))?;
    let clock = Clock::start();
    let (link, recording) = start_link(plan, &session, clock, None, true)?;
    begun();
    let (since, delivered) = (Instant::ZERO, BTreeMap::new());
    let mut watch = Watch { signals, interrupted: None, since, delivered, states: Vec::new() };
    let outcome = flows.run(clock, &mut |now, flows| {
        let watched = watch.look(now, flows, seen) && !link.has_ended();
        for line in panel.serve(&link, &mut || watch.states.clone()) {
            log(&line);
        }
        watched
    });
    // links and namespaces are removed even if the flows failed
    let links = link.stop();
    session.end();
    let (flows, links) = (FlowResults { differs: needs.differs, ..outcome? }, links?);
    let (report, record, files) = if let Some(recording) = recording {
        recording.finish(&links, flows)?
    } else {
        let (report, record) = report::assemble(scenario, &links, flows);
        (report, record, Vec::new())
    };
    Ok(Measured { report, record, files, interrupted: watch.interrupted })
}

/// Checks that the flows of a scenario can be run on this machine. Creates nothing.
///
/// # Errors
/// What cannot be run, and how to change it.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    scenario.simulated_only().map_or(Ok(()), |what| Err(Error::SimulatedOnly(what)))?;
    requirements(scenario).map(|_| ())
}

fn requirements(scenario: &Scenario) -> Result<KernelRequirements, Error> {
    let kernel =
        tcp::congestion_controls().map_err(|e| Error::system("the kernel's congestion controls", e))?;
    kernel_requirements(scenario, &kernel)
}

/// Locations of the scenario's nodes; `None` for routers.
fn places<'a>(scenario: &Scenario, session: &'a Session) -> Vec<Option<HostNamespace<'a>>> {
    let mut places = vec![None; scenario.nodes.len()];
    for host in &session.hosts {
        places[host.node] = host.entry.addresses.first().map(|address| HostNamespace {
            network: host.network.as_fd(),
            address: *address,
            v6: host.entry.addresses.iter().copied().find(IpAddr::is_ipv6),
            interface: &host.entry.interface,
        });
    }
    places
}

/// Handles signals and the control socket while the flows run.
struct Watch {
    signals: Signals,
    interrupted: Option<Signal>,
    /// Recent state of the flows, for `bentpipe top`, and since when.
    states: Vec<FlowState>,
    since: Instant,
    /// Bytes that each flow had delivered then.
    delivered: BTreeMap<String, u64>,
}

impl Watch {
    /// Updates the state of the flows once a second, and passes it to `seen`; false if the run must end.
    fn look(&mut self, now: Instant, flows: &Flows, seen: &mut dyn FnMut(f64, &[FlowState])) -> bool {
        let length = now.since(self.since).as_secs_f64();
        if length >= 1.0 {
            self.since = now;
            self.states.clear();
            for (state, delivered) in flows.states() {
                let before = self.delivered.insert(state.name.clone(), delivered).unwrap_or(0);
                let goodput_bps = delivered.saturating_sub(before) as f64 * 8.0 / length;
                self.states.push(FlowState { goodput_bps, ..state });
            }
            seen(now.as_secs_f64(), &self.states);
        }
        let ends = |signal: &Signal| [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(signal);
        self.interrupted = self.signals.take().into_iter().find(ends);
        self.interrupted.is_none()
    }
}
