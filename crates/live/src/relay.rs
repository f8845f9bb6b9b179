//! The data thread: packets from ports into the network, and out of it when they are due, under the real clock.
//!
//! A turn of the loop: take the time, read what the ports have (each packet enters at the time the kernel had it), bring the network up to that time, send what
//! has arrived, and sleep until the next thing is due or a packet comes. Events are handled at their scheduled times, so a late turn delays packets but
//! never changes the rate; how late each packet left is measured. Handing a packet to the kernel takes time itself, after a sleep ten times as much as in
//! the midst of work (the processor has forgotten the way): so what is due next is begun that much before (`Aim`).

use crate::buffers::WHOLE;
use crate::journal::Journal;
use crate::lateness::{Lateness, Timing};
use crate::network::{Arrival, Net};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::wait::{Ready, wait};
use bentpipe_os::{Clock, PacketPort, PortDrops};
use bentpipe_wire::offload::HEADER_SPACE;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Super-packets read from one port before the others and the clock get their turn.
const BATCH: usize = 16;
/// The last bit of a short sleep is spent looking at the clock: what such a sleep oversleeps, nine times of ten.
const SPIN: Duration = Duration::from_micros(40);
/// A thread with real-time priority that never sleeps is stopped by the kernel for 50 ms of every second (sched_rt_runtime_us): so after working for
/// this long it rests for that long. What falls due meanwhile leaves together, which is also cheaper.
const WORK: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_micros(100);
/// When packets are due this densely, more than [`DENSE`] in a [`SPELL`], they leave together, this long after the ones before at the earliest: one
/// super-packet costs little more than one packet, and 100 us is a tenth of what counts as late.
const TOGETHER: Duration = Duration::from_micros(100);
const DENSE: u32 = 40;
const SPELL: Duration = Duration::from_millis(1);
/// Up to so many descriptors are waited for without asking for memory.
const FEW: usize = 64;
/// Longest sleep: a stop that was asked for without a wake-up is seen then.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// Something that wants to be called on the data thread: commands, samples.
pub trait Attendant {
    /// Called every turn with the network at its present time; must be quick. False ends the run.
    fn attend(&mut self, relay: &mut Core) -> bool;
    /// When it wants to be called next at the latest.
    fn next(&self) -> Option<Instant>;
}

/// What a relay works on, for its attendants too.
#[derive(Debug)]
pub struct Core {
    /// The network.
    pub net: Net,
    /// How late packets left.
    pub lateness: Lateness,
    /// The run's clock.
    pub clock: Clock,
    /// Record of the inputs.
    pub journal: Option<Journal>,
    ends: Vec<End>,
    pace: Pace,
    aim: Aim,
}

/// How long before it is due a packet is begun: the median of what handing over took lately, from waking to the kernel having it.
#[derive(Clone, Copy, Debug, Default)]
struct Aim(Duration);

impl Aim {
    /// Most of it: more is no work but a machine that was interrupted.
    const MOST: Duration = Duration::from_micros(100);
    const STEP: u64 = 1_000;

    /// A first packet after a sleep took so long. Half of the steps up and half of them down is the median.
    fn learn(&mut self, took: Duration) {
        let up = took > self.0;
        let aim = if up { self.0.0 + Self::STEP } else { self.0.0.saturating_sub(Self::STEP) };
        self.0 = Duration(aim).min(Self::MOST);
    }

    /// The time up to which a turn that begins at `now` works, when `next` comes next.
    fn reach(self, now: Instant, next: Option<Instant>) -> Instant {
        next.filter(|at| *at > now && *at <= now + self.0).unwrap_or(now)
    }
}

/// How densely packets leave.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// When the last ones left.
    last: Instant,
    /// Begin of the spell, and what has left in it.
    begin: Instant,
    count: u32,
    is_dense: bool,
}

impl Pace {
    fn left(&mut self, now: Instant, packets: u32) {
        self.last = now;
        self.count += packets;
        if now.since(self.begin) >= SPELL {
            self.is_dense = self.count > DENSE;
            (self.begin, self.count) = (now, 0);
        }
    }

