//! Runs an agent: lock, check, session file, set-up, data path; then signals and requests; at the end all
//! changes are undone.

use super::Error;
use super::check::check_after;
use super::guard::{self, Inherited};
use super::ports::{self, Opened};
use super::session::{self, Session, choose};
use super::stop::clean;
use super::watcher::{Watcher, absolute};
use super::way::{Loaded, Way};
use crate::kernel::KernelView;
use crate::path::FlowFile;
use crate::status::{Reply, Request, Status};
use bentpipe_accelerate::deploy::{self, Event, Level, Plan, Sandbox, Step, give_up_privileges};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::{namespace, wait};
use bentpipe_scenario::agent_file::{AgentFile, Method};
use bentpipe_service::{CheckStatus, Process, Registry, Server, Signals};
use rustix::process::Signal;
use std::path::PathBuf;
use std::sync::Arc;

/// Time between two looks at a client that is slow.
const SOON: Duration = Duration::from_millis(20);
/// Time between two looks at the watcher.
const LOOK: Duration = Duration::from_secs(1);

/// An agent to be run.
pub struct Deployment<'a> {
    /// Path of its file, as shown in messages.
    pub path: &'a str,
    /// Registry of session files.
    pub registry: Registry,
    /// Receives log events.
    pub log: &'a mut dyn FnMut(&Event),
}

impl Deployment<'_> {
    fn inform(&mut self, name: &'static str, text: impl Into<String>) {
        (self.log)(&Event { level: Level::Info, name, text: text.into() });
    }

    fn warn(&mut self, name: &'static str, text: impl Into<String>) {
        (self.log)(&Event { level: Level::Warning, name, text: text.into() });
    }
}

/// Runs `file` until it is stopped.
///
/// # Errors
/// A failed check, before anything is changed; or a later failure, after all changes were undone.
pub fn run(mut deployment: Deployment<'_>, file: AgentFile) -> Result<(), Error> {
    let name = file.site.deploy.name.clone();
    let registry = deployment.registry.clone();
    let Some(lock) = session::lock(&registry, &name)? else {
        let pid = choose(&registry, Some(&name)).map_or(0, |session| session.base.process.pid);
        return Err(Error::Runs { name, pid });
    };
    let prepared = prepare(&mut deployment, &file);
    if prepared.is_err() {
        session::unlock(&registry, &name, lock);
        return prepared.map(drop);
    }
    let prepared = prepared?;
    let session = prepared.session.clone();
    let ended = serve(&mut deployment, file, prepared);
    for line in session.base.undo.run() {
        deployment.inform("undone", line);
    }
    if guard::is_needed(&registry, &session) {
        // the watcher hears of the end of this process
        let text = "structures are kept from connections that signalled until they end, or until `undo`";
        deployment.inform("guarded", text);
        session::unlock(&registry, &name, lock);
    } else {
        if let Some(line) = (!session.guard.is_empty()).then(guard::remove).flatten() {
            deployment.inform("undone", line);
        }
        session::remove(&registry, &session, lock);
    }
    deployment.inform("ended", ended?);
    Ok(())
}

/// What is known before the first change.
struct Prepared {
    session: Session,
    plan: Plan,
    signals: Signals,
    inherited: Inherited,
    flows: FlowFile,
}

/// All checks before the first change, and the session file.
fn prepare(deployment: &mut Deployment<'_>, file: &AgentFile) -> Result<Prepared, Error> {
    let signals = Signals::listen(&[Signal::TERM, Signal::INT]).map_err(|e| Error::system("signals", e))?;
    let here = namespace::network().and_then(namespace::inode).map_err(|e| Error::system("/proc", e))?;
    let name = &file.site.deploy.name;
    let inherited = clear_leftovers(deployment, name, here)?;
    let site = check_after(file, &inherited, None).site;
    site.refuse()?;
    let flows = inherited.flow_file(&deployment.registry, name, file.limits.flows)?;
    let lacks = site.findings.iter().filter(|finding| finding.standing == CheckStatus::Lack);
    for finding in lacks {
        deployment.warn("lack", format!("{}: {}", finding.name, finding.found));
    }
    let socket = match &file.site.status.socket {
        Some(path) => PathBuf::from(path),
        None => deployment.registry.file(name, "agent-sock"),
    };
    let (path, process, undo) = (deployment.path.to_owned(), Process::this(), site.plan.undo(here));
    let base = deploy::Session { name: name.clone(), file: path, process, socket, undo };
    // the watcher of an earlier agent keeps its table until the next one is there
    let watcher = inherited.watcher().cloned();
    let session = Session { base, watcher, guard: guard::named(file, &inherited) };
    deployment.registry.write(&session)?;
    Ok(Prepared { session, plan: site.plan, signals, inherited, flows })
}

