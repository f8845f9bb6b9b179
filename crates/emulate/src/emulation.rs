//! Runs a command behind a link, from beginning to end.

use crate::error::Error;
use crate::far::{self, Ready};
use crate::flows::FlowResults;
use crate::panel::{self, ControlSocket};
use crate::plan::Plan;
use crate::report::{self, Recording, Watch};
use crate::session::{HOST_MAC, ProgramMode, Session, SessionHost, check_program, listen};
use bentpipe_base::Duration;
use bentpipe_live::{HostPort, Running, Setup, Timing};
use bentpipe_os::Clock;
use bentpipe_os::packet::VethPort;
use bentpipe_os::wait::wait;
use bentpipe_report::Report;
use bentpipe_service::Signals;
use rustix::process::Signal;
use std::ffi::OsString;
use std::path::PathBuf;

/// Time without a signal or a client after which the state of the link is looked at.
const IDLE: Duration = Duration::from_millis(500);
/// The same while something is due soon.
const STEP: Duration = Duration::from_millis(10);

/// Result of a run.
#[derive(Debug)]
pub struct Ended {
    /// The command's exit status.
    pub status: u8,
    /// Whether the machine was fast enough.
    pub timing: Timing,
    /// Files in the requested folder.
    pub files: Vec<PathBuf>,
    /// The report, if the plan wants one or a folder.
    pub report: Option<Report>,
}

/// A session with its link.
#[derive(Debug)]
struct Emulation<'a> {
    plan: &'a Plan,
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
    let Emulation { plan, mut session, link, panel, recording, watch, .. } = emulation;
    session.end_programs();
    drop(panel);
    let outcome = link.stop();
    session.end();
    let (outcome, status) = (outcome?, status?);
    let gate = session.hosts[session.far].node;
    let flows = || watch.map_or_else(FlowResults::default, |w| w.stop(&plan.scenario, gate));
    let (report, files) = match recording {
        None => (plan.report.then(|| report::assemble(&plan.scenario, &outcome, flows()).0), Vec::new()),
        Some(recording) => {
            let (report, _, files) = recording.finish(&outcome, flows())?;
            (Some(report), files)
        }
    };
    Ok(Ended { status, timing: outcome.timing, files, report })
}

impl<'a> Emulation<'a> {
    fn start(plan: &'a Plan) -> Result<Self, Error> {
        if let Some(program) = plan.command.first() {
            check_program(program)?;
        }
        // before the session, so that no signal ends this process while there are changes to undo
        let signals = listen()?;
        let http = panel::listen(plan)?;
        let session = Session::open(plan, plan.uplink)?;
        let panel = ControlSocket::open(&session, &plan.title, http)?;
        let clock = Clock::start();
        let gate = Some(session.hosts[session.far].node);
        let measured = plan.report || plan.out.is_some();
        let (link, recording) = start_link(plan, &session, clock, gate, measured)?;
        let watch = measured.then(|| Watch::start(&session.hosts, clock)).transpose();
        let watch = watch.map_err(|e| Error::system("following connections", e))?;
        Ok(Self { plan, session, link, signals, panel, clock, recording, watch })
    }

    /// Runs the commands and waits for the one at the near end; returns its exit status.
    fn programs(&mut self, log: &mut dyn FnMut(&str)) -> Result<u8, Error> {
        for note in &self.session.notes {
            log(note);
        }
        if let Some(line) = &self.plan.far
            && let Some(status) = self.start_far(line, log)?
        {
            return Ok(status);
        }
        let near = self.session.start(self.session.near, &self.plan.command, ProgramMode::Foreground)?;
        loop {
            self.sleep(IDLE);
            for signal in self.signals.take() {
                self.session.pass_on(signal);
            }
            let mut status = None;
            for (pid, ended) in self.session.program_events() {
                match ended {
                    Some(end) if pid == near => status = Some(end.status()),
                    Some(end) => log(&format!("the far program has ended: {end}")),
                    None if pid == near => stop_with(near),
                    None => {}
                }
            }
            if let Some(status) = status {
                return Ok(status);
            }
            self.serve(log);
            if self.link.has_ended() {
                // the following steps report why
                return Ok(1);
            }
        }
    }

    /// Starts the far program and waits until it is ready. Returns an exit status if a signal ends the
    /// session meanwhile.
    fn start_far(&mut self, line: &OsString, log: &mut dyn FnMut(&str)) -> Result<Option<u8>, Error> {
        let (ready, limit) = self.plan.far_ready;
        let fault = |e| Error::system("the ports of the far end", e);
        let before = far::open_ports(&self.session.hosts[self.session.far].network).map_err(fault)?;
        let shell = ["/bin/sh".into(), "-c".into(), line.clone()];
        self.session.start(self.session.far, &shell, ProgramMode::Background)?;
        if ready == Ready::Off {
            return Ok(None);
        }
        let until = self.clock.now() + limit;
        let mut ended = false;
        loop {
            let now = far::open_ports(&self.session.hosts[self.session.far].network).map_err(fault)?;
            let is_open = match ready {
                Ready::Port(port) => now.contains(&port),
                Ready::First | Ready::Off => now.iter().any(|port| !before.contains(port)),
            };
            if is_open {
                return Ok(None);
            }
            // what it has started in the background may still open one: that is seen above
            if ended || self.clock.now() >= until {
                let why = if ended { "it has ended".to_owned() } else { format!("not within {limit}") };
                if let Ready::Port(port) = ready {
                    return Err(Error::FarNotReady(port, why));
                }
                log(&format!(
                    "note: the far program opened no port to listen at: {why}; the command starts now"
                ));
                return Ok(None);
            }
            self.sleep(STEP);
            if let Some(signal) = self.signals.take().into_iter().find(|signal| *signal != Signal::CHILD) {
                return Ok(Some((128 + signal.as_raw()) as u8));
            }
            for end in self.session.program_events().into_iter().filter_map(|(_, end)| end) {
                ended = true;
                log(&format!("the far program has ended: {end}"));
            }
            self.serve(log);
            if self.link.has_ended() {
                return Ok(Some(1));
            }
        }
    }

    /// Sleeps until a signal or a client arrives, at most for `long` so that a failed link is noticed.
    fn sleep(&self, long: Duration) {
        let long = if self.panel.is_behind() { STEP } else { long };
        let all: Vec<_> = [self.signals.fd()].into_iter().chain(self.panel.fds()).collect();
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
            self.watch = Watch::start(&self.session.hosts, self.clock).ok();
        }
    }
}

/// Starts the link between the hosts of a session, in the relay's network namespace, and what the plan wants
/// in its folder. `gate` and `record` are those of [`Setup`].
pub(crate) fn start_link(
    plan: &Plan,
    session: &Session,
    clock: Clock,
    gate: Option<usize>,
    record: bool,
) -> Result<(Running, Option<Recording>), Error> {
    let begun = plan.out.as_ref().map(|dir| Recording::begin(dir, &plan.scenario, clock)).transpose()?;
    let (recording, install) = begun.unzip();
    let recording = recording.map(|recording| recording.with_pictures(plan.pictures));
    let door = |host: &SessionHost| {
        let port = Box::new(VethPort::open(&host.port, HOST_MAC)?);
        Ok(HostPort { host: host.node, port, addresses: host.entry.addresses.clone() })
    };
    let setup = Setup {
        scenario: plan.scenario.clone(),
        speed: plan.speed,
        ports: session.hosts.iter().map(door).collect::<Result<_, Error>>()?,
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
