//! A host: ends of connections, listeners and their applications behind one network port.

use crate::app::{Reader, Writer};
use bentpipe_base::trace::{DropCause, Event, Mask};
use bentpipe_base::{Addr, Cx, Duration, Input, Instant, Node, Pkt, Port, RngSlot, Seq, Slot};
use bentpipe_tcp::{Chance, Config, Connection, JitterKind, Offer, Tuple, reset_for};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A connection with the applications on it.
#[derive(Debug)]
pub struct Endpoint {
    /// The connection.
    pub conn: Connection,
    writer: Writer,
    reader: Reader,
    /// Earliest wake-up asked for and not yet seen.
    armed: Instant,
    /// When an application wants to run again.
    app_at: Instant,
}

/// Waits for a connection.
#[derive(Clone, Debug)]
pub struct Listener {
    /// TCP of the accepted connection.
    pub config: Arc<Config>,
    /// What it writes.
    pub writer: Writer,
    /// How it reads.
    pub reader: Reader,
}

/// A connection to open.
#[derive(Clone, Debug)]
pub struct Call {
    /// Our port.
    pub port: u16,
    /// The peer's address and port.
    pub to: (Addr, u16),
    /// Our TCP.
    pub config: Arc<Config>,
    /// What we write.
    pub writer: Writer,
}

/// A host with one network port.
#[derive(Debug)]
pub struct Host {
    addr: Addr,
    ends: Ends,
    /// Connection by local and remote port and remote address.
    demux: BTreeMap<(u16, Addr, u16), u32>,
    listeners: BTreeMap<u16, Listener>,
    planned: Vec<(Instant, Call)>,
    isn: RngSlot,
    jitter: Option<RngSlot>,
    /// Packets under per-packet jitter, in the order and with the times of their release.
    held: VecDeque<(Instant, Pkt)>,
    refused: u64,
}

/// The ends of a host's connections. The first lies in place: most hosts have one, and a pointer less counts.
#[derive(Debug)]
struct Ends {
    first: Option<Endpoint>,
    more: Vec<Endpoint>,
}

impl Ends {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }
    #[inline]
    fn get(&self, i: usize) -> Option<&Endpoint> {
        if i == 0 { self.first.as_ref() } else { self.more.get(i - 1) }
    }
    #[inline]
    fn get_mut(&mut self, i: usize) -> Option<&mut Endpoint> {
        if i == 0 { self.first.as_mut() } else { self.more.get_mut(i - 1) }
    }
    fn push(&mut self, end: Endpoint) {
        if self.first.is_none() {
            self.first = Some(end);
        } else {
            self.more.push(end);
        }
    }
}

/// Slots at and above this start planned connections; those below belong to connections.
const PLANNED: u32 = 1 << 31;
/// Releases a packet held by per-packet jitter.
const HELD: Slot = Slot(u32::MAX);

impl Host {
    /// A host that draws initial sequence numbers from `isn` and sender jitter from `jitter`.
    pub const fn new(addr: Addr, isn: RngSlot, jitter: Option<RngSlot>) -> Self {
        Self {
            addr,
            ends: Ends { first: None, more: Vec::new() },
            demux: BTreeMap::new(),
            listeners: BTreeMap::new(),
            planned: Vec::new(),
            isn,
            jitter,
            held: VecDeque::new(),
            refused: 0,
        }
    }

    /// Its address.
    pub const fn addr(&self) -> Addr {
        self.addr
    }

    /// Accepts connections to `port`.
    pub fn listen(&mut self, port: u16, listener: Listener) {
        self.listeners.insert(port, listener);
    }

    /// Opens a connection at `at`.
    pub fn connect_at(&mut self, cx: &mut Cx<'_>, at: Instant, call: Call) {
        cx.wake(Slot(PLANNED + self.planned.len() as u32), at);
        self.planned.push((at, call));
    }

    /// The connection between local port `port` and `to`.
    pub fn connection(&self, port: u16, to: (Addr, u16)) -> Option<&Connection> {
        let i = self.demux.get(&(port, to.0, to.1))?;
        self.ends.get(*i as usize).map(|e| &e.conn)
    }

