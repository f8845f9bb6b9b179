//! Runs a gateway: lock, check, session file, set-up, data path; then signals, requests and timers; at the
//! end all changes are undone.

use super::check::check;
use super::deployment::Deployment;
use super::divert::Scope;
use super::engine::{Engine, EngineConfig, Level};
use super::error::Error;
use super::gateway_engine::GatewayEngine;
use super::plan::Plan;
use super::prestart;
use super::privileges;
use super::sandbox::Sandbox;
use super::session::{self, Session, choose};
use super::setup;
use super::watch::Watch;
use crate::status::{GatewayCounters, Groups, PAGE, Records, Reply, Request, Status, Verdict, metrics};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::clock::realtime;
use bentpipe_os::{Clock, PacketPort, namespace, wait};
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};
use bentpipe_service::{CheckStatus, Http, Process, Server, Signals};
use rustix::process::Signal;
use std::path::{Path, PathBuf};

/// Interval between checks for closed connections.
const TICK: Duration = Duration::from_secs(1);
/// Interval while a client is slow.
const SOON: Duration = Duration::from_millis(20);

/// Runs `file` until it is stopped.
///
/// # Errors
/// A failed check, before anything is changed; or a later failure, after all changes were undone.
pub fn run(mut deployment: Deployment<'_>, file: GatewayFile) -> Result<(), Error> {
    let name = file.deploy.name.clone();
    let lock = match session::lock(&deployment.registry, &name)? {
        Some(lock) => lock,
        None if deployment.replace => prestart::replace(&mut deployment, &file)?,
        None => {
            let pid = choose(&deployment.registry, Some(&name)).map_or(0, |s| s.process.pid);
            return Err(Error::Runs { name, pid });
        }
    };
    let (session, plan, signals) = match prepare(&mut deployment, &file) {
        Ok(prepared) => prepared,
        Err(error) => {
            session::unlock(&deployment.registry, &name, lock);
            return Err(error);
        }
    };
    let ended = serve(&mut deployment, file, &session, &plan, signals);
    // if the data path ended by itself, the records of its connections stay for the next run
    let keeps = match &ended {
        Ok(ended) => ended.keeps_records,
        Err(error) => !matches!(error, Error::TrafficStopped(_)),
    };
    for line in session.undo.run() {
        deployment.inform("undone", line);
    }
    session::remove(&deployment.registry, &session, lock, keeps);
    deployment.inform("ended", ended?.why);
    Ok(())
}

struct StopReason {
    why: String,
    /// True if another gateway is to resume its connections.
    keeps_records: bool,
}

/// All checks before the first change, and the session file.
fn prepare(deployment: &mut Deployment<'_>, file: &GatewayFile) -> Result<(Session, Plan, Signals), Error> {
    let here = namespace::network().and_then(namespace::inode).map_err(|e| Error::system("/proc", e))?;
    let name = &file.deploy.name;
    if let Some(dead) =
        deployment.registry.entry(name).filter(|dead: &Session| dead.process.is_of_this_boot())
    {
        if dead.undo.network != here {
            return Err(Error::OtherNamespace(name.clone()));
        }
        for line in dead.undo.run() {
            deployment.inform("leftover", line);
        }
        deployment.registry.remove(name, &["gateway"]);
    }
    let found = check(file, &deployment.registry);
    found.refuse()?;
    for finding in found.findings.iter().filter(|f| f.standing == CheckStatus::Lack) {
        deployment.warn("lack", format!("{}: {}", finding.name, finding.found));
    }
    let signals = Signals::listen(&[Signal::TERM, Signal::INT, Signal::HUP])
        .map_err(|e| Error::system("signals", e))?;
    let usual = || deployment.registry.file(name, "sock");
    let session = Session {
        name: name.clone(),
        file: deployment.path.to_owned(),
        process: Process::this(),
        socket: file.status.socket.as_ref().map_or_else(usual, PathBuf::from),
        undo: found.plan.undo(here),
    };
    deployment.registry.write(&session)?;
    Ok((session, found.plan, signals))
}

