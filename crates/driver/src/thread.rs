//! Starts and stops the data thread of a driver.

use crate::core::Core;
use crate::drive::{Driver, TurnHook};
use crate::journal::{Journal, JournalError};
use crate::network::LiveNetwork;
use crate::pacing::Pacing;
use bentpipe_os::realtime::{self, Priority};
use bentpipe_os::wait::set_timer_slack;
use bentpipe_os::{Clock, PacketPort};
use rustix::event::{EventfdFlags, eventfd};
use std::io::{self, PipeReader};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Why a driver could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An error of a port or of the thread.
    #[error("the data thread stopped: {0}")]
    Port(#[from] io::Error),
    /// The thread panicked: a bug.
    #[error("the data thread stopped: an internal check failed; please report it")]
    Panicked,
}

/// Parameters of the data thread.
#[derive(Debug)]
pub struct ThreadSetup {
    /// Name of the thread.
    pub name: &'static str,
    /// The ports, in the order of the network's open ends.
    pub ports: Vec<Box<dyn PacketPort>>,
    /// The run's clock, shared by all parts of the run.
    pub clock: Clock,
    /// How it waits.
    pub pacing: Pacing,
    /// True to ask for real-time priority.
    pub realtime: bool,
}

/// Objects created on the data thread, which owns them.
pub struct NetworkSetup<T> {
    /// The network.
    pub net: LiveNetwork,
    /// Record of the inputs.
    pub journal: Option<Journal>,
    /// Called before the first packet: to take over the flows of an earlier gateway.
    pub begin: Option<DataThreadTask>,
    /// Hooks that are called on the thread.
    pub hooks: Vec<Box<dyn TurnHook>>,
    /// Converts the final state to the run's result.
    pub finish: Box<dyn FnOnce(Core) -> Result<T, Error>>,
}

/// A function to run on the data thread.
pub type DataThreadTask = Box<dyn FnOnce(&mut Core) + Send>;

/// The data thread's side of [`Running`].
struct Shared {
    tasks: Receiver<DataThreadTask>,
    stop: Arc<AtomicBool>,
}

/// Runs the tasks of [`Running::call`] between turns, and ends the run when it is stopped.
impl TurnHook for Shared {
    fn on_turn(&mut self, core: &mut Core) -> bool {
        while let Ok(errand) = self.tasks.try_recv() {
            errand(core);
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

/// A running driver. Dropping it stops it.
#[derive(Debug)]
pub struct Running<T> {
    thread: Option<JoinHandle<Result<T, Error>>>,
    tasks: Sender<DataThreadTask>,
    stop: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
    /// Reaches end of file when the thread ends.
    ended: PipeReader,
    /// Priority of the thread and why it is not higher, and whether it is a real-time one.
    priority: (String, bool),
}

impl<T: Send + 'static> Running<T> {
    /// Starts the thread and waits until it is ready. `make` creates the network there.
    ///
    /// # Errors
    /// When the thread cannot be created, or an error of `make`.
    pub fn start(
        setup: ThreadSetup,
        make: impl FnOnce() -> Result<NetworkSetup<T>, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags).map_err(io::Error::from)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (errands, receiver) = channel();
        let (ended, end) = io::pipe()?;
        let (tell, told) = sync_channel(1);
        let ours = Arc::clone(&wake);
        let shared = Shared { tasks: receiver, stop: Arc::clone(&stop) };
        let thread = Builder::new().name(setup.name.to_owned()).spawn(move || {
            // closed when the thread ends, however it ends
            let _end = end;
            run(setup, make, shared, ours, &tell)
        })?;
        let mut running = Self {
            thread: Some(thread),
            tasks: errands,
            stop,
            wake,
            ended,
            priority: (String::new(), false),
        };
        // if starting fails, the channel is closed without a message
        match told.recv() {
            Ok(priority) => running.priority = priority,
            Err(_) => return Err(running.join().and_then(Result::err).unwrap_or(Error::Panicked)),
        }
        Ok(running)
    }

    /// Calls `act` on the data thread between two turns and returns its result; `None` if the thread has
    /// ended. It must be quick, since packets wait meanwhile.
    pub fn call<A: Send + 'static>(&self, act: impl FnOnce(&mut Core) -> A + Send + 'static) -> Option<A> {
        let (answer, answered) = channel();
        let errand = move |core: &mut Core| {
            // the caller may be gone
            let _ = answer.send(act(core));
        };
        self.tasks.send(Box::new(errand)).ok()?;
        self.wake();
        answered.recv().ok()
    }

    /// Stops the run and returns its result.
    ///
    /// # Errors
    /// The error that ended it earlier, if any.
    pub fn stop(mut self) -> Result<T, Error> {
        self.join().unwrap_or(Err(Error::Panicked))
    }
}

impl<T> Running<T> {
    /// Priority of the thread, why it is not higher, and whether it is a real-time one.
    pub fn priority(&self) -> (&str, bool) {
        (&self.priority.0, self.priority.1)
    }

    /// Readable (end of file) when the thread has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Wakes the thread, because one of its hooks has something to do.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// True if the thread has ended by itself, because a port is gone.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self) -> Option<Result<T, Error>> {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
        Some(self.thread.take()?.join().unwrap_or(Err(Error::Panicked)))
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn run<T>(
    setup: ThreadSetup,
    make: impl FnOnce() -> Result<NetworkSetup<T>, Error>,
    shared: Shared,
    wake: Arc<OwnedFd>,
    tell: &SyncSender<(String, bool)>,
) -> Result<T, Error> {
    set_timer_slack()?;
    let raised = setup.realtime.then(realtime::raise);
    let is_real_time = raised.as_ref().is_some_and(|r| matches!(r.priority, Priority::RealTime(_)));
    let priority = raised.map_or_else(|| "ordinary priority, as asked".to_owned(), |r| r.to_string());
    let NetworkSetup { net, journal, begin, hooks: attendants, finish } = make()?;
    let mut core = Core::new(net, setup.ports, setup.clock, setup.pacing);
    if journal.is_some() {
        core.net.keep_digest();
    }
    core.journal = journal;
    if let Some(begin) = begin {
        begin(&mut core);
    }
    let mut hooks: Vec<Box<dyn TurnHook>> = vec![Box::new(shared)];
    hooks.extend(attendants);
    let driver = Driver::new(core, wake, hooks, is_real_time);
    // the channel has room for one message, and the receiver waits for it
    let _ = tell.try_send((priority, is_real_time));
    finish(driver.run()?)
}
