//! Runs a command behind a link, from beginning to end.

use crate::error::Error;
use crate::flows::FlowResults;
use crate::panel::ControlSocket;
use crate::plan::{Hosts, Plan};
use crate::report::{Host, Recording, Watch};
use crate::session::{HOST_MAC, ProgramEvent, ProgramMode, Session, SessionHost, check_program, listen};
use bentpipe_base::Duration;
use bentpipe_live::{HostPort, Running, Setup, Timing};
use bentpipe_os::Clock;
use bentpipe_os::packet::VethPort;
use bentpipe_os::wait::wait;
use bentpipe_service::Signals;
use rustix::process::Signal;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// Result of a run.
#[derive(Debug)]
pub struct Ended {
    /// The command's exit status.
    pub status: u8,
    /// Whether the machine was fast enough.
    pub timing: Timing,
    /// Files in the requested folder.
    pub files: Vec<PathBuf>,
}

/// A session with its link.
#[derive(Debug)]
struct Emulation<'a> {
    plan: &'a Plan,
    hosts: Hosts,
    session: Session,
    link: Running,
    signals: Signals,
    panel: ControlSocket,
    clock: Clock,
    recording: Option<Recording>,
    watch: Option<Watch>,
}

/// Runs the command. The process must have only one thread. `log` gets messages for the user meanwhile.
///
/// # Errors
/// What is missing and how to fix it; a program that does not start; a failed link. Nothing is left behind.
pub fn run(plan: &Plan, log: &mut dyn FnMut(&str)) -> Result<Ended, Error> {
    let mut emulation = Emulation::start(plan)?;
    // even if a program fails to start, links and namespaces must be removed
    let status = emulation.programs(log);
    let Emulation { plan, hosts, mut session, link, panel, recording, watch, .. } = emulation;
    session.end_programs();
    drop(panel);
    let outcome = link.stop();
    session.end();
    let outcome = outcome?;
    let (status, gate) = (status?, hosts.nodes[hosts.far]);
    let timing = outcome.timing.clone();
    let files = match recording {
        None => Vec::new(),
        Some(recording) => {
            let flows = watch.map_or_else(FlowResults::default, |w| w.stop(&plan.scenario, Some(gate)));
            recording.finish(&outcome, flows)?.1
        }
    };
    Ok(Ended { status, timing, files })
}

impl<'a> Emulation<'a> {
    fn start(plan: &'a Plan) -> Result<Self, Error> {
        if let Some(program) = plan.command.first() {
            check_program(program)?;
        }
        let hosts = Hosts::of(&plan.scenario);
        // before the session, so that no signal ends this process while there are changes to undo
        let signals = listen()?;
        let session = Session::open(plan, &hosts, plan.uplink)?;
        session.wait_until_up()?;
        let panel = ControlSocket::open(&session.socket_path(), &session.id, &plan.title)?;
        let clock = Clock::start();
        let gate = Some(hosts.nodes[hosts.far]);
        let (link, recording) = start_link(plan, &hosts, &session, clock, gate, plan.out.is_some())?;
        let mut this = Self { plan, hosts, session, link, signals, panel, clock, recording, watch: None };
        if plan.out.is_some() {
            this.watch = Some(this.watch().map_err(|e| Error::system("following connections", e))?);
        }
        Ok(this)
    }

    /// Starts following the connections in all hosts.
    fn watch(&self) -> std::io::Result<Watch> {
        let watched = self.session.hosts.iter().zip(&self.hosts.nodes).map(|(host, node)| {
            let (name, addresses) = (host.name.clone(), host.addresses.clone());
            (Host { name, node: *node, addresses, own: host.own }, host.network.as_fd())
        });
        Watch::start(watched, self.clock)
    }

    /// Runs the commands and waits for the one at the near end; returns its exit status.
    fn programs(&mut self, log: &mut dyn FnMut(&str)) -> Result<u8, Error> {
        for note in &self.session.notes {
            log(note);
        }
        if let Some(line) = &self.plan.far {
            let shell = ["/bin/sh".into(), "-c".into(), line.clone()];
            self.session.start(self.session.far, &shell, ProgramMode::Background)?;
        }
        let near = self.session.start(self.session.near, &self.plan.command, ProgramMode::Foreground)?;
        loop {
            self.sleep();
            for signal in self.signals.take() {
                self.session.pass_on(signal);
            }
            for news in self.session.program_events() {
                match news {
                    ProgramEvent::Ended(pid, status) if pid == near => return Ok(status),
                    ProgramEvent::Stopped(pid) if pid == near => stop_with(near),
                    _ => {}
                }
            }
            self.serve(log);
            if self.link.has_ended() {
                // the following steps report why
                return Ok(1);
            }
        }
    }

    /// Sleeps until a signal or a client arrives, for a limited time so that a failed link is noticed.
    fn sleep(&self) {
        let long = Duration::from_millis(if self.panel.server.is_behind() { 10 } else { 500 });
        let all: Vec<_> = [self.signals.fd()].into_iter().chain(self.panel.server.fds()).collect();
        // an interrupted wait just ends early
        let _ = wait(&all, Some(self.clock.now() + long), &self.clock, Duration::ZERO);
    }

    /// Answers `bentpipe link` and `bentpipe top`; the first query starts following the connections.
    fn serve(&mut self, log: &mut dyn FnMut(&str)) {
        let mut asked = false;
        let watch = &self.watch;
        let lines = self.panel.serve(&self.link, &mut || {
            asked = true;
            watch.as_ref().map_or_else(Vec::new, Watch::lately)
        });
        for line in &lines {
            log(line);
        }
        if asked && self.watch.is_none() {
            // without it the state lacks only the connections
            self.watch = self.watch().ok();
        }
    }
}

/// Starts the link between the hosts of a session, in the relay's network namespace, and what the plan wants
/// in its folder. `gate` and `record` are those of [`Setup`].
pub(crate) fn start_link(
    plan: &Plan,
    hosts: &Hosts,
    session: &Session,
    clock: Clock,
    gate: Option<usize>,
    record: bool,
) -> Result<(Running, Option<Recording>), Error> {
    let begun = plan.out.as_ref().map(|dir| Recording::begin(dir, &plan.scenario, clock)).transpose()?;
    let (recording, install) = begun.unzip();
    let door = |(host, node): (&SessionHost, &usize)| {
        let port = Box::new(VethPort::open(&host.port, HOST_MAC)?);
        Ok(HostPort { host: *node, port, addresses: host.addresses.clone() })
    };
    let setup = Setup {
        scenario: plan.scenario.clone(),
        speed: plan.speed,
        ports: session.hosts.iter().zip(&hosts.nodes).map(door).collect::<Result<_, Error>>()?,
        default_route_host: gate,
        clock,
        journal: plan.journal.clone(),
        record,
        realtime: plan.realtime,
    };
    Ok((Running::start(setup, install.flatten())?, recording))
}

/// The command was stopped (Ctrl-Z): stops this process too, for the user's shell, and continues both later.
fn stop_with(near: i32) {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
    bentpipe_os::process::signal(near, Signal::CONT);
}
