//! An endpoint alone behind a packet port, under the real clock.

use super::{Endpoint, Settings};
use bentpipe_base::{Cx, Instant, NodeId, World};
use bentpipe_os::port::MAX_SUPER;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_wire::offload::VnetHeader;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Super-packets that are read before something is sent.
const BATCH: usize = 64;

/// An endpoint with its port, clock and world.
#[derive(Debug)]
pub struct Station<P> {
    port: P,
    clock: Clock,
    world: World,
    endpoint: Endpoint,
    incoming: Box<[u8]>,
    outgoing: Vec<u8>,
}

impl<P: PacketPort> Station<P> {
    /// An endpoint behind `port`. `seed` decides sequence numbers and ports: nobody outside may know it, unless this is a test.
    pub fn new(port: P, clock: Clock, seed: u64, settings: Settings) -> Self {
        let mut world = World::new(seed);
        let endpoint = Endpoint::new(&mut world, "endpoint", settings);
        let incoming = vec![0; MAX_SUPER].into_boxed_slice();
        Self { port, clock, world, endpoint, incoming, outgoing: Vec::new() }
    }

    /// What to poll for input.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.port.fd()
    }

    /// The endpoint, for applications, at the present time. What they cause is sent with the next [`Station::turn`].
    pub fn with<T>(&mut self, act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T) -> T {
        act(&mut self.endpoint, &mut self.world.cx(self.clock.now(), NodeId(0)))
    }

    /// Takes in what has arrived, does what is due and sends what there is to send. Returns when to call again at the latest; earlier when the port
    /// has input.
    ///
    /// # Errors
    /// When the port is gone.
    pub fn turn(&mut self) -> io::Result<Instant> {
        let mut read = 0;
        while read < BATCH
            && let Some(received) = self.port.receive(&mut self.incoming)?
        {
            let bytes = &self.incoming[..received.len.min(MAX_SUPER)];
            let cx = &mut self.world.cx(self.clock.now(), NodeId(0));
            self.endpoint.packet(cx, bytes, &received.vnet);
            read += 1;
        }
        self.endpoint.timer(&mut self.world.cx(self.clock.now(), NodeId(0)));
        loop {
            let cx = &mut self.world.cx(self.clock.now(), NodeId(0));
            if !self.endpoint.next_packet(cx, &mut self.outgoing) {
                break;
            }
            // what the kernel has no room for is lost, as on any wire
            self.port.send(&VnetHeader::default(), &[IoSlice::new(&self.outgoing)])?;
        }
        Ok(if read == BATCH { self.clock.now() } else { self.endpoint.next_at() })
    }
}
