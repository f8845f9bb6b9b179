//! Runs an agent: lock, check, session file, set-up, data path; then signals and requests; at the end all
//! changes are undone.

use super::Error;
use super::check::check;
use super::ports::{self, Opened};
use super::session::{self, Session, choose};
use super::stop::clean;
use super::watcher::{Watcher, absolute};
use crate::path::{FlowFile, Relay};
use crate::split::Split;
use crate::status::{MOST_FLOWS, Reply, Request, Status};
use bentpipe_accelerate::deploy::{self, Event, Level, Plan, Sandbox, give_up_privileges};
use bentpipe_base::{Duration, Instant, World};
use bentpipe_os::{namespace, random, wait};
use bentpipe_scenario::agent_file::AgentFile;
use bentpipe_service::{CheckStatus, Process, Registry, Server, Signals};
use rustix::process::Signal;
use std::path::PathBuf;
use std::sync::Arc;

/// Time between two looks at a client that is slow.
const SOON: Duration = Duration::from_millis(20);
/// Time between two looks at the watcher.
const LOOK: Duration = Duration::from_secs(1);
/// Time to send the last packets, of connections that are reset at the end.
const LAST_PACKETS: Duration = Duration::from_millis(200);

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
    let (session, plan, signals) = prepared?;
    let ended = serve(&mut deployment, file, session.clone(), &plan, signals);
    for line in session.base.undo.run() {
        deployment.inform("undone", line);
    }
    session::remove(&registry, &session, lock);
    deployment.inform("ended", ended?);
    Ok(())
}

/// All checks before the first change, and the session file.
fn prepare(deployment: &mut Deployment<'_>, file: &AgentFile) -> Result<(Session, Plan, Signals), Error> {
    let signals = Signals::listen(&[Signal::TERM, Signal::INT]).map_err(|e| Error::system("signals", e))?;
    let here = namespace::network().and_then(namespace::inode).map_err(|e| Error::system("/proc", e))?;
    let name = &file.site.deploy.name;
    clear_leftovers(deployment, name, here)?;
    let site = check(file, &deployment.registry).site;
    site.refuse()?;
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
    let session = Session { base, watcher: None };
    deployment.registry.write(&session)?;
    Ok((session, site.plan, signals))
}

/// Undoes what a killed agent of this name has left behind, in the network namespace `here`.
fn clear_leftovers(deployment: &mut Deployment<'_>, name: &str, here: u64) -> Result<(), Error> {
    let Some(dead) = deployment.registry.entry::<Session>(name) else { return Ok(()) };
    if dead.base.process.is_of_this_boot() {
        if dead.base.undo.network != here {
            return Err(Error::OtherNamespace(name.to_owned()));
        }
        for line in clean(&dead) {
            deployment.inform("leftover", line);
        }
    }
    deployment.registry.remove(name, &["agent", "agent-flows"]);
    Ok(())
}

/// Runs from the first change to the last packet; returns why it ended.
fn serve(
    deployment: &mut Deployment<'_>,
    file: AgentFile,
    mut session: Session,
    plan: &Plan,
    signals: Signals,
) -> Result<String, Error> {
    let server = Server::bind(&session.base.socket)?;
    let flows = session::flow_file(&deployment.registry, &session.base.name);
    let flows = FlowFile::create(&flows, file.limits.flows).map_err(|e| Error::system("the flow file", e))?;
    let watcher = Watcher::start(&absolute(deployment.path), &deployment.registry)?;
    session.watcher = Some(watcher.process.clone());
    let opened = open(deployment, &file, &session, plan);
    let (Opened { ports, unit, scope, mtu }, mut world) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            // there are no connections yet, and the changes are undone here
            watcher.dismiss();
            return Err(error);
        }
    };
    let folder = deployment.registry.folder().to_owned();
    let sandbox = Sandbox::enter(&file.site, deployment.path, &folder, &session.base.socket);
    if !sandbox.is_whole() {
        let text = format!("Landlock: {}; seccomp: {}", sandbox.landlock, sandbox.seccomp);
        deployment.warn("sandbox", text);
    }
    // a sleep must not last longer than asked; failing to set it is harmless
    let _ = wait::set_timer_slack();
    let file = Arc::new(file);
    let mut split = Split::new(&mut world, Arc::clone(&file), mtu);
    split.set_log(Box::new(flows));
    let mut relay = Relay::new(ports, unit, scope, split, world);
    if let Some(rules) = &file.datagrams {
        relay.take_datagrams(rules);
    }
    deployment.inform("started", format!("agent {} of {}", session.base.name, deployment.path));
    let path = deployment.path.to_owned();
    let mut agent = Running { relay, file, path, sandbox, watcher: Some(watcher), server, drains: None };
    let why = agent.run_until_stopped(deployment, signals)?;
    agent.relay.release_datagrams().map_err(|e| Error::Path(e.to_string()))?;
    // from now on packets take the direct path; what arrived earlier is still sent
    if let Some(line) = session.base.undo.remove_table() {
        deployment.inform("undone", line);
    }
    if let Some(watcher) = agent.watcher.take() {
        watcher.dismiss();
    }
    Ok(why)
}

