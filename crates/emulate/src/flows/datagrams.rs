//! Flows of UDP datagrams, sent and counted as in the simulator.
//!
//! Each datagram begins with its number and the time at which it was sent, both little-endian, 8 bytes each.
//! Both ends use the run's clock.

use super::Error;
use super::setup::HostPlace;
use bentpipe_base::{Addr, Cx, Instant, Packet, RngSlot, Size};
use bentpipe_nodes::{Departures, Sink, Stream};
use bentpipe_os::{Clock, socket};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Receive buffer for datagrams that arrive while other flows are handled.
const RECEIVE_BUFFER: Size = Size(4 << 20);
/// Longest datagram.
const LONGEST: usize = 2048;
/// Bytes of number and time.
const STAMP: usize = 16;
/// Datagrams sent or read before other flows are handled.
const BATCH: u32 = 256;

/// A source, its socket and its sink.
#[derive(Debug)]
pub(super) struct UdpFlow {
    from: OwnedFd,
    to: OwnedFd,
    size: usize,
    departures: Departures,
    next: Instant,
    pub(super) sent: u64,
    /// Datagrams for which the kernel had no room.
    pub(super) unsent: u64,
    pub(super) sink: Sink,
    peer: (Addr, u16),
    /// Payload bytes received by the sink.
    pub(super) bytes: u64,
}

impl UdpFlow {
    pub(super) fn open(
        cx: &mut Cx<'_>,
        stream: &Stream,
        (from, to): (&HostPlace<'_>, &HostPlace<'_>),
        ports: (u16, u16),
    ) -> Result<Self, Error> {
        let ends = (SocketAddr::new(from.address, ports.0), SocketAddr::new(to.address, ports.1));
        let receiver = to.within("a socket for datagrams", || {
            let fd = socket::datagrams(&ends.1)?;
            socket::set_receive_buffer(&fd, RECEIVE_BUFFER)?;
            socket::bind(&fd, &ends.1)?;
            socket::connect(&fd, &ends.0)?;
            Ok(fd)
        })?;
        let sender = from.within("a socket for datagrams", || {
            let fd = socket::datagrams(&ends.0)?;
            socket::bind(&fd, &ends.0)?;
            socket::connect(&fd, &ends.1)?;
            Ok(fd)
        })?;
        let mut departures = Departures::new(cx, stream);
        let next = departures.at(cx, 0);
        let peer = (Addr(0), ports.0);
        Ok(Self {
            from: sender,
            to: receiver,
            size: stream.size.0 as usize,
            departures,
            next,
            sent: 0,
            unsent: 0,
            sink: Sink::new(peer),
            peer,
            bytes: 0,
        })
    }

    /// File descriptor to poll for arrivals.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.to.as_fd()
    }

    /// When the next datagram is due.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// Sends the datagrams that are due.
    pub(super) fn send(&mut self, cx: &mut Cx<'_>, clock: Clock) {
        let mut bytes = [0; LONGEST];
        for _ in 0..BATCH {
            if self.next > cx.now {
                return;
            }
            let Some(datagram) = bytes.get_mut(..self.size.max(STAMP)) else { return };
            datagram[..8].copy_from_slice(&self.sent.to_le_bytes());
            datagram[8..STAMP].copy_from_slice(&clock.now().0.to_le_bytes());
            // datagrams that the kernel does not accept are lost, as at any host; the others follow on time
            if rustix::net::send(&self.from, datagram, SendFlags::DONTWAIT).is_err() {
                self.unsent += 1;
            }
            self.sent += 1;
            self.next = self.departures.at(cx, self.sent);
        }
    }

    /// Reads the datagrams that have arrived; true if there may be more.
    pub(super) fn receive(&mut self, clock: Clock) -> bool {
        let mut bytes = [0; LONGEST];
        for _ in 0..BATCH {
            match rustix::net::recv(&self.to, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, n)) => self.take(clock.now(), &bytes[..n.min(LONGEST)]),
                // interrupted, or the other side's port was closed for a moment
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn take(&mut self, now: Instant, datagram: &[u8]) {
        let word = |at: usize| Some(u64::from_le_bytes(datagram.get(at..at + 8)?.try_into().ok()?));
        let (Some(number), Some(sent)) = (word(0), word(8)) else { return };
        let mut packet = Packet { src: self.peer.0, sport: self.peer.1, ..Packet::default() };
        packet.set_datagram(number, Instant(sent), datagram.len() as u32);
        self.sink.take(now, &packet);
        self.bytes = self.sink.bytes();
    }
}

/// Returns the source's stream, without the parts that only the simulator needs.
pub(super) const fn stream(
    size: Size,
    pattern: bentpipe_nodes::Pattern,
    rng: RngSlot,
    start: Instant,
) -> Stream {
    Stream { port: 0, to: (Addr(0), 0), size, pattern, rng, start }
}
