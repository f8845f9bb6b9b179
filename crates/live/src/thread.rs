//! Starts the data thread of a link and ends it.

use crate::addresses::Addresses;
use crate::control::{Command, Commands};
use crate::journal::{Journal, JournalError, Preamble};
use crate::lateness::Timing;
use crate::network::Net;
use crate::relay::Relay;
use crate::samples::Samples;
use bentpipe_base::{Instant, NodeId};
use bentpipe_os::realtime::{self, Priority};
use bentpipe_os::wait::set_timer_slack;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_report::{InstrumentReport, LinkReport};
use bentpipe_scenario::{Scenario, to_toml};
use bentpipe_sim::Record;
use bentpipe_sim::report::link_reports;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Why a live link could not run.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A port, or the thread itself.
    #[error("the link stopped: {0}")]
    Port(#[from] io::Error),
    /// The thread panicked: a bug.
    #[error("the link stopped: an internal check failed; please report it")]
    Panicked,
}

/// A host's door, given to the thread.
pub struct Door {
    /// The host's place among the scenario's nodes.
    pub host: usize,
    /// Where its packets come and go.
    pub port: Box<dyn PacketPort>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

impl core::fmt::Debug for Door {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Door")
            .field("host", &self.host)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// What runs.
#[derive(Debug)]
pub struct Setup {
    /// The network.
    pub scenario: Scenario,
    /// How much faster the scenario's timeline runs.
    pub speed: f64,
    /// The hosts.
    pub doors: Vec<Door>,
    /// The host that leads on to other networks.
    pub gate: Option<usize>,
    /// The run's clock, shared with everything that takes part.
    pub clock: Clock,
    /// Where to record all inputs.
    pub journal: Option<PathBuf>,
    /// Keep series of the links, and what the scenario's instruments see.
    pub record: bool,
    /// Ask for real-time priority.
    pub realtime: bool,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// Links, as in a simulated report.
    pub links: Vec<LinkReport>,
    /// Series of the links, when asked for.
    pub record: Option<Record>,
    /// What the scenario's instruments saw, when series were asked for.
    pub instruments: Vec<InstrumentReport>,
    /// Whether the machine was fast enough.
    pub timing: Timing,
    /// When it ended.
    pub until: Instant,
    /// What priority the thread had, and why no better.
    pub priority: String,
}

/// A link that is running.
#[derive(Debug)]
pub struct Running {
    thread: JoinHandle<Result<Outcome, LiveError>>,
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
}

/// Something to install on the network before it runs: a tap that captures, made on the data thread.
pub type Install = Box<dyn FnOnce(&mut Net) + Send>;

impl Running {
    /// Starts the thread and waits until it is ready to relay.
    ///
    /// # Errors
    /// When it could not start, or the journal cannot be written.
    pub fn start(setup: Setup, install: Option<Install>) -> Result<Self, LiveError> {
        let wake =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let (commands, receiver) = channel();
        let (ready, is_ready) = sync_channel(1);
        let ours = Arc::clone(&wake);
        let thread = Builder::new()
            .name("bentpipe-link".to_owned())
            .spawn(move || relay(setup, install, receiver, &ours, &ready))?;
        let running = Self { thread, commands, wake };
        // an error on the way there closes the channel
        if is_ready.recv().is_err() {
            return Err(running.join().err().unwrap_or(LiveError::Panicked));
        }
        Ok(running)
    }

    /// Sends a command to the thread and wakes it.
    pub fn command(&self, command: Command) {
        // a thread that has ended answers nobody: the command's own reply channel says so
        let _ = self.commands.send(command);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// True when the thread has ended by itself: a port is gone.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the run.
    ///
    /// # Errors
    /// What ended it before, if something did.
    pub fn stop(self) -> Result<Outcome, LiveError> {
        self.command(Command::Stop);
        self.join()
    }

    fn join(self) -> Result<Outcome, LiveError> {
        self.thread.join().unwrap_or(Err(LiveError::Panicked))
    }
}

fn relay(
    setup: Setup,
    install: Option<Install>,
    commands: Receiver<Command>,
    wake: &Arc<OwnedFd>,
    ready: &SyncSender<()>,
) -> Result<Outcome, LiveError> {
    set_timer_slack()?;
    let raised = setup.realtime.then(realtime::raise);
    let is_real_time = raised.as_ref().is_some_and(|r| matches!(r.priority, Priority::RealTime(_)));
    let priority = raised.map_or_else(|| "ordinary priority, as asked".to_owned(), |r| r.to_string());
    let Setup { mut scenario, speed, doors, gate, clock, journal, record, .. } = setup;
    let known: Vec<(usize, IpAddr)> =
        doors.iter().flat_map(|d| d.addresses.iter().map(|a| (d.host, *a))).collect();
    let journal = journal
        .map(|path| Journal::create(&path, &Preamble::new(to_toml(&scenario), speed, known.clone(), gate)))
        .transpose()?;
    crate::speed::faster(&mut scenario, speed);
    let mut net = Net::new(&scenario, Addresses::new(known, gate));
    if let Some(install) = install {
        install(&mut net);
    }
    let samples = record.then(|| Samples::new(&scenario, &mut net));
    let links: Vec<(String, NodeId)> = net.network.links.clone();
    let ports = doors.into_iter().map(|d| (d.host, d.port)).collect();
    let mut relay = Relay::new(net, clock, ports, Arc::clone(wake))
        .with_journal(journal)
        .with(Box::new(Commands::new(commands, &scenario, links)));
    if is_real_time {
        relay = relay.resting();
    }
    if let Some(samples) = &samples {
        relay = relay.with(Box::new(samples.clone()));
    }
    // nobody waits any more: then a stop is on its way too
    let _ = ready.send(());
    let mut core = relay.run()?;
    let (record, instruments) = samples.and_then(|s| s.finish(&mut core.net)).unzip();
    Ok(Outcome {
        links: link_reports(&mut core.net.network),
        record,
        instruments: instruments.unwrap_or_default(),
        timing: core.timing()?,
        until: core.net.now(),
        priority,
    })
}
