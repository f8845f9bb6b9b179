//! Starts the data thread and ends it.

use super::addresses::Addresses;
use super::buffers::Buffers;
use super::core::{Core, Middle};
use super::counters::Counters;
use super::drive::{Attendant, Drive};
use super::frame::Unit;
use bentpipe_base::{Instant, Size, World};
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

/// What runs.
pub struct Setup<N> {
    /// The two ports: the LAN's, the satellite's.
    pub ports: [Box<dyn PacketPort>; 2],
    /// Where their units begin.
    pub unit: Unit,
    /// Makes the node, on the data thread.
    pub node: Box<dyn FnOnce(&mut World) -> N + Send>,
    /// What is done there before the first packet: to take up the flows of an earlier gateway, addresses first.
    pub begin: Option<Errand<N>>,
    /// Who else is called there.
    pub attendants: Vec<Box<dyn Attendant<N> + Send>>,
    /// The run's clock.
    pub clock: Clock,
    /// Seed of the node's random choices.
    pub seed: u64,
    /// Bytes of buffers at most.
    pub memory: Size,
    /// Addresses at most.
    pub addresses: u32,
    /// Ask for real-time priority.
    pub realtime: bool,
}

impl<N> core::fmt::Debug for Setup<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Setup").field("ports", &self.ports).field("unit", &self.unit).finish_non_exhaustive()
    }
}

/// What came out.
#[derive(Debug)]
pub struct Outcome<N> {
    /// The node.
    pub node: N,
    /// What the path did.
    pub counters: Counters,
    /// What priority the thread had, and why no better.
    pub priority: String,
}

/// A data path that is running. Dropping it ends it.
pub struct Running<N> {
    thread: Option<JoinHandle<io::Result<Outcome<N>>>>,
    errands: Sender<Errand<N>>,
    stop: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
    /// At its end when the thread is.
    ended: PipeReader,
    /// What priority the thread has, and whether it is a real-time one.
    priority: (String, bool),
}

impl<N> core::fmt::Debug for Running<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Running").field("thread", &self.thread).finish_non_exhaustive()
    }
}

/// Something to do on the data thread.
pub type Errand<N> = Box<dyn FnOnce(&mut Core<N>) + Send>;

/// Runs what others ask for between turns.
struct Errands<N>(Receiver<Errand<N>>);

impl<N> Attendant<N> for Errands<N> {
    fn attend(&mut self, core: &mut Core<N>) -> bool {
        while let Ok(errand) = self.0.try_recv() {
            errand(core);
        }
        true
    }
    fn next(&self) -> Option<Instant> {
        None
    }
}

/// Ends the run when it is told to.
struct Stop(Arc<AtomicBool>);

impl<N> Attendant<N> for Stop {
    fn attend(&mut self, _: &mut Core<N>) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
    fn next(&self) -> Option<Instant> {
        None
    }
}

impl<N: Middle + Send + 'static> Running<N> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel gives no thread, or nothing to wake it with.
    pub fn start(setup: Setup<N>) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (errands, receiver) = channel();
        let (ended, end) = io::pipe()?;
        let (tell, told) = sync_channel(1);
        let (ours, attendants) = (Arc::clone(&wake), (Errands(receiver), Stop(Arc::clone(&stop))));
        let run = move || {
            // closed with the thread, however it ends
            let _end = end;
            drive(setup, attendants, ours, &tell)
        };
        let thread = Builder::new().name("bentpipe-path".to_owned()).spawn(run)?;
        // it is the first thing that the thread does; one that has panicked says so when it is joined
        let priority = told.recv().unwrap_or_default();
        Ok(Self { thread: Some(thread), errands, stop, wake, ended, priority })
    }

    /// What priority the thread has, why no better, and whether it is a real-time one.
    pub fn priority(&self) -> (&str, bool) {
        (&self.priority.0, self.priority.1)
    }

    /// Does something on the data thread between two turns and waits for it; `None` when the thread has ended. It must be quick: packets wait.
    pub fn ask<T: Send + 'static>(&self, act: impl FnOnce(&mut Core<N>) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = channel();
        let errand = move |core: &mut Core<N>| {
            // who asked may have gone
            let _ = answer.send(act(core));
        };
        self.errands.send(Box::new(errand)).ok()?;
        self.wake();
        answered.recv().ok()
    }

    /// At its end, so readable, when the thread has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Wakes the thread: somebody who is called there has something to do.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// True when the thread has ended by itself: a port is gone.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the run after what is held has left.
    ///
    /// # Errors
    /// When a port was gone before, or the thread panicked: a bug.
    pub fn stop(mut self) -> io::Result<Outcome<N>> {
        self.join().unwrap_or_else(|| Err(io::Error::other("the data path was ended before")))
    }
}

impl<N> Running<N> {
    fn join(&mut self) -> Option<io::Result<Outcome<N>>> {
        self.stop.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        let joined = self.thread.take()?.join();
        Some(joined.unwrap_or_else(|_| {
            Err(io::Error::other("the data path stopped: an internal check failed; please report it"))
        }))
    }
}

impl<N> Drop for Running<N> {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn drive<N: Middle + 'static>(
    setup: Setup<N>,
    (errands, stop): (Errands<N>, Stop),
    wake: Arc<OwnedFd>,
    tell: &SyncSender<(String, bool)>,
) -> io::Result<Outcome<N>> {
    set_timer_slack()?;
    let raised = setup.realtime.then(realtime::raise);
    let is_real_time = raised.as_ref().is_some_and(|r| matches!(r.priority, Priority::RealTime(_)));
    let priority = raised.map_or_else(|| "ordinary priority, as asked".to_owned(), |r| r.to_string());
    // there is room for one, and who asked waits for it
    let _ = tell.try_send((priority.clone(), is_real_time));
    let mut world = World::new(setup.seed);
    let node = (setup.node)(&mut world);
    let mut core = Core::new(node, world, setup.ports, setup.unit, setup.clock);
    core.buffers = Buffers::new(setup.memory);
    core.addresses = Addresses::new(setup.addresses);
    if let Some(begin) = setup.begin {
        begin(&mut core);
    }
    let mut drive = Drive::new(core, wake).with(Box::new(errands)).with(Box::new(stop));
    for attendant in setup.attendants {
        drive = drive.with(attendant);
    }
    if is_real_time {
        drive = drive.in_real_time();
    }
    let mut core = drive.run()?;
    let counters = core.counters()?.clone();
    Ok(Outcome { node: core.node, counters, priority })
}
