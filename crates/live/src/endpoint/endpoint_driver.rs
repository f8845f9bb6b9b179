//! An endpoint alone behind a packet port, under the real clock.

use super::{Endpoint, Settings};
use bentpipe_base::{Cx, Instant, NodeId, World};
use bentpipe_os::port::MAX_SUPER;
use bentpipe_os::{Clock, PacketPort};
use std::io;
use std::os::fd::BorrowedFd;

/// Default of [`EndpointDriver::batch`].
const BATCH: usize = 64;
/// Most super-packets sent before reading.
const MAX_SENT_PER_TURN: usize = 16;

/// An endpoint with its port, clock and world.
#[derive(Debug)]
pub struct EndpointDriver<P> {
    /// The port.
    pub port: P,
    /// The clock of the run.
    pub clock: Clock,
    /// Most super-packets read before sending. If the thread is late, several segments of a connection are
    /// read together and share an acknowledgment; with 1 each has its own, as if it had been read in time.
    pub batch: usize,
    world: World,
    endpoint: Endpoint,
    incoming: Box<[u8]>,
}

impl<P: PacketPort> EndpointDriver<P> {
    /// An endpoint behind `port`. `seed` decides sequence numbers and ports: keep it secret, except in tests.
    pub fn new(port: P, clock: Clock, seed: u64, settings: Settings) -> Self {
        let mut world = World::new(seed);
        let endpoint = Endpoint::new(&mut world, "endpoint", settings);
        let incoming = vec![0; MAX_SUPER].into_boxed_slice();
        Self { port, clock, batch: BATCH, world, endpoint, incoming }
    }

    /// File descriptor to poll for input.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.port.fd()
    }

    /// The endpoint, to read its connections.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Calls `act` with the endpoint, now. The next [`EndpointDriver::turn`] sends the packets that result.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T) -> T {
        act(&mut self.endpoint, &mut self.world.cx(self.clock.now(), NodeId(0)))
    }

    /// Reads packets, handles timers and sends packets. Returns when to call again if the port has no input.
    ///
    /// # Errors
    /// When the port is gone.
    pub fn turn(&mut self) -> io::Result<Instant> {
        let mut read = 0;
        while read < self.batch
            && let Some(received) = self.port.receive(&mut self.incoming)?
        {
            let bytes = &self.incoming[..received.len.min(MAX_SUPER)];
            let cx = &mut self.world.cx(self.clock.now(), NodeId(0));
            self.endpoint.packet(cx, bytes, &received.vnet);
            read += 1;
        }
        let next = self.send_out()?;
        Ok(if read >= self.batch { self.clock.now() } else { next })
    }

    /// The second half of [`EndpointDriver::turn`]: handles timers and sends packets.
    pub(crate) fn send_out(&mut self) -> io::Result<Instant> {
        self.endpoint.timer(&mut self.world.cx(self.clock.now(), NodeId(0)));
        for _ in 0..MAX_SENT_PER_TURN {
            let cx = &mut self.world.cx(self.clock.now(), NodeId(0));
            let port = &mut self.port;
            // a packet that the kernel has no room for is lost
            match self.endpoint.next_super(cx, |note, parts| port.send(note, parts)) {
                Some(taken) => _ = taken?,
                None => return Ok(self.endpoint.next_at()),
            }
        }
        Ok(self.clock.now())
    }
}
