//! Runs a command behind a link, from beginning to end.

use crate::error::Error;
use crate::panel::Panel;
use crate::plan::{Hosts, Plan};
use crate::report::{Beside, Flows, Recording, Seat, Watch};
use crate::session::{HOST_MAC, HostEnd, News, Session, Stand, check_program, listen};
use bentpipe_live::{Door, Running, Setup, Timing};
use bentpipe_os::Clock;
use bentpipe_os::packet::VethPort;
use bentpipe_service::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
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
    panel: Panel,
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
            let flows = watch.map_or_else(Flows::default, |w| w.stop(&plan.scenario, Some(gate)));
            recording.finish(&outcome, Beside { flows, ..Beside::default() })?.1
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
        let session = Session::open(&hosts.layout(plan))?;
        session.wait_until_up()?;
        let panel = Panel::open(&session.socket_path(), &session.id, &plan.title)?;
        let clock = Clock::start();
        let mut recording =
            plan.out.as_ref().map(|dir| Recording::begin(dir, &plan.scenario, clock)).transpose()?;
        let doors = doors(&session, &hosts)?;
        let setup = Setup {
            scenario: plan.scenario.clone(),
            speed: plan.speed,
            doors,
            gate: Some(hosts.nodes[hosts.far]),
            clock,
            journal: plan.journal.clone(),
            record: plan.out.is_some(),
            realtime: plan.realtime,
        };
        let link = Running::start(setup, recording.as_mut().and_then(Recording::take_install))?;
        let mut this = Self { plan, hosts, session, link, signals, panel, clock, recording, watch: None };
        if plan.out.is_some() {
            this.watch = Some(this.watch().map_err(|e| Error::system("following connections", e))?);
        }
        Ok(this)
    }

    /// Starts following the connections in all hosts.
    fn watch(&self) -> std::io::Result<Watch> {
        let hosts = self.session.hosts.iter().zip(&self.hosts.nodes);
        let seats: Vec<Seat<'_>> = hosts
            .map(|(host, node)| Seat {
                name: host.name.clone(),
                node: *node,
                network: host.network.as_fd(),
                addresses: host.addresses.clone(),
                own: host.own,
            })
            .collect();
        Watch::start(&seats, self.clock)
    }

    /// Runs the commands and waits for the one at the near end; returns its exit status.
    fn programs(&mut self, log: &mut dyn FnMut(&str)) -> Result<u8, Error> {
        for note in &self.session.notes {
            log(note);
        }
        if let Some(line) = &self.plan.far {
            let shell = ["/bin/sh".into(), "-c".into(), line.clone()];
            self.session.start(self.session.far, &shell, Stand::Background)?;
        }
        let near = self.session.start(self.session.near, &self.plan.command, Stand::Foreground)?;
        loop {
            self.sleep();
            for signal in self.signals.take() {
                self.session.pass_on(signal);
            }
            for news in self.session.news() {
                match news {
                    News::Ended(pid, ended) if pid == near => return Ok(ended.exit_status()),
                    News::Stopped(pid) if pid == near => stop_with(near),
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
        let long = if self.panel.is_behind() { 10_000_000 } else { 500_000_000 };
        let fds = self.panel.fds();
        let all = [self.signals.fd()].into_iter().chain(fds);
        let all: Vec<_> = all.collect();
        let mut polled: Vec<PollFd<'_>> = all.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // an interrupted wait just ends early
        let _ = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: long }));
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

/// Opens the relay's ports to the hosts. Called in the relay's network namespace.
pub(crate) fn doors(session: &Session, hosts: &Hosts) -> Result<Vec<Door>, Error> {
    let door = |(host, node): (&HostEnd, &usize)| {
        let port = Box::new(VethPort::open(&host.port, HOST_MAC)?);
        Ok(Door { host: *node, port, addresses: host.addresses.clone() })
    };
    session.hosts.iter().zip(&hosts.nodes).map(door).collect()
}

/// The command was stopped (Ctrl-Z): stops this process too, for the user's shell, and continues both later.
fn stop_with(near: i32) {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
    bentpipe_os::process::signal(near, Signal::CONT);
}
