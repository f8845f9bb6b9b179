//! Runs the data path between two packet ports, under the real clock.
//!
//! One thread reads, carries and sends; it also answers the control socket between two turns. Frames whose
//! link header is not Ethernet with up to three VLAN tags pass unread, as do PPPoE sessions.

mod datagrams;
mod flow_file;
mod host_port;
mod scope;

pub use datagrams::{DatagramFlow, DatagramStatus, Datagrams};
pub use flow_file::FlowFile;
pub use host_port::HostPort;
pub use scope::Scope;

use crate::split::{HOST, NETWORK, Split, Verdict};
use bentpipe_base::{Duration, Instant, NodeId, World};
use bentpipe_driver::{Link as LinkHeader, Unit};
use bentpipe_os::port::{MAX_SUPER, PortDrops};
use bentpipe_os::{Clock, PacketPort};
use bentpipe_scenario::agent_file::DatagramRules;
use bentpipe_wire::offload::VnetHeader;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Most super-packets read from one side before the other gets its turn.
const BATCH: usize = 64;
/// Most super-packets sent to one side before reading.
const MOST_SENT: usize = 32;

/// Most time to send what has arrived before the end.
const LAST: Duration = Duration::from_millis(10);
/// How long a port that holds packets waits before it tries again.
const HELD: Duration = Duration::from_millis(1);

/// Packets and bytes, each for both sides: the host, the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Super-packets received.
    pub received: [u64; 2],
    /// Bytes received, IP headers included.
    pub bytes: [u64; 2],
    /// Received and passed on unread.
    pub passed: [u64; 2],
    /// Sent by the agent.
    pub sent: [u64; 2],
}

/// The data path with its ports and its clock.
#[derive(Debug)]
pub struct Relay {
    ports: [Box<dyn PacketPort>; 2],
    unit: Unit,
    /// What of the traffic of the network's port is the agent's; all, if there is none.
    scope: Option<Scope>,
    split: Split,
    /// The datagrams for which there are rules.
    datagrams: Option<Datagrams>,
    world: World,
    clock: Clock,
    buffer: Vec<u8>,
    traffic: Traffic,
}

impl Relay {
    /// Connects `ports`, the host's first, through `split`, which was made in `world`. With a `scope`, the
    /// kernel handles the packets outside it that the network's port sees too.
    pub fn new(
        ports: [Box<dyn PacketPort>; 2],
        unit: Unit,
        scope: Option<Scope>,
        split: Split,
        world: World,
    ) -> Self {
        let (clock, buffer, traffic) = (Clock::start(), vec![0; MAX_SUPER], Traffic::default());
        Self { ports, unit, scope, split, datagrams: None, world, clock, buffer, traffic }
    }

    /// Takes datagrams too, as `rules` say.
    pub fn take_datagrams(&mut self, rules: &DatagramRules) {
        self.datagrams = Some(Datagrams::new(rules, self.unit));
    }