/// Runs from the first change to the last packet; returns why it ended.
fn serve(
    deployment: &mut Deployment<'_>,
    file: GatewayFile,
    session: &Session,
    plan: &Plan,
    mut signals: Signals,
) -> Result<StopReason, Error> {
    let clock = Clock::start();
    let (watch, is_told) = prestart::observe_traffic(deployment, &file, session, (&mut signals, &clock))?;
    if is_told {
        return Ok(StopReason {
            why: "stopped by a signal before the start".to_owned(),
            keeps_records: false,
        });
    }
    let mut services = StatusServices::open(&file, session)?;
    let mut opened = setup::apply(plan)?;
    if file.deploy.kind == Kind::Inline {
        opened = GatewayEngine::inline(&file).map_err(Error::Engine)?.into();
    }
    let ports: [Box<dyn PacketPort>; 2] =
        opened.try_into().map_err(|_| Error::Engine("it needs two ports".to_owned()))?;
    privileges::give_up().map_err(|e| Error::system("capabilities cannot be dropped", e))?;
    let sandbox =
        Sandbox::enter(&file, deployment.path, deployment.registry.folder(), &session.socket, false);
    if !sandbox.is_whole() {
        let text = format!("Landlock: {}; seccomp: {}", sandbox.landlock, sandbox.seccomp);
        deployment.warn("sandbox", text);
    }
    let keep = Some(session::record_file(&deployment.registry, &session.name, session.undo.network));
    let orders = EngineConfig { keep, ..EngineConfig::new(file) };
    let engine = (deployment.start)(ports, &orders).map_err(Error::Engine)?;
    if let Some((priority, false)) = engine.priority() {
        deployment.warn("priority", format!("the data thread has {priority}"));
    }
    deployment.inform("started", format!("gateway {} of {}", session.name, deployment.path));
    let mut gateway = RunningGateway::new(orders, engine, sandbox);
    (gateway.watch, gateway.clock) = (watch, clock);
    let mut ended = gateway.run_until_stopped(deployment, &mut services, signals);
    if matches!(ended, Err(Error::TrafficStopped(_))) {
        // traffic has stopped anyway: restore the direct path first
        session.undo.remove_table();
    }
    if let Ok(StopReason { keeps_records: keeps @ true, .. }) = &mut ended
        && let Err(why) = gateway.engine.close_records()
    {
        deployment.warn("connections", format!("not saved for the next gateway: {why}"));
        *keeps = false;
    }
    // first release all held packets: packets on the direct path would overtake them, and their sequence
    // numbers could exceed the window of a receiver with a small window
    if let Err(error) = gateway.stop_accelerating() {
        deployment.warn("not released", error);
    }
    // from now on packets take the direct path; packets that arrived earlier are still sent
    if let Some(line) = session.undo.remove_table() {
        deployment.inform("undone", line);
    }
    gateway.periodic_work(deployment, &mut services);
    let stopped = gateway.engine.stop().map_err(Error::Engine);
    stopped.and(ended)
}

pub(super) struct StatusServices {
    pub(super) server: Server,
    pub(super) http: Option<Http>,
    pub(super) records: Option<Records>,
}

impl StatusServices {
    pub(super) fn open(file: &GatewayFile, session: &Session) -> Result<Self, Error> {
        let http = file.status.prometheus.map(Http::bind).transpose();
        let http = http.map_err(|e| Error::system("the address for metrics", e))?;
        Ok(Self { server: Server::bind(&session.socket)?, http, records: records(file)? })
    }
}

pub(super) fn records(file: &GatewayFile) -> Result<Option<Records>, Error> {
    let Some((path, format)) = &file.status.records else { return Ok(None) };
    Records::open(Path::new(path), *format).map(Some).map_err(|e| Error::system(path, e))
}

