//! The node between its two ports: what comes in is parsed, kept and handed to it, what it sends leaves at once.
//!
//! A packet enters at the time the kernel had it, and timers are handled at the times they were due, so a turn that is a little late changes no rate; but the
//! node's time is never further behind than [`CATCH_UP`]: what a thread that was stopped has missed must not come out as a burst that the hop cannot take.

use super::addresses::Addresses;
use super::buffers::Buffers;
use super::counters::Counters;
use super::emit::{Emitted, emit, joint};
use super::frame::Unit;
use super::kin::Kin;
use super::parse::{HEADER_SPACE, Parsed, parse};
use bentpipe_base::{Addr, Cx, Duration, Flags, Input, Instant, Node, NodeId, Packet, Port, Size, World};
use bentpipe_gateway::{Gateway, LAN, SATELLITE};
use bentpipe_os::port::Received;
use bentpipe_os::wait::Ready;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_wire::Ends;
use bentpipe_wire::offload::{Super, VnetHeader};
use std::io::{self, IoSlice};

/// Units read from one port before the other and the clock get their turn.
const BATCH: usize = 16;
/// How far the node's time may be behind when the thread was late: at 24 Mbit/s eight packets.
pub const CATCH_UP: Duration = Duration::from_millis(4);
/// The node's place in its world.
const NODE: NodeId = NodeId(0);

/// A node between two ports that holds packets for flows.
pub trait Middle: Node {
    /// Names the addresses of all flows it knows: their numbers stay as they are.
    fn addresses(&self, each: &mut dyn FnMut(Addr));

    /// Ends all acting on flows: what it holds leaves in order, nothing new is held, every packet passes.
    fn release(&mut self, cx: &mut Cx<'_>);

    /// The real addresses of a packet that opens a connection, just before it comes; `side` is that of its port.
    fn opens(&mut self, _side: usize, _ends: &Ends) {}
}

impl Middle for Gateway {
    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        Self::addresses(self, each);
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.release_all(cx);
    }
}

/// What the loop works on, for its attendants too.
#[derive(Debug)]
pub struct Core<N> {
    /// The node. To call it, use [`Core::call`].
    pub node: N,
    /// The run's clock.
    pub clock: Clock,
    /// Bytes that are with the node.
    pub buffers: Buffers,
    /// Numbers of addresses.
    pub addresses: Addresses,
    /// What was done so far; [`Core::counters`] has the ports' losses too.
    counters: Counters,
    world: World,
    pub(super) ports: [Box<dyn PacketPort>; 2],
    unit: Unit,
    /// The node's time.
    present: Instant,
}

/// The two ports' places by the gateway's names.
const fn other(side: usize) -> usize {
    1 - side
}

impl<N: Middle> Core<N> {
    /// A node between `ports`, first the LAN's, then the satellite's. `world` is the one the node was built with.
    pub fn new(node: N, mut world: World, ports: [Box<dyn PacketPort>; 2], unit: Unit, clock: Clock) -> Self {
        world.count_holders();
        Self {
            node,
            clock,
            buffers: Buffers::new(Size(u64::MAX)),
            addresses: Addresses::new(1 << 20),
            counters: Counters::default(),
            world,
            ports,
            unit,
            present: clock.now(),
        }
    }

