//! Flows of UDP datagrams, sent and counted as in the simulator.
//!
//! Each datagram begins with its number and the time at which it was sent, both little-endian, 8 bytes each.
//! Both ends use the run's clock.

use super::Error;
use super::setup::HostNamespace;
use bentpipe_base::{Addr, Cx, Instant, Packet, Size};
use bentpipe_nodes::{DatagramSink, DatagramStream, Departures};
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
    /// When the next datagram is due.
    pub(super) next: Instant,
    pub(super) sent: u64,
    /// Datagrams for which the kernel had no room.
    pub(super) unsent: u64,
    pub(super) sink: DatagramSink,
    peer: (Addr, u16),
}

impl UdpFlow {
    pub(super) fn open(
        cx: &mut Cx<'_>,
        stream: &DatagramStream,
        (from, to): (&HostNamespace<'_>, &HostNamespace<'_>),
        ports: (u16, u16),
    ) -> Result<Self, Error> {
        let open = |own: (&HostNamespace<'_>, u16), peer: (&HostNamespace<'_>, u16)| {
            let [at, to] = [own, peer].map(|(place, port)| SocketAddr::new(place.address, port));
            own.0.within("a socket for datagrams", || {
                let fd = socket::datagrams(&at)?;
                socket::set_receive_buffer(&fd, RECEIVE_BUFFER)?;
                socket::bind(&fd, &at)?;
                socket::connect(&fd, &to)?;
                Ok(fd)
            })
        };
        let receiver = open((to, ports.1), (from, ports.0))?;
        let sender = open((from, ports.0), (to, ports.1))?;
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
            sink: DatagramSink::new(peer),
            peer,
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.to.as_fd()
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
    }
}