    /// Segments for which there was neither connection nor listener.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn chance(&self, cx: &mut Cx<'_>) -> Chance {
        let bits = cx.rng(self.isn).bits();
        Chance { isn: Seq(bits as u32), timestamp: (bits >> 32) as u32, jitter: self.jitter }
    }

    fn add(&mut self, tuple: Tuple, conn: Connection, writer: Writer, reader: Reader) -> usize {
        let i = self.ends.len();
        self.demux.insert((tuple.local.1, tuple.remote.0, tuple.remote.1), i as u32);
        self.ends.push(Endpoint { conn, writer, reader, armed: Instant::NEVER, app_at: Instant::NEVER });
        i
    }

    fn packet(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        match self.find(&packet) {
            Some(i) => {
                if let Some(end) = self.ends.get_mut(i) {
                    end.conn.segment(cx, &packet);
                }
                cx.recycle(packet);
                self.run(cx, i);
            }
            None => self.unknown(cx, packet),
        }
    }

    #[inline]
    fn find(&self, packet: &Pkt) -> Option<usize> {
        // most hosts have one connection
        if let Some(only) = &self.ends.first
            && self.ends.more.is_empty()
        {
            let t = only.conn.tuple();
            if t.local.1 == packet.dport && t.remote == (packet.src, packet.sport) {
                return Some(0);
            }
        }
        self.demux.get(&(packet.dport, packet.src, packet.sport)).map(|i| *i as usize)
    }

    fn unknown(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        let offer = self.listeners.get(&packet.dport).and_then(|l| {
            let offer = Offer::new(&packet, Arc::clone(&l.config))?;
            Some((offer, l.writer, l.reader))
        });
        if let Some((offer, writer, reader)) = offer {
            let chance = self.chance(cx);
            let tuple = offer.tuple();
            let conn = offer.complete(cx, chance);
            let i = self.add(tuple, conn, writer, reader);
            self.run(cx, i);
        } else {
            self.refused += 1;
            cx.trace(Mask::PACKETS, || Event::Dropped(&packet, DropCause::NoListener));
            if let Some(rst) = reset_for(cx, &packet) {
                cx.send(Port(0), rst);
            }
        }
        cx.recycle(packet);
    }

    /// Lets the applications act, sends what may be sent, and arms the next wake-up.
    fn run(&mut self, cx: &mut Cx<'_>, i: usize) {
        let Some(end) = self.ends.get_mut(i) else { return };
        let read_at = end.reader.run(cx.now, &mut end.conn);
        let write_at = end.writer.run(cx.now, &mut end.conn);
        end.app_at = read_at.min(write_at);
        let jitter = end.conn.config().jitter.filter(|j| j.kind == JitterKind::Packet);
        while let Some(packet) = end.conn.transmit(cx) {
            match jitter.zip(self.jitter) {
                Some((jitter, rng)) => hold(&mut self.held, cx, jitter.max, rng, packet),
                None => cx.send(Port(0), packet),
            }
        }
        let deadline = end.conn.deadline().min(end.app_at);
        if deadline < end.armed {
            end.armed = deadline;
            cx.wake(Slot(i as u32), deadline);
        }
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        while let Some((at, _)) = self.held.front()
            && *at <= cx.now
        {
            if let Some((_, packet)) = self.held.pop_front() {
                cx.send(Port(0), packet);
            }
        }
    }

    fn timer(&mut self, cx: &mut Cx<'_>, slot: Slot) {
        if slot == HELD {
            self.release(cx);
            return;
        }
        if let Some(planned) = slot.0.checked_sub(PLANNED).and_then(|i| self.planned.get(i as usize)) {
            let (at, Call { port, to, config, writer }) = planned.clone();
            if cx.now < at {
                return;
            }
            let tuple = Tuple { local: (self.addr, port), remote: to };
            let chance = self.chance(cx);
            let conn = Connection::connect(cx, tuple, config, chance);
            let i = self.add(tuple, conn, writer, Reader::Eager);
            self.run(cx, i);
            return;
        }
        let i = slot.0 as usize;
        let Some(end) = self.ends.get_mut(i) else { return };
        if cx.now < end.armed {
            return; // an entry that an earlier one replaced
        }
        end.armed = Instant::NEVER;
        if end.conn.deadline() <= cx.now {
            end.conn.timer(cx);
        } else if end.app_at > cx.now {
            // the deadline moved on: arm it again without touching anything
            let deadline = end.conn.deadline().min(end.app_at);
            if deadline < Instant::NEVER {
                end.armed = deadline;
                cx.wake(slot, deadline);
            }
            return;
        }
        self.run(cx, i);
    }
}

impl Node for Host {
    #[inline]
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(_, packet) => self.packet(cx, packet),
            Input::Timer(slot) => self.timer(cx, slot),
        }
    }
}

/// Per-packet jitter: each packet is held for a random time of its own, order kept.
fn hold(held: &mut VecDeque<(Instant, Pkt)>, cx: &mut Cx<'_>, max: Duration, rng: RngSlot, packet: Pkt) {
    let delay = cx.rng(rng).up_to(max);
    let last = held.back().map_or(Instant::ZERO, |(at, _)| *at);
    let release = last.max(cx.now + delay);
    held.push_back((release, packet));
    cx.wake(HELD, release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{NodeId, Purpose, World};

    /// Packet jitter: each packet waits for a time of its own, up to the largest delay, and none overtakes another.
    #[test]
    fn packet_jitter_delays_each_packet_and_keeps_the_order() {
        let mut world = World::new(1);
        let rng = world.open_rng("host", Purpose::Jitter);
        let max = Duration::from_millis(5);
        let mut held = VecDeque::new();
        let mut sent = Vec::new();
        for i in 0..200 {
            let now = Instant(i * 1_000_000);
            let mut cx = world.cx(now, NodeId(0));
            let mut packet = cx.packet();
            packet.body.off = i;
            hold(&mut held, &mut cx, max, rng, packet);
            sent.push(now);
        }
        let waits: Vec<_> = held.iter().zip(&sent).map(|((at, _), sent)| at.since(*sent)).collect();
        assert!(waits.iter().all(|w| *w <= max) && waits.windows(2).any(|w| w[0] != w[1]), "{waits:?}");
        let mean = waits.iter().map(|w| w.0).sum::<u64>() / 200;
        assert!(mean > max.0 / 2, "half of the largest delay, more where a packet waits for another: {mean}");
        assert!(held.iter().zip(held.iter().skip(1)).all(|(a, b)| a.0 <= b.0 && a.1.body.off < b.1.body.off));
    }
}