    /// Calls the node, then sends what it sent.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn call<T>(&mut self, act: impl FnOnce(&mut N, &mut Cx<'_>) -> T) -> io::Result<T> {
        let done = act(&mut self.node, &mut self.world.cx(self.present, NODE));
        self.settle()?;
        Ok(done)
    }

    /// What was done so far.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn counters(&mut self) -> io::Result<&Counters> {
        for (drops, port) in self.counters.ports.iter_mut().zip(&mut self.ports) {
            *drops = port.drops()?;
        }
        Ok(&self.counters)
    }

    /// Bytes that came in so far.
    pub(super) fn received(&self) -> Size {
        Size(self.counters.received_bytes.iter().sum())
    }

    /// When the node wants to be called next.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.world.events.next_at()
    }

    /// Reads what the `ready` ports have; returns those that may have more.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn read(&mut self, ready: Ready) -> io::Result<Ready> {
        let mut more = Ready::default();
        for side in (0..2).filter(|side| ready.has(*side)) {
            for turn in 1..=BATCH {
                let Some(received) = self.ports[side].receive(self.buffers.scratch())? else { break };
                let at = self.clock.at(received.at);
                self.advance(at)?;
                self.accept(side, &received)?;
                if turn == BATCH {
                    more.add(side);
                }
            }
        }
        Ok(more)
    }

    /// Takes the unit in the scratch to the node.
    fn accept(&mut self, side: usize, received: &Received) -> io::Result<()> {
        self.counters.received[side] += 1;
        self.counters.received_bytes[side] += received.len as u64;
        let bytes = self.buffers.read(received.len);
        let tcp = match parse(bytes, &received.vnet, self.unit) {
            Ok(parsed) => self.numbered(side, parsed),
            Err(why) => {
                self.counters.note(why);
                None
            }
        };
        let opaque = tcp.is_none().then(|| {
            let bytes = self.buffers.read(received.len);
            (wire_size(bytes, &received.vnet, self.unit), Kin::of(bytes, self.unit))
        });
        let Some(off) = self.buffers.keep(received.len, &received.vnet, tcp.map(|p| (p.packet, p.shape)))
        else {
            self.counters.store_full += 1;
            return self.pass(side, received);
        };
        let mut packet = self.world.cx(self.present, NODE).packet();
        match (self.buffers.get(off).and_then(|held| held.tcp), opaque) {
            (Some((tcp, _)), _) => (*packet).clone_from(tcp),
            (None, opaque) => {
                let (size, kin) = opaque.unwrap_or_default();
                packet.set_opaque(off, size, Addr::default());
                kin.tell(&mut packet);
            }
        }
        let port = if side == 0 { LAN } else { SATELLITE };
        self.node.handle(&mut self.world.cx(self.present, NODE), Input::Packet(port, packet));
        self.settle()
    }

    /// The packet with the numbers of its addresses, if there are any left.
    fn numbered(&mut self, side: usize, mut parsed: Parsed) -> Option<Parsed> {
        let flags = parsed.packet.tcp.flags;
        if flags.has(Flags::SYN) && !flags.has(Flags::ACK) {
            self.node.opens(side, &parsed.ends);
        }
        let node = &self.node;
        let numbers = self.addresses.find(&parsed.ends, |each| node.addresses(each));
        if numbers.is_none() {
            self.counters.addresses_full += 1;
        }
        (parsed.packet.src, parsed.packet.dst) = numbers?;
        Some(parsed)
    }

    /// Sends the unit in the scratch out of the other port, as it came.
    fn pass(&mut self, side: usize, received: &Received) -> io::Result<()> {
        let to = other(side);
        let bytes = self.buffers.read(received.len);
        self.counters.untouched += 1;
        let port = self.ports[to].as_mut();
        offer(port, to, &received.vnet, &[IoSlice::new(bytes)], &mut self.counters)
    }

    /// Does what is due up to `until`.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn advance(&mut self, until: Instant) -> io::Result<()> {
        let floor = Instant(self.clock.now().0.saturating_sub(CATCH_UP.0));
        let mut is_late = false;
        while let Some(wake) = self.world.events.pop_until(until) {
            is_late |= wake.at < floor;
            self.present = self.present.max(wake.at).max(floor);
            self.node.handle(&mut self.world.cx(self.present, NODE), Input::Timer(wake.slot));
            self.settle()?;
        }
        self.counters.late_turns += u64::from(is_late);
        self.present = self.present.max(until).max(floor);
        Ok(())
    }

    /// Sends what the node sent, and sees to what it copied and gave back.
    fn settle(&mut self) -> io::Result<()> {
        // copies first: the packet they were made of may be among what was given back
        while let Some(off) = self.world.take_duplicated() {
            self.buffers.hold(off);
        }
        while let Some((_, port, mut packet)) = self.world.outbox.pop_front() {
            self.join(port, &mut packet);
            let sent = self.send(usize::from(port != LAN), &packet);
            self.buffers.release(packet.body.off);
            self.world.give_blank(packet);
            sent?;
        }
        while let Some(packet) = self.world.take_recycled() {
            self.buffers.release(packet.body.off);
            self.world.give_blank(packet);
        }
        Ok(())
    }

    /// Makes one packet of `packet` and those behind it that go on where it ends: a super-packet costs little more than a packet.
    fn join(&mut self, port: Port, packet: &mut Packet) {
        while let Some((_, to, next)) = self.world.outbox.front() {
            let segment = self.buffers.get(packet.body.off).and_then(|held| joint(&held, packet, next));
            let Some(segment) = segment.filter(|_| *to == port) else { return };
            let Some((_, _, next)) = self.world.outbox.pop_front() else { return };
            packet.segment = segment;
            packet.body.len += next.body.len;
            packet.tcp.flags = packet.tcp.flags.with(next.tcp.flags);
            self.buffers.release(next.body.off);
            self.world.give_blank(next);
        }
    }

    fn send(&mut self, to: usize, packet: &Packet) -> io::Result<()> {
        let held = self.buffers.get(packet.body.off).expect("a node sends what it received");
        let mut header = [0; HEADER_SPACE];
        let Emitted { vnet, header_len, payload, is_short } = emit(&held, packet, &mut header);
        let parts = [
            IoSlice::new(header.get(..header_len).unwrap_or_default()),
            IoSlice::new(held.bytes.get(payload).unwrap_or_default()),
        ];
        // a port wants the headers first
        let parts = if header_len == 0 { &parts[1..] } else { &parts[..] };
        self.counters.untouched += u64::from(header_len == 0);
        self.counters.options_short += u64::from(is_short);
        offer(self.ports[to].as_mut(), to, &vnet, parts, &mut self.counters)
    }
}

/// Bytes of a unit that only its port can read, as they will be on the wire.
fn wire_size(bytes: &[u8], vnet: &VnetHeader, unit: Unit) -> Size {
    const ETHERNET: usize = 14;
    let before = if unit == Unit::Frame { ETHERNET } else { 0 };
    let whole = Size(bytes.len().saturating_sub(before) as u64);
    if unit == Unit::Frame || vnet.gso_type == VnetHeader::GSO_NONE {
        return whole;
    }
    Super::parse(bytes, vnet)
        .map_or(whole, |cut| (0..cut.pieces()).fold(Size::ZERO, |sum, i| sum + cut.wire_len(i)))
}

/// Offers a packet to the kernel. One that it refuses is counted; an error is a port that is gone.
fn offer(
    port: &mut dyn PacketPort,
    to: usize,
    vnet: &VnetHeader,
    parts: &[IoSlice<'_>],
    counters: &mut Counters,
) -> io::Result<()> {
    match port.send(vnet, parts) {
        Ok(taken) => {
            if taken {
                counters.sent[to] += 1;
                counters.sent_bytes[to] += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            }
            Ok(())
        }
        Err(e) if is_about_the_packet(&e) => {
            counters.refused += 1;
            Ok(())
        }
        Err(e) => Err(e),
    }
}

/// True for what the kernel says of one packet, not of the port: too long for the interface, or not to be cut.
fn is_about_the_packet(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::MSGSIZE | Errno::PROTO | Errno::FBIG))
        || error.kind() == io::ErrorKind::InvalidInput
}