    /// Asks for the rate of no further flow of datagrams.
    pub fn stop_asking(&mut self) {
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.stop_asking();
        }
    }

    /// Handles what has arrived, gives the rates of datagrams back and sends what is held.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn release_datagrams(&mut self) -> io::Result<()> {
        let end = self.clock.now() + LAST;
        while self.turn()? <= self.clock.now() && self.clock.now() < end {}
        let now = self.clock.now();
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.release(now);
        }
        self.send_datagrams()?;
        // a port may wait for the address of a neighbour
        while self.ports.iter().any(|port| port.holds()) && self.clock.now() < end {
            self.turn()?;
        }
        Ok(())
    }

    /// What there is to say of datagrams.
    pub fn datagram_status(&self, most: usize) -> Option<DatagramStatus> {
        Some(self.datagrams.as_ref()?.status(most))
    }

    /// The data path.
    pub const fn split(&mut self) -> &mut Split {
        &mut self.split
    }

    /// Its clock.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Counters of its ports.
    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Packets lost at the ports.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn drops(&mut self) -> io::Result<[PortDrops; 2]> {
        let [host, network] = &mut self.ports;
        Ok([host.drops()?, network.drops()?])
    }

    /// Descriptors to poll for input.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.ports[HOST].fd(), self.ports[NETWORK].fd()]
    }

    /// Reads, handles timers, sends. Returns when to call again if the ports have no input.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn turn(&mut self) -> io::Result<Instant> {
        let mut is_full = false;
        for side in [HOST, NETWORK] {
            let mut read = 0;
            while read < BATCH && self.receive(side)? {
                read += 1;
            }
            is_full |= read == BATCH;
        }
        let Self { split, world, clock, .. } = self;
        split.timer(&mut world.cx(clock.now(), NodeId(0)));
        split.serve(&mut world.cx(clock.now(), NodeId(0)));
        for _ in 0..MOST_SENT {
            let mut is_idle = true;
            for side in [HOST, NETWORK] {
                is_idle &= !self.send(side)?;
            }
            let Self { split, world, clock, .. } = self;
            split.serve(&mut world.cx(clock.now(), NodeId(0)));
            if is_idle && !split.wants_to_send() {
                break;
            }
        }
        let next = self.send_datagrams()?;
        let now = self.clock.now();
        let is_behind = is_full || self.split.wants_to_send();
        let next = if is_behind { now } else { self.split.next_at().min(next) };
        Ok(next.min(when_held(&self.ports, now)))
    }

    /// Sends the datagrams that are due; returns when the next are.
    fn send_datagrams(&mut self) -> io::Result<Instant> {
        let Self { ports, datagrams, clock, traffic, .. } = self;
        let Some(datagrams) = datagrams else { return Ok(Instant::NEVER) };
        datagrams.run(clock.now(), |side, vnet, parts| {
            traffic.sent[side] += 1;
            tolerate(ports[side].send(vnet, parts))
        })?;
        Ok(datagrams.next_at())
    }

    /// Handles one packet from `side`; false if none waits.
    fn receive(&mut self, side: usize) -> io::Result<bool> {
        let Self { ports, unit, scope, split, datagrams, world, clock, buffer, traffic } = self;
        let Some(received) = ports[side].receive(buffer)? else { return Ok(false) };
        let bytes = &buffer[..received.len.min(buffer.len())];
        traffic.received[side] += 1;
        traffic.bytes[side] += bytes.len() as u64;
        let mut is_datagram = false;
        if let Some(datagrams) = datagrams
            && let Some(header) = LinkHeader::of(bytes, *unit)
            && datagrams.has(side, bytes.get(header.len..).unwrap_or_default())
        {
            if datagrams.accept(clock.now(), side, bytes, &received.vnet) {
                return Ok(true);
            }
            // without room it passes, also on a host, whose kernel has dropped it
            is_datagram = true;
        }
        if side == NETWORK && !is_datagram && scope.as_ref().is_some_and(|scope| !scope.has(bytes)) {
            split.overhear(&mut world.cx(clock.now(), NodeId(0)), bytes, &received.vnet);
            return Ok(true);
        }
        let header = LinkHeader::of(bytes, *unit).filter(|header| !header.pppoe);
        if let Some(header) = header {
            let (link, packet) = bytes.split_at(header.len);
            let vnet = received.vnet.without_prefix(header.len as u16);
            let cx = &mut world.cx(clock.now(), NodeId(0));
            if split.packet(cx, (side, link), packet, &vnet) == Verdict::Taken {
                return Ok(true);
            }
        }
        traffic.passed[side] += 1;
        send(ports[1 - side].as_mut(), &received.vnet, &[IoSlice::new(bytes)])?;
        Ok(true)
    }

    /// Sends one packet of ours to `side`; false if there is none.
    fn send(&mut self, side: usize) -> io::Result<bool> {
        let Self { ports, unit, split, world, clock, traffic, .. } = self;
        let port = &mut ports[side];
        let cx = &mut world.cx(clock.now(), NodeId(0));
        let sent = split.next_packet(cx, side, |link, vnet: &VnetHeader, parts| {
            if *unit == Unit::Frame && link.is_empty() {
                // of a connection that was forgotten: where it would go is not known
                return None;
            }
            let mut all = [IoSlice::new(&[]); 4];
            all[0] = IoSlice::new(link);
            for (slot, part) in all[1..].iter_mut().zip(parts) {
                *slot = IoSlice::new(part);
            }
            let vnet = vnet.with_prefix(link.len() as u16);
            let first = usize::from(link.is_empty());
            Some(port.send(&vnet, &all[first..]))
        });
        match sent {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(result)) => {
                traffic.sent[side] += 1;
                tolerate(result).map(|()| true)
            }
        }
    }
}

/// When ports that hold packets must be read again.
pub(crate) fn when_held(ports: &[Box<dyn PacketPort>; 2], now: Instant) -> Instant {
    let holds = ports.iter().any(|port| port.holds());
    if holds { now + HELD } else { Instant::NEVER }
}

/// Sends a packet. One that the kernel has no room for is lost, and counted by its port.
pub(crate) fn send(port: &mut dyn PacketPort, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<()> {
    tolerate(port.send(vnet, parts))
}

/// A packet that the kernel does not take is lost. Only a port that is gone is an error; the next read says
/// so.
fn tolerate(sent: io::Result<bool>) -> io::Result<()> {
    match sent {
        Err(error) if error.raw_os_error().is_none() => Err(error),
        _ => Ok(()),
    }
}