/// Throughput since the last measurement.
#[derive(Default)]
struct Rates {
    at: Instant,
    bytes: [u64; 2],
    bps: [f64; 2],
}

pub(super) struct RunningGateway {
    pub(super) config: EngineConfig,
    pub(super) engine: Box<dyn Engine>,
    pub(super) groups: Groups,
    pub(super) verdict: Verdict,
    /// Why nothing is accelerated; `None` in normal operation.
    pub(super) bypass: Option<String>,
    rates: Rates,
    clock: Clock,
    sandbox: Sandbox,
    pub(super) watch: Option<Watch>,
    /// Set when a client asked to stop; true if the connections are to be kept.
    stop_requested: Option<bool>,
    pub(super) scope: Scope,
}

impl RunningGateway {
    pub(super) fn new(orders: EngineConfig, engine: Box<dyn Engine>, sandbox: Sandbox) -> Self {
        Self {
            scope: Scope::of(&orders.file),
            watch: None,
            stop_requested: None,
            sandbox,
            config: orders,
            engine,
            groups: Groups::default(),
            verdict: Verdict::TooFew,
            bypass: None,
            rates: Rates::default(),
            clock: Clock::start(),
        }
    }

    /// Serves until a signal, a stop request or the end of the data path; returns the reason.
    fn run_until_stopped(
        &mut self,
        deployment: &mut Deployment<'_>,
        services: &mut StatusServices,
        mut signals: Signals,
    ) -> Result<StopReason, Error> {
        let mut tick = self.clock.now() + TICK;
        loop {
            let behind = services.server.is_behind() || services.http.as_ref().is_some_and(Http::is_behind);
            let until = self.watch.as_ref().map_or(tick, |watch| tick.min(watch.next));
            let until = if behind { until.min(self.clock.now() + SOON) } else { until };
            let mut fds = vec![self.engine.ended(), signals.fd()];
            fds.extend(services.server.fds());
            fds.extend(services.http.iter().flat_map(Http::fds));
            let ready = wait::wait(&fds, Some(until), &self.clock, Duration::ZERO)
                .map_err(|e| Error::system("waiting", e))?;
            if ready.has(0) {
                return Err(Error::Engine("it ended unexpectedly".to_owned()));
            }
            for signal in signals.take() {
                if signal != Signal::HUP {
                    return Ok(StopReason { why: "stopped by a signal".to_owned(), keeps_records: false });
                }
                match self.reload(deployment, &mut services.records) {
                    Ok(text) => deployment.inform("reloaded", text),
                    Err(error) => deployment.warn("not reloaded", error.to_string()),
                }
            }
            self.answer_requests(deployment, services);
            if let Some(keeps) = self.stop_requested {
                let why = if keeps { "stopped to be replaced" } else { "stopped as asked" };
                return Ok(StopReason { why: why.to_owned(), keeps_records: keeps });
            }
            self.check_traffic()?;
            if self.clock.now() >= tick {
                self.periodic_work(deployment, services);
                tick = self.clock.now() + TICK;
            }
        }
    }

