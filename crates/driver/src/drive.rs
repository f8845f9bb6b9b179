//! The data thread's loop: read from the ports, handle due events, send arrived packets, sleep.
//!
//! Events are handled at their scheduled times, so a late turn delays packets but never changes a rate; the
//! lateness of each packet is measured.

use crate::core::Core;
use crate::moderation::Moderation;
use crate::pacing::{COALESCE, Pacing, SPIN};
use bentpipe_base::{Duration, Instant, Size};
use bentpipe_os::realtime;
use bentpipe_os::wait::{Ready, wait};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A real-time thread that never sleeps is stopped by the kernel, for 50 ms in every second
/// (sched_rt_runtime_us). So when it has worked for this time, the thread sleeps for [`REST`]. Packets that
/// fall due meanwhile leave together, which is also cheaper.
const WORK: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_micros(100);
/// Up to this many descriptors are polled without allocating memory.
const FEW: usize = 64;
/// Longest sleep: even without a wake-up a stop is noticed after this time.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// Time for the network to release its packets after a stop, with [`Pacing::Cheap`].
const DRAIN: Duration = Duration::from_secs(5);

/// A hook that is called regularly on the data thread, for commands or samples.
pub trait TurnHook {
    /// Called in every turn, with the network at its present time. It must be quick. Returns false to end the
    /// run.
    fn on_turn(&mut self, core: &mut Core) -> bool;
    /// Time by which it must be called next, if there is one.
    fn next(&self) -> Option<Instant> {
        None
    }
}

/// The data thread's loop.
pub struct Driver {
    core: Core,
    hooks: Vec<Box<dyn TurnHook>>,
    wake: Arc<OwnedFd>,
    /// When it last slept; only with real-time priority, which requires regular sleeps.
    rested: Option<Instant>,
    /// For a thread that may give up real-time priority.
    moderation: Option<Moderation>,
}

impl Driver {
    /// A loop over `core`. A readable `wake` ends a sleep. A thread with real-time priority must sleep now
    /// and then even under load; with [`Pacing::Cheap`] it becomes an ordinary thread while traffic is dense.
    pub fn new(
        core: Core,
        wake: Arc<OwnedFd>,
        attendants: Vec<Box<dyn TurnHook>>,
        is_real_time: bool,
    ) -> Self {
        let rested = is_real_time.then(|| core.clock.now());
        let moderation = (is_real_time && core.pacing == Pacing::Cheap).then(Moderation::default);
        Self { core, hooks: attendants, wake, rested, moderation }
    }

    /// Runs until a hook ends it or a port is gone.
    ///
    /// # Errors
    /// When a port fails or the journal cannot be written.
    pub fn run(mut self) -> io::Result<Core> {
        let (mut ready, mut slept, mut end) = (self.core.all(), false, None);
        loop {
            let begun = self.core.clock.now();
            ready = self.core.read(ready)?;
            let sent = self.turn()?;
            if let Some(sent) = sent.filter(|_| slept) {
                self.core.lead.learn(sent.since(begun));
            }
            let now = self.core.clock.now();
            let mut next = now + LONGEST_WAIT;
            for attendant in &mut self.hooks {
                if !attendant.on_turn(&mut self.core) && end.is_none() {
                    if self.core.pacing == Pacing::Exact {
                        return self.core.end();
                    }
                    self.core.net.with(bentpipe_network::Network::release);
                    end = Some(now + DRAIN);
                }
                next = attendant.next().map_or(next, |at| at.min(next));
            }
            self.core.deliver()?;
            if end.is_some_and(|until| self.core.net.store.borrow().is_empty() || now >= until) {
                return self.core.end();
            }
            self.moderate(now);
            if self.rested.is_some_and(|at| now.since(at) > WORK) {
                self.rest()?;
            } else if ready.is_empty() {
                ready = self.sleep(next)?;
                slept = ready.is_empty();
                continue;
            }
            // a port with more input does not keep the others waiting
            ready = self.core.all();
            slept = false;
        }
    }

    /// Handles due events; returns the time when the first packet was sent.
    fn turn(&mut self) -> io::Result<Option<Instant>> {
        let core = &mut self.core;
        let now = core.clock.now();
        let until = match core.pacing {
            Pacing::Exact => core.lead.reach(now, core.net.network.next_at()),
            Pacing::Cheap => now,
        };
        core.advance(until);
        core.deliver()
    }

    /// Takes or gives up real-time priority depending on the traffic.
    fn moderate(&mut self, now: Instant) {
        let Some(moderation) = &mut self.moderation else { return };
        let bytes = Size(self.core.net.counters.received_bytes());
        let may = match (moderation.is_dense(now, bytes), self.rested.is_some()) {
            (true, true) => realtime::lower().is_ok().then_some(None),
            (false, false) => realtime::raise_again().then_some(Some(now)),
            _ => return,
        };
        match may {
            Some(rested) => self.rested = rested,
            // refused: keep the priority and do not ask again
            None => self.moderation = None,
        }
    }

    /// Sleeps for [`REST`], whatever arrives.
    fn rest(&mut self) -> io::Result<()> {
        let until = self.core.clock.now() + REST;
        wait(&[self.wake.as_fd()], Some(until), &self.core.clock, Duration::ZERO)?;
        self.rested = Some(self.core.clock.now());
        Ok(())
    }

    /// Sleeps until an event is due, or until `latest`; returns the readable ports.
    fn sleep(&mut self, latest: Instant) -> io::Result<Ready> {
        let core = &mut self.core;
        let before = core.clock.now();
        let held = core.net.has_arrived().then_some(Instant::ZERO);
        let next = held.or_else(|| core.net.network.next_at());
        let (next, spin) = match core.pacing {
            Pacing::Exact => {
                (next.map(|at| Instant(core.density.when(at).0.saturating_sub(core.lead.0.0))), SPIN)
            }
            Pacing::Cheap => (next.map(|at| at.max(before + COALESCE)), Duration::ZERO),
        };
        let deadline = next.map_or(latest, |at| at.min(latest));
        let wake = self.wake.as_fd();
        let mut few = [wake; FEW];
        let many: Vec<BorrowedFd<'_>>;
        let n = core.ports.len();
        // the last descriptor is the wake-up
        let fds = if n < FEW {
            few.iter_mut().zip(&core.ports).for_each(|(fd, port)| *fd = port.fd());
            &few[..=n]
        } else {
            many = core.ports.iter().map(|port| port.fd()).chain([wake]).collect();
            &many
        };
        let ready: Ready = wait(fds, Some(deadline), &core.clock, spin)?;
        let after = core.clock.now();
        if self.rested.is_some() && after.since(before) > COALESCE.max(spin * 2) {
            self.rested = Some(after);
        }
        if ready.has(n) {
            // the value of the event counter does not matter
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        Ok(ready)
    }
}
