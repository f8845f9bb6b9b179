//! A network between its ports: injects incoming packets at the time when the kernel received them, and sends
//! packets that have arrived.

use crate::counters::Counters;
use crate::journal::Journal;
use crate::lateness::{Lateness, Timing};
use crate::network::{Arrival, LiveNetwork};
use crate::pacing::{Density, Lead, Pacing};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::port::Received;
use bentpipe_os::wait::Ready;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_wire::offload::VnetHeader;
use std::io::{self, IoSlice};

/// Units read from one port before other ports and timers are served.
const BATCH: usize = 16;
/// Longest time by which a network with [`Pacing::Cheap`] may lag behind: packets that a stopped thread has
/// missed must not leave as a burst that is too large for the hop. At 24 Mbit/s this is eight packets.
pub const CATCH_UP: Duration = Duration::from_millis(4);

/// State of the driver's loop, also used by its hooks.
#[derive(Debug)]
pub struct Core {
    /// The network.
    pub net: LiveNetwork,
    /// The run's clock.
    pub clock: Clock,
    /// Lateness of packets.
    pub lateness: Lateness,
    /// Record of the inputs.
    pub journal: Option<Journal>,
    pub(crate) ports: Vec<Box<dyn PacketPort>>,
    pub(crate) pacing: Pacing,
    pub(crate) lead: Lead,
    pub(crate) density: Density,
}

impl Core {
    /// A network with `ports`, in the order of its open ends.
    pub fn new(net: LiveNetwork, ports: Vec<Box<dyn PacketPort>>, clock: Clock, pacing: Pacing) -> Self {
        Self {
            net,
            clock,
            lateness: Lateness::default(),
            journal: None,
            ports,
            pacing,
            lead: Lead::default(),
            density: Density::default(),
        }
    }

    /// Counters so far.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn counters(&mut self) -> io::Result<&Counters> {
        let counters = &mut self.net.counters;
        for (counters, port) in counters.ports.iter_mut().zip(&mut self.ports) {
            counters.drops = port.drops()?;
        }
        Ok(counters)
    }

    /// Lateness so far, and losses at the ports.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn timing(&mut self) -> io::Result<Timing> {
        let drops = self.counters()?.drops();
        Ok(self.lateness.sum(drops))
    }

    /// All ports, for a turn before which they were not polled.
    pub(crate) fn all(&self) -> Ready {
        Ready::first(self.ports.len())
    }

    /// Reads from the `ready` ports; returns those that may have more.
    ///
    /// # Errors
    /// When a port is gone or the journal cannot be written.
    pub fn read(&mut self, ready: Ready) -> io::Result<Ready> {
        let mut more = Ready::default();
        for port in (0..self.ports.len()).filter(|port| ready.has(*port)) {
            for turn in 1..=BATCH {
                let received = self.ports[port].receive(self.net.store.borrow_mut().scratch())?;
                let Some(received) = received else { break };
                self.accept(port, &received)?;
                if turn == BATCH {
                    more.add(port);
                }
            }
        }
        Ok(more)
    }

    /// Injects the unit in the scratch buffer into the network.
    fn accept(&mut self, port: usize, received: &Received) -> io::Result<()> {
        let at = self.clock.at(received.at).max(self.net.now());
        if let Some(journal) = &mut self.journal {
            let store = self.net.store.borrow();
            journal.packet(at, self.net.host_of(port), &received.vnet, store.read(received.len))?;
        }
        self.advance(at);
        if !self.net.accept(port, received.len, &received.vnet) {
            self.bypass_network(port, received)?;
        }
        self.deliver().map(|_| ())
    }

    /// Sends the unit in the scratch buffer unchanged out of the other of two ports.
    fn bypass_network(&mut self, port: usize, received: &Received) -> io::Result<()> {
        if self.ports.len() != 2 {
            return Ok(());
        }
        self.net.counters.untouched += 1;
        let store = self.net.store.borrow();
        let parts = [IoSlice::new(store.read(received.len))];
        let outcome = offer(self.ports[1 - port].as_mut(), &received.vnet, &parts)?;
        self.net.counters.note_sent(1 - port, outcome);
        Ok(())
    }

    /// Advances the network to `until`.
    pub fn advance(&mut self, until: Instant) {
        if self.pacing == Pacing::Cheap {
            let floor = Instant(self.clock.now().0.saturating_sub(CATCH_UP.0));
            let is_late = self.net.network.next_at().is_some_and(|at| at < floor && at <= until);
            self.net.counters.late_turns += u64::from(is_late);
            self.net.network.skip_to(floor);
            return self.net.advance(until.max(floor));
        }
        self.net.advance(until);
    }

    /// Sends arrived packets, unless they wait to be sent together with later ones; returns the time when the
    /// first was sent.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn deliver(&mut self) -> io::Result<Option<Instant>> {
        let mut first = None;
        let is_exact = self.pacing == Pacing::Exact;
        if is_exact && self.density.is_dense && self.clock.now() < self.density.when(Instant::ZERO) {
            return Ok(None);
        }
        while let Some(arrival) = self.net.take_arrival() {
            self.send(&arrival)?;
            if is_exact {
                let now = self.clock.now();
                self.lateness.record(arrival.due, now, arrival.pieces);
                self.density.left(now, arrival.pieces);
                first.get_or_insert(now);
            }
            self.net.done(arrival);
        }
        Ok(first)
    }

    fn send(&mut self, arrival: &Arrival) -> io::Result<()> {
        let port = self.ports[arrival.port].as_mut();
        let outcome = self.net.emit(arrival, |emitted, header, payload| {
            let parts = [IoSlice::new(header), IoSlice::new(payload), IoSlice::new(emitted.tail())];
            let count = if emitted.tail().is_empty() { 2 } else { 3 };
            // the first part must contain the headers
            offer(port, &emitted.vnet, &parts[usize::from(header.is_empty())..count])
        });
        self.net.counters.note_sent(arrival.port, outcome?);
        Ok(())
    }

    /// Sends the remaining packets at the end of a run.
    pub(crate) fn end(mut self) -> io::Result<Self> {
        self.density.is_dense = false;
        self.deliver()?;
        let now = self.net.now();
        if let Some(journal) = self.journal.take() {
            journal.finish(now, self.net.digest())?;
        }
        Ok(self)
    }
}

/// Result of offering a packet to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// Accepted, with this many bytes.
    Taken(u64),
    /// No room; counted by the port.
    Lost,
    /// The kernel refused this packet.
    Refused,
}

/// Offers a packet to the kernel; an error means that the port is gone.
fn offer(port: &mut dyn PacketPort, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<SendOutcome> {
    match port.send(vnet, parts) {
        Ok(true) => Ok(SendOutcome::Taken(parts.iter().map(|part| part.len() as u64).sum())),
        Ok(false) => Ok(SendOutcome::Lost),
        Err(e) if is_about_the_packet(&e) => Ok(SendOutcome::Refused),
        Err(e) => Err(e),
    }
}

/// True for errors about one packet, not the port: too long for the interface, or not segmentable.
fn is_about_the_packet(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::MSGSIZE | Errno::PROTO | Errno::FBIG))
        || error.kind() == io::ErrorKind::InvalidInput
}
