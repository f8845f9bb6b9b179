//! Runs the data path between two packet ports, under the real clock.
//!
//! One thread reads, carries and sends; it also answers the control socket between two turns. Frames whose
//! link header is not Ethernet with up to three VLAN tags pass unread, as do PPPoE sessions.

mod datagrams;
mod flow_file;
mod host_port;
mod line;
mod scope;

pub use datagrams::{DatagramFlow, DatagramStatus, Datagrams};
pub use flow_file::FlowFile;
pub use host_port::HostPort;
pub use line::{Line, Traffic};
pub(crate) use line::{read_both, send};
pub use scope::Scope;

use crate::split::{HOST, NETWORK, Split, Verdict};
use bentpipe_base::{Duration, Instant, NodeId, World};
use bentpipe_driver::{Link as LinkHeader, Unit};
use bentpipe_os::PacketPort;
use bentpipe_os::port::MAX_SUPER;
use bentpipe_scenario::agent_file::DatagramRules;
use bentpipe_wire::offload::VnetHeader;
use line::tolerate;
use std::io::{self, IoSlice};

/// Most super-packets sent to one side before reading.
const MOST_SENT: usize = 32;

/// Most time to send what has arrived before the end.
const LAST: Duration = Duration::from_millis(10);

/// The data path with its ports and its clock.
#[derive(Debug)]
pub struct Relay {
    line: Line,
    unit: Unit,
    /// What of the traffic of the network's port is the agent's; all, if there is none.
    scope: Option<Scope>,
    split: Split,
    /// The datagrams for which there are rules.
    datagrams: Option<Datagrams>,
    world: World,
    buffer: Vec<u8>,
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
        let (line, buffer) = (Line::new(ports), vec![0; MAX_SUPER]);
        Self { line, unit, scope, split, datagrams: None, world, buffer }
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
        let end = self.line.clock.now() + LAST;
        while self.turn()? <= self.line.clock.now() && self.line.clock.now() < end {}
        let now = self.line.clock.now();
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.release(now);
        }
        self.send_datagrams()?;
        // a port may wait for the address of a neighbour
        while self.line.ports.iter().any(|port| port.holds()) && self.line.clock.now() < end {
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

    /// Its ports.
    pub const fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Reads, handles timers, sends. Returns when to call again if the ports have no input.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn turn(&mut self) -> io::Result<Instant> {
        let is_full = read_both(|side| self.receive(side))?;
        let Self { split, world, line: Line { clock, .. }, .. } = self;
        split.timer(&mut world.cx(clock.now(), NodeId(0)));
        split.serve(&mut world.cx(clock.now(), NodeId(0)));
        for _ in 0..MOST_SENT {
            let mut is_idle = true;
            for side in [HOST, NETWORK] {
                is_idle &= !self.send(side)?;
            }
            let Self { split, world, line: Line { clock, .. }, .. } = self;
            split.serve(&mut world.cx(clock.now(), NodeId(0)));
            if is_idle && !split.wants_to_send() {
                break;
            }
        }
        let next = self.send_datagrams()?;
        let now = self.line.clock.now();
        let is_behind = is_full || self.split.wants_to_send();
        let next = if is_behind { now } else { self.split.next_at().min(next) };
        Ok(next.min(self.line.when_held(now)))
    }

    /// Sends the datagrams that are due; returns when the next are.
    fn send_datagrams(&mut self) -> io::Result<Instant> {
        let Self { line: Line { ports, clock, traffic }, datagrams, .. } = self;
        let Some(datagrams) = datagrams else { return Ok(Instant::NEVER) };
        datagrams.run(clock.now(), |side, vnet, parts| {
            traffic.sent[side] += 1;
            tolerate(ports[side].send(vnet, parts))
        })?;
        Ok(datagrams.next_at())
    }

    /// Handles one packet from `side`; false if none waits.
    fn receive(&mut self, side: usize) -> io::Result<bool> {
        let Self { line, unit, scope, split, datagrams, world, buffer } = self;
        let Line { ports, clock, traffic } = line;
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
        let Self { line: Line { ports, clock, traffic }, unit, split, world, .. } = self;
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
