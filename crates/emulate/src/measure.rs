//! `emulate SCENARIO` without a command: runs the scenario's flows as kernel sockets over its links in real
//! time, with the same report as a simulated run.

use crate::emulation::doors;
use crate::error::Error;
use crate::flows::{Flows, HostPlace, Kernel, Progress, needs};
use crate::panel::Panel;
use crate::plan::{Hosts, Plan};
use crate::report::{self, Recording};
use crate::session::{Layout, Session, listen};
use bentpipe_base::Instant;
use bentpipe_live::control::FlowState;
use bentpipe_live::{Running, Setup};
use bentpipe_os::Clock;
use bentpipe_report::Report;
use bentpipe_scenario::Scenario;
use bentpipe_service::Signals;
use bentpipe_sim::Record;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// Result of a run.
#[derive(Debug)]
pub struct Measured {
    /// The report.
    pub report: Report,
    /// Time series; empty if a folder was requested, which then has them.
    pub record: Record,
    /// Files in the requested folder.
    pub files: Vec<PathBuf>,
    /// The signal that ended it early.
    pub interrupted: Option<Signal>,
}

/// Runs it. The process must still have only one thread. `begun` is called when all is set up; `log` gets a
/// line for each change during the run.
///
/// # Errors
/// What is missing and how to fix it. Nothing is left behind.
pub fn run(plan: &Plan, begun: &mut dyn FnMut(), log: &mut dyn FnMut(&str)) -> Result<Measured, Error> {
    run_seen(plan, begun, log, &mut |_, _| ())
}

/// As [`run`]; `seen` is called once a second with the time in seconds and the flows.
///
/// # Errors
/// As [`run`].
pub fn run_seen(
    plan: &Plan,
    begun: &mut dyn FnMut(),
    log: &mut dyn FnMut(&str),
    seen: &mut dyn FnMut(f64, &[FlowState]),
) -> Result<Measured, Error> {
    let scenario = &plan.scenario;
    // check the kernel's features before anything is created
    let needs = needs(scenario, &Kernel::look()?)?;
    let hosts = Hosts::of(scenario);
    let signals = listen()?;
    let mut session = Session::open(&Layout { uplink: false, ..hosts.layout(plan) })?;
    let mut panel = Panel::open(&session.socket_path(), &session.id, &plan.title)?;
    session.wait_until_up()?;
    let flows = Flows::open(scenario, &needs, &places(scenario, &hosts, &session))?;
    let clock = Clock::start();
    let mut recording = plan.out.as_ref().map(|dir| Recording::begin(dir, scenario, clock)).transpose()?;
    let doors = doors(&session, &hosts)?;
    let setup = Setup {
        scenario: scenario.clone(),
        speed: plan.speed,
        doors,
        gate: None,
        clock,
        journal: plan.journal.clone(),
        record: true,
        realtime: plan.realtime,
    };
    let link = Running::start(setup, recording.as_mut().and_then(Recording::take_install))?;
    begun();
    let mut watch = Watch { signals, interrupted: None, states: States::default() };
    let outcome = flows.run(clock, &mut |now| {
        let watched = watch.look(now, seen) && !link.has_ended();
        for line in panel.serve(&link, &mut || watch.states.list()) {
            log(&line);
        }
        watched
    });
    // links and namespaces are removed even if the flows failed
    let links = link.stop();
    session.end();
    let (flows, links) = (outcome?, links?);
    let beside = report::Beside {
        flows: report::Flows {
            reports: flows.flows,
            record: flows.record,
            faults: flows.faults,
            of_scenario: true,
        },
        differs: needs.differs,
    };
    let interrupted = watch.interrupted;
    if let Some(recording) = recording {
        let (report, files) = recording.finish(&links, beside)?;
        return Ok(Measured { report, record: Record::default(), files, interrupted });
    }
    let (report, record) = report::assemble(scenario, &links, beside);
    Ok(Measured { report, record, files: Vec::new(), interrupted })
}

/// Locations of the scenario's nodes; `None` for routers.
fn places<'a>(scenario: &Scenario, hosts: &Hosts, session: &'a Session) -> Vec<Option<HostPlace<'a>>> {
    let mut places = vec![None; scenario.nodes.len()];
    for (host, node) in session.hosts.iter().zip(&hosts.nodes) {
        places[*node] = host.addresses.first().map(|address| HostPlace {
            network: host.network.as_fd(),
            address: *address,
            interface: &host.interface,
        });
    }
    places
}

/// Handles signals and the control socket while the flows run.
struct Watch {
    signals: Signals,
    interrupted: Option<Signal>,
    states: States,
}

impl Watch {
    /// False if the run must end.
    fn look(&mut self, progress: &Progress<'_>, seen: &mut dyn FnMut(f64, &[FlowState])) -> bool {
        if self.states.look(progress) {
            seen(progress.now.as_secs_f64(), &self.states.list);
        }
        let ends = |signal: &Signal| [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(signal);
        if let Some(signal) = self.signals.take().into_iter().find(ends) {
            self.interrupted = Some(signal);
        }
        self.interrupted.is_none()
    }
}

/// Recent state of the flows, for `bentpipe top`.
#[derive(Default)]
struct States {
    since: Instant,
    delivered: BTreeMap<String, u64>,
    list: Vec<FlowState>,
}

impl States {
    /// Updates the state once a second; true if it did.
    fn look(&mut self, progress: &Progress<'_>) -> bool {
        let length = progress.now.since(self.since).as_secs_f64();
        if length < 1.0 {
            return false;
        }
        self.since = progress.now;
        self.list.clear();
        for (name, info, delivered) in progress.flows() {
            let before = self.delivered.insert(name.to_owned(), delivered).unwrap_or(0);
            self.list.push(FlowState {
                name: name.to_owned(),
                rtt_ms: (!info.rtt.is_zero()).then(|| info.rtt.as_millis_f64()),
                cwnd: u64::from(info.cwnd),
                goodput_bps: delivered.saturating_sub(before) as f64 * 8.0 / length,
                retransmits: u64::from(info.retransmits),
            });
        }
        true
    }

    fn list(&self) -> Vec<FlowState> {
        self.list.clone()
    }
}
