//! The watcher: a process that resets the connections of an agent that was killed.
//!
//! It is started by the agent, with a pipe as its standard input. At its end without a word before, the agent
//! has died. The watcher then opens the agent's ports again, in the place of the agent: packets that are not
//! of its connections pass, and both ends of its connections are reset ([`Split::mourn`]). After some seconds
//! it undoes what the agent changed on the machine, and ends.
//!
//! With the method `kernel` it undoes the changes at once, and keeps only the guard (`guard.rs`).
//!
//! ```text
//! pipe ends -> flow file is read -> ports -> all ends are probed at 0, 0.3, 0.8, 1.5 s -> 5 s -> undo
//! ```

use super::Error;
use super::guard;
use super::ports;
use super::session::{self, Session};
use crate::kernel::open_sockets;
use crate::path::{FlowFile, Relay};
use crate::split::{FlowKey, Split};
use bentpipe_base::{Duration, World};
use bentpipe_os::{Clock, random, wait};
use bentpipe_scenario::agent_file::{AgentFile, Method};
use bentpipe_service::{Process, Registry, Signals};
use rustix::process::Signal;
use std::fs::File;
use std::io::{Read as _, Write as _, stdin};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

/// When both ends are asked where they are, after the agent's death.
const PROBES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(300), Duration::from_millis(800), Duration::from_millis(1500)];
/// How long packets of the agent's connections are answered after its death.
const STAY: Duration = Duration::from_secs(5);
/// Time between two looks at the sockets of flows that were negotiated.
const LOOK: Duration = Duration::from_secs(1);
/// The word that tells the watcher that the agent ends by itself.
const FAREWELL: &[u8] = b"end";

/// A running watcher, as seen by its agent.
#[derive(Debug)]
pub(super) struct Watcher {
    child: Child,
    pub(super) process: Process,
}

impl Watcher {
    /// Starts the watcher of the agent of `path` as the program `bentpipe agent __mourn`.
    pub(super) fn start(path: &str, registry: &Registry) -> Result<Self, Error> {
        let mut command = bentpipe_os::own_program();
        command.args(["agent", "--run-dir"]).arg(registry.folder()).args(["__mourn", path]);
        // a Ctrl-C in the terminal is for the agent
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let child = command.spawn().map_err(|e| Error::system("the watcher", e))?;
        let process = Process::of(i32::try_from(child.id()).unwrap_or_default());
        Ok(Self { child, process })
    }

    /// True while it runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Tells it that the agent ends by itself, and waits for it.
    pub(super) fn dismiss(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // if it has died, there is nothing to tell
            let _ = pipe.write_all(FAREWELL);
        }
        let _ = self.child.wait();
    }
}

/// Waits for the death of the agent of `file`, then resets its connections. Returns their number.
///
/// # Errors
/// When its ports cannot be opened again.
pub fn mourn(file: AgentFile, registry: &Registry) -> Result<usize, Error> {
    let signals = Signals::listen(&[Signal::TERM, Signal::INT, Signal::HUP])
        .map_err(|e| Error::system("signals", e))?;
    let mut word = Vec::new();
    // at the agent's death the kernel closes the pipe
    let _ = stdin().read_to_end(&mut word);
    if word == FAREWELL {
        return Ok(0);
    }
    let name = file.site.deploy.name.clone();
    let watched = || {
        let session = registry.entry::<Session>(&name)?;
        (session.watcher.as_ref() == Some(&Process::this())).then_some(session)
    };
    // without its session file the agent has undone its changes itself, or has changed nothing yet
    let Some(session) = watched() else { return Ok(0) };
    if file.method == Method::Kernel {
        session.base.undo.run();
        if !session.guard.is_empty() {
            keep_guard(&guard::flows(registry, &session), signals, &watched);
        }
        return Ok(0);
    }
    let reset = take_over(file, registry, &session, signals);
    // the changes of an agent that was started again meanwhile are its own
    if let Some(session) = watched() {
        session.base.undo.run();
    }
    reset
}

/// Keeps the guard until the last socket of the dead agent's flows is gone, then removes it. It stays if the
/// watcher is told to end, since another process then sees to it.
fn keep_guard(flows: &[FlowKey], mut signals: Signals, watched: &impl Fn() -> Option<Session>) {
    // who reads what the agent writes need not wait for this process
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
    let clock = Clock::start();
    // where it cannot be seen which sockets are open, they may be
    while !open_sockets(flows).is_ok_and(|open| open.is_empty()) {
        let next = clock.now() + LOOK;
        // a failure to wait only makes the next look earlier
        let _ = wait::wait(&[signals.fd()], Some(next), &clock, Duration::ZERO);
        if !signals.take().is_empty() || watched().is_none() {
            return;
        }
    }
    guard::remove();
}

/// Resets the connections of the dead agent.
fn take_over(
    file: AgentFile,
    registry: &Registry,
    session: &Session,
    signals: Signals,
) -> Result<usize, Error> {
    let name = file.site.deploy.name.clone();
    let dead = FlowFile::read(&session::flow_file(registry, &name)).unwrap_or_default();
    if dead.is_empty() {
        return Ok(0);
    }
    // its interfaces are free when it is gone
    bentpipe_service::wait_until(STAY, Duration::from_millis(2), || !session.base.process.is_alive());
    let opened = ports::reopen(&file)?;
    let mut world = World::new(random().map_err(|e| Error::system("/dev/urandom", e))?);
    let file = Arc::new(file);
    let mut split = Split::new(&mut world, Arc::clone(&file), opened.mtu);
    split.mourn(&dead);
    let mut relay = Relay::new(opened.ports, opened.unit, opened.scope, split, world);
    if let Some(rules) = &file.datagrams {
        relay.take_datagrams(rules);
    }
    answer(&mut relay, signals)?;
    relay.release_datagrams().map_err(|e| Error::Path(e.to_string()))?;
    Ok(dead.len())
}

/// Probes both ends of all connections, and answers their packets.
fn answer(relay: &mut Relay, mut signals: Signals) -> Result<(), Error> {
    let start = relay.line().clock().now();
    let mut probes = PROBES.iter().map(|after| start + *after).peekable();
    let end = start + STAY;
    loop {
        let now = relay.line().clock().now();
        if now >= end || !signals.take().is_empty() {
            return Ok(());
        }
        if probes.next_if(|at| *at <= now).is_some() {
            relay.split().probe();
        }
        let next = relay.turn().map_err(|e| Error::Path(e.to_string()))?;
        let next = probes.peek().map_or(next, |at| next.min(*at)).min(end);
        let line = relay.line();
        let [host, network] = line.fds();
        wait::wait(&[host, network, signals.fd()], Some(next), line.clock(), Duration::ZERO)
            .map_err(|e| Error::system("waiting", e))?;
    }
}

/// The path of the file from the root: the watcher reads it too.
pub(super) fn absolute(path: &str) -> String {
    std::path::absolute(Path::new(path)).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}