    /// When packets that are due at `at` are sent.
    fn when(&self, at: Instant) -> Instant {
        if self.is_dense { at.max(self.last + TOGETHER) } else { at }
    }
}

#[derive(Debug)]
struct End {
    /// Index among the scenario's nodes.
    host: usize,
    port: Box<dyn PacketPort>,
}

/// A relay, ready to run.
pub struct Relay {
    core: Core,
    attendants: Vec<Box<dyn Attendant>>,
    wake: Arc<OwnedFd>,
    /// When it last slept, if it must now and then.
    rested: Option<Instant>,
}

impl core::fmt::Debug for Relay {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Relay").field("core", &self.core).finish_non_exhaustive()
    }
}

impl Relay {
    /// A relay between `ports`, given with the places of their hosts among the scenario's nodes. Something readable at `wake` ends a sleep.
    pub fn new(net: Net, clock: Clock, ports: Vec<(usize, Box<dyn PacketPort>)>, wake: Arc<OwnedFd>) -> Self {
        let ends = ports.into_iter().map(|(host, port)| End { host, port }).collect();
        let core = Core {
            net,
            lateness: Lateness::default(),
            clock,
            journal: None,
            ends,
            pace: Pace::default(),
            aim: Aim::default(),
        };
        Self { core, attendants: Vec::new(), wake, rested: None }
    }

    /// Records all inputs from now on.
    #[must_use]
    pub fn with_journal(mut self, journal: Option<Journal>) -> Self {
        if journal.is_some() {
            self.core.net.keep_digest();
        }
        self.core.journal = journal;
        self
    }

    /// Rests now and then even when there is always something to do: a thread with real-time priority must.
    #[must_use]
    pub fn resting(mut self) -> Self {
        self.rested = Some(self.core.clock.now());
        self
    }

    /// Adds somebody who is called on the data thread.
    #[must_use]
    pub fn with(mut self, attendant: Box<dyn Attendant>) -> Self {
        self.attendants.push(attendant);
        self
    }

    /// Runs until an attendant ends it, or a port is gone.
    ///
    /// # Errors
    /// When a port fails or the journal cannot be written.
    pub fn run(mut self) -> Result<Core, io::Error> {
        let mut ready = self.core.all();
        let mut slept = false;
        loop {
            let now = self.core.clock.now();
            let core = &mut self.core;
            ready = core.read(ready)?;
            let busy = !ready.is_empty();
            let next = core.net.next_at();
            core.net.advance(core.aim.reach(now, next));
            let sent = core.deliver()?;
            if let Some(sent) = sent.filter(|_| slept) {
                core.aim.learn(sent.since(now));
            }
            let mut next = now + LONGEST_WAIT;
            for attendant in &mut self.attendants {
                if !attendant.attend(&mut self.core) {
                    return self.core.end();
                }
                next = attendant.next().map_or(next, |at| at.min(next));
            }
            if self.rested.is_some_and(|at| now.since(at) > WORK) {
                self.rest()?;
            } else if !busy {
                ready = self.sleep(next)?;
                slept = ready.is_empty();
                continue;
            }
            // a port that is full keeps no other from its turn
            ready = self.core.all();
            slept = false;
        }
    }

    /// Sleeps a little, whatever comes.
    fn rest(&mut self) -> io::Result<()> {
        let until = self.core.clock.now() + REST;
        wait(&[self.wake.as_fd()], Some(until), &self.core.clock, Duration::ZERO)?;
        self.rested = Some(self.core.clock.now());
        Ok(())
    }

    /// Sleeps until something is due; tells what can be read.
    fn sleep(&mut self, latest: Instant) -> io::Result<Ready> {
        let core = &mut self.core;
        let held = core.net.has_arrived().then_some(Instant::ZERO);
        let next = held.or_else(|| core.net.next_at());
        let begin = |at: Instant| Instant(core.pace.when(at).0.saturating_sub(core.aim.0.0));
        let deadline = next.map_or(latest, |at| begin(at).min(latest));
        let wake = self.wake.as_fd();
        let mut few = [wake; FEW];
        let many: Vec<BorrowedFd<'_>>;
        let n = core.ends.len();
        // the last is the wake-up
        let fds = if n < FEW {
            few.iter_mut().zip(&core.ends).for_each(|(fd, end)| *fd = end.port.fd());
            &few[..=n]
        } else {
            many = core.ends.iter().map(|e| e.port.fd()).chain([wake]).collect();
            &many
        };
        let before = core.clock.now();
        let ready: Ready = wait(fds, Some(deadline), &core.clock, SPIN)?;
        let after = core.clock.now();
        if self.rested.is_some() && after.since(before) > SPIN * 2 {
            self.rested = Some(after);
        }
        if ready.has(n) {
            let mut count = [0; 8];
            // it is only there to wake us
            let _ = rustix::io::read(&self.wake, &mut count);
        }
        Ok(ready)
    }
}