    /// Checks whether traffic still flows, if a check is due.
    fn check_traffic(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.next <= now) else { return Ok(()) };
        if let Some(why) = watch.look(now) {
            return Err(Error::TrafficStopped(why));
        }
        if let Some(watch) = self.watch.take_if(|watch| watch.is_over(now)) {
            watch.end();
        }
        Ok(())
    }

    pub(super) fn answer_requests(&mut self, deployment: &mut Deployment<'_>, services: &mut StatusServices) {
        let StatusServices { server, http, records } = services;
        let mut reload = Vec::new();
        server.serve(&mut |request| {
            Ok(match request {
                Request::Status => Reply::Status(Box::new(self.status(deployment, records.as_ref()))),
                Request::Flows { from, most } => Reply::Flows(self.engine.flows(from, most.min(PAGE))),
                Request::Reload => {
                    let message = self.reload(deployment, records).map_err(|error| error.to_string())?;
                    reload.push(message.clone());
                    Reply::Done { message }
                }
                Request::Stop { keep } => {
                    self.stop_requested = Some(keep);
                    Reply::Done { message: format!("gateway {} ends", self.config.file.deploy.name) }
                }
            })
        });
        for text in reload {
            deployment.inform("reloaded", text);
        }
        if let Some(http) = http {
            http.serve(&mut || metrics(&self.status(deployment, records.as_ref())));
        }
    }

    /// Periodic work: events, flow records, and the comparison with its consequences.
    pub(super) fn periodic_work(&mut self, deployment: &mut Deployment<'_>, services: &mut StatusServices) {
        for event in self.engine.take_events() {
            (deployment.log)(&event);
        }
        let closed = self.engine.take_closed();
        for flow in &closed {
            self.groups.add(flow);
        }
        if let Some(records) = &mut services.records {
            let lost = records.lost();
            records.add(&closed, realtime() / 1_000_000_000);
            if lost == 0 && records.lost() > 0 {
                deployment.warn("records", "flow records cannot be written; the lost ones are counted");
            }
        }
        self.rates.look(&self.engine.counters(), self.clock.now());
        if self.config.file.config.sample > 0.0 && self.bypass.is_none() {
            self.check_gain(deployment);
        }
    }

    /// Sends all held packets now, in order, and lets later packets pass behind them.
    fn stop_accelerating(&mut self) -> Result<(), String> {
        let mut file = GatewayFile::clone(&self.config.file);
        file.config.rate = None;
        self.engine.reconfigure(&EngineConfig { accelerate: false, ..EngineConfig::new(file) })
    }

    fn check_gain(&mut self, deployment: &mut Deployment<'_>) {
        let comparison = self.groups.compare();
        if comparison.verdict == self.verdict {
            return;
        }
        self.verdict = comparison.verdict;
        let slower = comparison.verdict == Verdict::Slower;
        let level = if slower { Level::Warning } else { Level::Info };
        deployment.say(level, "gain", comparison.sentence.clone());
        if slower && self.config.file.bypass_when_slower {
            self.config.accelerate = false;
            match self.engine.reconfigure(&self.config) {
                Ok(()) => {
                    deployment.warn("bypass", "acceleration is off: accelerated connections were slower");
                    self.bypass = Some(comparison.sentence);
                }
                Err(error) => deployment.warn("bypass", error),
            }
        }
    }

    pub(super) fn status(&mut self, deployment: &Deployment<'_>, records: Option<&Records>) -> Status {
        let file = &self.config.file;
        let figures = self.engine.counters();
        Status {
            name: file.deploy.name.clone(),
            file: deployment.path.to_owned(),
            kind: if file.deploy.kind == Kind::Routed { "routed" } else { "inline" }.to_owned(),
            uptime_s: self.clock.now().as_secs_f64(),
            rate_bps: file.config.rate.map(bentpipe_base::Rate::bps),
            bypass: self.bypass.clone(),
            throughput_bps: self.rates.bps,
            figures,
            sample: (file.config.sample > 0.0).then(|| self.groups.compare()),
            records_lost: records.map_or(0, Records::lost),
            sandbox: self.sandbox.clone(),
            priority: self.engine.priority().map(|p| p.0).unwrap_or_default(),
        }
    }
}

impl Rates {
    fn look(&mut self, figures: &GatewayCounters, now: Instant) {
        let seconds = now.since(self.at).as_secs_f64();
        if seconds > 0.0 {
            let bps = |i: usize| figures.bytes[i].saturating_sub(self.bytes[i]) as f64 * 8.0 / seconds;
            self.bps = [bps(0), bps(1)];
        }
        (self.at, self.bytes) = (now, figures.bytes);
    }
}