/// Writes the session file, changes the machine and opens the ports.
fn open(
    deployment: &Deployment<'_>,
    file: &AgentFile,
    session: &Session,
    plan: &Plan,
) -> Result<(Opened, World), Error> {
    let world = World::new(random().map_err(|e| Error::system("/dev/urandom", e))?);
    deployment.registry.write(session)?;
    let opened = ports::open(file, plan)?;
    give_up_privileges().map_err(|e| Error::system("capabilities cannot be dropped", e))?;
    Ok((opened, world))
}

struct Running {
    relay: Relay,
    file: Arc<AgentFile>,
    path: String,
    sandbox: Sandbox,
    watcher: Option<Watcher>,
    server: Server,
    /// Until when it waits for its connections to end, once it was told to stop.
    drains: Option<Instant>,
}

impl Running {
    /// Serves until all connections have ended after a signal; returns the reason.
    fn run_until_stopped(
        &mut self,
        deployment: &mut Deployment<'_>,
        mut signals: Signals,
    ) -> Result<String, Error> {
        let mut look = self.relay.clock().now();
        let mut asks = false;
        loop {
            let next = self.relay.turn().map_err(|e| Error::Path(e.to_string()))?;
            let now = self.relay.clock().now();
            for _ in signals.take() {
                if self.drains.is_some() {
                    self.drains = Some(now);
                    continue;
                }
                self.relay.split().stop_accepting();
                self.drains = Some(now + self.file.drain);
                let open = self.relay.split().flows();
                deployment.inform("draining", format!("{open} connections"));
            }
            if asks || self.server.is_behind() {
                self.answer_requests();
            }
            if let Some(end) = self.drains {
                let open = self.relay.split().flows();
                if open == 0 {
                    return Ok("stopped by a signal".to_owned());
                }
                if now >= end {
                    self.reset_all()?;
                    return Ok(format!("stopped by a signal; {open} connections were reset"));
                }
            }
            if now >= look {
                look = now + LOOK;
                self.look_at_watcher(deployment);
            }
            let soon = if self.server.is_behind() { now + SOON } else { Instant::NEVER };
            let until = next.min(soon).min(look).min(self.drains.unwrap_or(Instant::NEVER));
            let [host, network] = self.relay.fds();
            let mut fds = vec![host, network, signals.fd()];
            fds.extend(self.server.fds());
            let ready = wait::wait(&fds, Some(until), self.relay.clock(), Duration::ZERO)
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

    /// Resets all connections, and sends the packets that say so.
    fn reset_all(&mut self) -> Result<(), Error> {
        let now = self.relay.clock().now();
        self.relay.split().abort_all(now);
        let end = now + LAST_PACKETS;
        while self.relay.clock().now() < end {
            let next = self.relay.turn().map_err(|e| Error::Path(e.to_string()))?.min(end);
            let [host, network] = self.relay.fds();
            wait::wait(&[host, network], Some(next), self.relay.clock(), Duration::ZERO)
                .map_err(|e| Error::system("waiting", e))?;
        }
        Ok(())
    }

    fn answer_requests(&mut self) {
        let Self { relay, file, path, sandbox, watcher, server, drains } = self;
        server.serve(&mut |request| {
            Ok(match request {
                Request::Status => {
                    let now = relay.clock().now();
                    let (traffic, drops) = (relay.traffic(), relay.drops().unwrap_or_default());
                    let datagrams = relay.datagram_status(MOST_FLOWS);
                    let split = relay.split();
                    Reply::Status(Box::new(Status {
                        name: file.site.deploy.name.clone(),
                        file: path.clone(),
                        method: "split".to_owned(),
                        kind: file.place.word().to_owned(),
                        uptime_s: now.as_secs_f64(),
                        draining: drains.is_some(),
                        open: split.flows(),
                        flows: split.views(now, MOST_FLOWS),
                        counters: split.counters(),
                        traffic,
                        datagrams,
                        port_drops: named(&drops),
                        memory: [split.reserved(), split.used(), file.limits.memory.0],
                        sandbox: sandbox.clone(),
                        watcher: watcher.as_ref().map(|watcher| watcher.process.pid),
                    }))
                }
            })
        });
    }
}

/// Packets lost at the ports, by place; places without losses are left out.
fn named(drops: &[bentpipe_os::PortDrops; 2]) -> Vec<(String, u64)> {
    let sides = ["host", "network"].into_iter().zip(drops);
    let all = sides.flat_map(|(side, drops)| {
        [("received", drops.receive), ("sent", drops.send)].map(|(what, n)| (format!("{side} {what}"), n))
    });
    all.filter(|(_, n)| *n > 0).collect()
}