impl Core {
    /// Lateness so far, with what was lost at the ports.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn timing(&mut self) -> io::Result<Timing> {
        let mut sum = PortDrops { not_ip: self.net.not_ip(), ..PortDrops::default() };
        for end in &mut self.ends {
            let drops = end.port.drops()?;
            sum.receive += drops.receive;
            sum.send += drops.send;
            sum.not_ip += drops.not_ip;
        }
        Ok(self.lateness.sum(sum))
    }

    /// All ports, when nobody has asked them.
    fn all(&self) -> Ready {
        Ready::first(self.ends.len())
    }

    /// Reads what the `ready` ports have; returns those that may have more.
    fn read(&mut self, ready: Ready) -> io::Result<Ready> {
        let mut more = Ready::default();
        for i in (0..self.ends.len()).filter(|i| ready.has(*i)) {
            for turn in 0..BATCH {
                let end = &mut self.ends[i];
                let received = end.port.receive(self.net.buffers.borrow_mut().scratch())?;
                let Some(received) = received else { break };
                let host = end.host;
                let at = self.clock.at(received.at).max(self.net.now());
                if let Some(journal) = &mut self.journal {
                    let buffers = self.net.buffers.borrow();
                    journal.packet(at, host, &received.vnet, buffers.read(received.len))?;
                }
                self.net.accept(host, received.len, &received.vnet, at);
                self.deliver()?;
                if turn + 1 == BATCH {
                    more.add(i);
                }
            }
        }
        Ok(more)
    }

    /// Sends what has arrived, unless more is to go with it; returns when the first of it was sent.
    fn deliver(&mut self) -> io::Result<Option<Instant>> {
        let mut first = None;
        if self.pace.is_dense && self.clock.now() < self.pace.when(Instant::ZERO) {
            return Ok(None);
        }
        while let Some(arrival) = self.net.take_arrival() {
            self.send(&arrival)?;
            let now = self.clock.now();
            self.lateness.record(arrival.due, now, u32::from(arrival.pieces));
            self.pace.left(now, u32::from(arrival.pieces));
            self.net.done(&arrival);
            first.get_or_insert(now);
        }
        Ok(first)
    }

    /// Sends an arrival as super-packets, as few as their longest length allows.
    fn send(&mut self, arrival: &Arrival) -> io::Result<()> {
        let Some(end) = self.ends.iter_mut().find(|e| e.host == arrival.host) else { return Ok(()) };
        let buffers = self.net.buffers.borrow();
        let Some((cut, bytes)) = buffers.get(arrival.first.slot) else { return Ok(()) };
        let (first, pieces) = match arrival.first.piece {
            WHOLE => (0, cut.pieces()),
            piece => (usize::from(piece), usize::from(arrival.pieces)),
        };
        let mut header = [0; HEADER_SPACE];
        let mut part = cut.piece(bytes, first..first + pieces, &mut header);
        if arrival.ce {
            part.mark_ce(bytes, &mut header);
        }
        let payload = bytes.get(part.payload).unwrap_or_default();
        // what the kernel does not take is counted by the port
        end.port.send(&part.vnet, &[IoSlice::new(&header[..part.header_len]), IoSlice::new(payload)])?;
        Ok(())
    }

    fn end(mut self) -> io::Result<Self> {
        self.pace.is_dense = false;
        self.deliver()?;
        let now = self.net.now();
        if let Some(journal) = self.journal.take() {
            journal.finish(now, self.net.digest())?;
        }
        Ok(self)
    }
}
