//! The data thread's loop: read what the ports have, do what is due, sleep until the next thing is due or a packet comes.

use super::core::{Core, Middle};
use super::moderation::Moderation;
use bentpipe_base::{Duration, Instant};
use bentpipe_gateway::Gateway;
use bentpipe_os::realtime;
use bentpipe_os::wait::{Ready, wait};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

/// What falls due within so much of now is done together: a turn costs a system call or two.
const TOGETHER: Duration = Duration::from_micros(50);
/// A thread with real-time priority that never sleeps is stopped by the kernel for 50 ms of every second (sched_rt_runtime_us): so after working
/// for this long it rests for that long.
const WORK: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_micros(100);
/// Longest sleep: a stop that was asked for without a wake-up is seen then.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// How long what the node holds has to leave after the end was asked for.
const DRAIN: Duration = Duration::from_secs(5);

/// Something that wants to be called on the data thread: commands, samples.
pub trait Attendant<N> {
    /// Called every turn; must be quick. False ends the run, after what is held has left.
    fn attend(&mut self, core: &mut Core<N>) -> bool;
    /// When it wants to be called next at the latest.
    fn next(&self) -> Option<Instant>;
}

/// The loop.
pub struct Drive<N = Gateway> {
    core: Core<N>,
    attendants: Vec<Box<dyn Attendant<N>>>,
    wake: Arc<OwnedFd>,
    /// When it last slept, if it must now and then: while it has real-time priority.
    rested: Option<Instant>,
    /// Of a thread that may have real-time priority.
    moderation: Option<Moderation>,
}

impl<N: std::fmt::Debug> core::fmt::Debug for Drive<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("core", &self.core).finish_non_exhaustive()
    }
}

impl<N: Middle> Drive<N> {
    /// A loop over `core`. Something readable at `wake` ends a sleep.
    pub fn new(core: Core<N>, wake: Arc<OwnedFd>) -> Self {
        Self { core, attendants: Vec::new(), wake, rested: None, moderation: None }
    }

    /// For a thread with real-time priority: it rests now and then even when there is always something to do, as it must, and is an ordinary thread while traffic is dense.
    #[must_use]
    pub fn in_real_time(mut self) -> Self {
        self.rested = Some(self.core.clock.now());
        self.moderation = Some(Moderation::default());
        self
    }

    /// Takes and gives up real-time priority with the traffic.
    fn moderate(&mut self, now: Instant) {
        let Some(moderation) = &mut self.moderation else { return };
        let may = match (moderation.is_dense(now, self.core.received()), self.rested.is_some()) {
            (true, true) => realtime::lower().is_ok().then_some(None),
            (false, false) => realtime::raise_again().then_some(Some(now)),
            _ => return,
        };
        match may {
            Some(rested) => self.rested = rested,
            // refused: it stays as it is, and is not asked for again
            None => self.moderation = None,
        }
    }

    /// Adds somebody who is called on the data thread.
    #[must_use]
    pub fn with(mut self, attendant: Box<dyn Attendant<N>>) -> Self {
        self.attendants.push(attendant);
        self
    }

    /// Runs until an attendant ends it and what the node held has left, or a port is gone.
    ///
    /// # Errors
    /// When a port fails.
    pub fn run(mut self) -> io::Result<Core<N>> {
        let both = Ready::first(2);
        let mut ready = both;
        let mut end: Option<Instant> = None;
        loop {
            ready = self.core.read(ready)?;
            let now = self.core.clock.now();
            self.core.advance(now)?;
            let mut next = now + LONGEST_WAIT;
            for attendant in &mut self.attendants {
                if !attendant.attend(&mut self.core) && end.is_none() {
                    self.core.call(Middle::release)?;
                    end = Some(now + DRAIN);
                }
                next = attendant.next().map_or(next, |at| at.min(next));
            }
            if end.is_some_and(|until| self.core.buffers.is_empty() || now >= until) {
                return Ok(self.core);
            }
            self.moderate(now);
            if self.rested.is_some_and(|at| now.since(at) > WORK) {
                self.sleep(false, now + REST)?;
                self.rested = Some(self.core.clock.now());
                ready = both;
            } else if ready.is_empty() {
                // what is due soon is done together
                let due = self.core.next_at().map(|at| at.max(now + TOGETHER));
                let next = due.map_or(next, |at| at.min(next));
                ready = self.sleep(true, next)?;
            } else {
                ready = both;
            }
        }
    }

    /// Sleeps until `deadline`, a wake-up, or when it listens to the ports until one has something; tells which.
    fn sleep(&mut self, listens: bool, deadline: Instant) -> io::Result<Ready> {
        let core = &self.core;
        let fds = [core.ports[0].fd(), core.ports[1].fd(), self.wake.as_fd()];
        let fds = if listens { &fds[..] } else { &fds[2..] };
        let before = core.clock.now();
        let ready = wait(fds, Some(deadline), &core.clock, Duration::ZERO)?;
        let after = core.clock.now();
        if self.rested.is_some() && after.since(before) > TOGETHER {
            self.rested = Some(after);
        }
        if ready.has(fds.len() - 1) {
            // it is only there to wake us
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        Ok(ready)
    }
}