/// Undoes what a killed agent of this name has left behind, in the network namespace `here`. While flows of
/// it are open that were negotiated, its guard stays, with its watcher, and with its files for `undo`.
fn clear_leftovers(deployment: &mut Deployment<'_>, name: &str, here: u64) -> Result<Inherited, Error> {
    let Some(dead) = deployment.registry.entry::<Session>(name) else { return Ok(Inherited::default()) };
    let mut inherited = Inherited::default();
    if dead.base.process.is_of_this_boot() {
        if dead.base.undo.network != here {
            return Err(Error::OtherNamespace(name.to_owned()));
        }
        for line in clean(&dead) {
            deployment.inform("leftover", line);
        }
        inherited = Inherited::of(&deployment.registry, &dead);
        if !inherited.is_empty() {
            return Ok(inherited);
        }
        guard::clear(&dead);
    }
    deployment.registry.remove(name, &["agent", "agent-flows"]);
    Ok(inherited)
}

/// Runs from the first change to the last packet; returns why it ended.
fn serve(deployment: &mut Deployment<'_>, file: AgentFile, prepared: Prepared) -> Result<String, Error> {
    let Prepared { mut session, plan, signals, inherited, flows } = prepared;
    let server = Server::bind(&session.base.socket)?;
    let watcher = Watcher::start(&absolute(deployment.path), &deployment.registry)?;
    session.watcher = Some(watcher.process.clone());
    let (opened, loaded) = match open(deployment, &file, &session, (&plan, &inherited)) {
        Ok(both) => both,
        Err(error) => {
            // the changes are undone here. There are no connections yet, but those of an earlier agent, whose
            // guard the watcher keeps
            if inherited.is_empty() {
                watcher.dismiss();
            }
            return Err(error);
        }
    };
    let folder = deployment.registry.folder().to_owned();
    let sandbox =
        Sandbox::enter(&file.site, deployment.path, &folder, &session.base.socket, loaded.has_maps());
    if !sandbox.is_whole() {
        let text = format!("Landlock: {}; seccomp: {}", sandbox.landlock, sandbox.seccomp);
        deployment.warn("sandbox", text);
    }
    // a sleep must not last longer than asked; failing to set it is harmless
    let _ = wait::set_timer_slack();
    let file = Arc::new(file);
    let way = Way::new(&file, opened, loaded, flows)?;
    let raised = raised(&plan);
    deployment.inform("started", format!("agent {} of {}", session.base.name, deployment.path));
    let path = deployment.path.to_owned();
    let mut agent =
        Running { way, file, path, sandbox, watcher: Some(watcher), server, drains: None, raised };
    let why = agent.run_until_stopped(deployment, signals)?;
    // from now on packets take the direct path; what arrived earlier is still sent
    if let Some(line) = session.base.undo.remove_table() {
        deployment.inform("undone", line);
    }
    agent.way.release_datagrams()?;
    let stays = guard::is_needed(&deployment.registry, &session);
    if let Some(watcher) = agent.watcher.take().filter(|_| !stays) {
        watcher.dismiss();
    }
    Ok(why)
}

/// Settings that were changed: name, value before, value.
fn raised(plan: &Plan) -> Vec<(String, String, String)> {
    let of = |step: &Step| match step {
        Step::Setting { name, value, was: Some(was) } => Some((name.clone(), was.clone(), value.clone())),
        _ => None,
    };
    plan.steps.iter().filter_map(of).collect()
}

