//! Starts the data thread and ends it.

use super::addresses::Addresses;
use super::buffers::Buffers;
use super::counters::Counters;
use super::drive::{Attendant, Core, Drive, Middle};
use super::frame::Unit;
use bentpipe_base::{Instant, Size, World};
use bentpipe_os::realtime::{self, Priority};
use bentpipe_os::wait::set_timer_slack;
use bentpipe_os::{Clock, PacketPort};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// What runs.
pub struct Setup<N> {
    /// The two ports: the LAN's, the satellite's.
    pub ports: [Box<dyn PacketPort>; 2],
    /// Where their units begin.
    pub unit: Unit,
    /// Makes the node, on the data thread.
    pub node: Box<dyn FnOnce(&mut World) -> N + Send>,
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
#[derive(Debug)]
pub struct Running<N> {
    thread: Option<JoinHandle<io::Result<Outcome<N>>>>,
    stop: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
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
        let (ours, stopping) = (Arc::clone(&wake), Stop(Arc::clone(&stop)));
        let run = move || drive(setup, stopping, ours);
        let thread = Builder::new().name("bentpipe-path".to_owned()).spawn(run)?;
        Ok(Self { thread: Some(thread), stop, wake })
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

fn drive<N: Middle>(setup: Setup<N>, stop: Stop, wake: Arc<OwnedFd>) -> io::Result<Outcome<N>> {
    set_timer_slack()?;
    let raised = setup.realtime.then(realtime::raise);
    let is_real_time = raised.as_ref().is_some_and(|r| matches!(r.priority, Priority::RealTime(_)));
    let priority = raised.map_or_else(|| "ordinary priority, as asked".to_owned(), |r| r.to_string());
    let mut world = World::new(setup.seed);
    let node = (setup.node)(&mut world);
    let mut core = Core::new(node, world, setup.ports, setup.unit, setup.clock);
    core.buffers = Buffers::new(setup.memory);
    core.addresses = Addresses::new(setup.addresses);
    let mut drive = Drive::new(core, wake).with(Box::new(stop));
    for attendant in setup.attendants {
        drive = drive.with(attendant);
    }
    if is_real_time {
        drive = drive.resting();
    }
    let mut core = drive.run()?;
    let counters = core.counters()?.clone();
    Ok(Outcome { node: core.node, counters, priority })
}