/// Writes the session file, changes the machine and opens the ports.
fn open(
    deployment: &Deployment<'_>,
    file: &AgentFile,
    session: &Session,
    (plan, inherited): (&Plan, &Inherited),
) -> Result<(Opened, Loaded), Error> {
    // the watcher looks for itself in the session file
    deployment.registry.write(session)?;
    inherited.take_over();
    let loaded = Loaded::of(file)?;
    let opened = ports::open(file, plan)?;
    give_up_privileges().map_err(|e| Error::system("capabilities cannot be dropped", e))?;
    Ok((opened, loaded))
}

struct Running {
    way: Way,
    file: Arc<AgentFile>,
    path: String,
    sandbox: Sandbox,
    watcher: Option<Watcher>,
    server: Server,
    /// Until when it waits for its connections to end, once it was told to stop.
    drains: Option<Instant>,
    /// Settings that were changed: name, value before, value.
    raised: Vec<(String, String, String)>,
}

impl Running {
    /// Serves until all connections have ended after a signal; returns the reason.
    fn run_until_stopped(
        &mut self,
        deployment: &mut Deployment<'_>,
        mut signals: Signals,
    ) -> Result<String, Error> {
        let mut look = self.way.line().clock().now();
        let mut asks = false;
        loop {
            let next = self.way.turn()?;
            let now = self.way.line().clock().now();
            for _ in signals.take() {
                if self.drains.is_some() {
                    self.drains = Some(now);
                    continue;
                }
                self.way.stop_accepting();
                self.drains = Some(now + self.file.drain);
                let open = self.way.flows();
                deployment.inform("draining", format!("{open} connections"));
            }
            if asks || self.server.is_behind() {
                self.answer_requests();
            }
            if let Some(end) = self.drains {
                let open = self.way.flows();
                if open == 0 {
                    return Ok("stopped by a signal".to_owned());
                }
                if now >= end {
                    let how = self.way.let_go()?;
                    return Ok(format!("stopped by a signal; {open} connections {how}"));
                }
            }
            if now >= look {
                look = now + LOOK;
                self.look_at_watcher(deployment);
            }
            let soon = if self.server.is_behind() { now + SOON } else { Instant::NEVER };
            let until = next.min(soon).min(look).min(self.drains.unwrap_or(Instant::NEVER));
            let line = self.way.line();
            let [host, network] = line.fds();
            let mut fds = vec![host, network, signals.fd()];
            fds.extend(self.server.fds());
            let ready = wait::wait(&fds, Some(until), line.clock(), Duration::ZERO)
                .map_err(|e| Error::system("waiting", e))?;
            asks = (3..fds.len()).any(|i| ready.has(i));
        }
    }

    fn look_at_watcher(&mut self, deployment: &mut Deployment<'_>) {
        if self.watcher.as_mut().is_some_and(|watcher| !watcher.is_alive()) {
            self.watcher = None;
            let text = "the process that would reset the connections of a killed agent has ended";
            deployment.warn("watcher", text);
        }
    }

    fn answer_requests(&mut self) {
        let Self { way, file, path, sandbox, watcher, server, drains, raised } = self;
        server.serve(&mut |request| {
            Ok(match request {
                Request::Status => {
                    let raised = KernelView { raised: raised.clone(), ..KernelView::default() };
                    let mut status = Status {
                        name: file.site.deploy.name.clone(),
                        file: path.clone(),
                        method: file.method.word().to_owned(),
                        kind: file.place.word().to_owned(),
                        draining: drains.is_some(),
                        memory: [0, 0, file.limits.memory.0],
                        sandbox: sandbox.clone(),
                        watcher: watcher.as_ref().map(|watcher| watcher.process.pid),
                        kernel: (file.method == Method::Kernel).then_some(raised),
                        ..Status::default()
                    };
                    way.describe(&mut status);
                    Reply::Status(Box::new(status))
                }
            })
        });
    }
}
