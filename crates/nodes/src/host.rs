//! A host: ends of connections, listeners and their applications behind one network port.

use crate::app::{Reader, Writer};
use crate::ends::{ConnectionTable, Endpoint};
use crate::peers::Peers;
use crate::udp::{DatagramRate, DatagramSink, DatagramSource, DatagramStream, Datagrams, Taken};
use bentpipe_base::trace::{DropCause, Event, Mask};
use bentpipe_base::{
    Addr, Cx, Duration, Input, Instant, Node, Packet, Pkt, Port, Proto, RngSlot, Seq, Slot, TcpHeader, TooBig,
};
use bentpipe_tcp::{
    Config, Connection, Icmp, JitterKind, Offer, RandomValues, State, Tuple, reset_for, reset_in_listen,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Accepts connections.
#[derive(Clone, Debug)]
pub struct Listener {
    /// TCP configuration of accepted connections.
    pub config: Arc<Config>,
    /// The sending application of accepted connections.
    pub writer: Writer,
    /// The receiving application of accepted connections.
    pub reader: Reader,
}

/// A connection to open.
#[derive(Clone, Debug)]
pub struct ConnectRequest {
    /// Our port.
    pub port: u16,
    /// The peer's address and port.
    pub to: (Addr, u16),
    /// Our TCP configuration.
    pub config: Arc<Config>,
    /// Our sending application.
    pub writer: Writer,
    /// Our receiving application.
    pub reader: Reader,
}

/// A host with one network port.
#[derive(Debug, Default)]
pub struct Host {
    pub(crate) addr: Addr,
    pub(crate) ends: ConnectionTable,
    /// By port, sorted. A map would need ten times the memory for the one listener that most hosts have.
    pub(crate) listeners: Vec<(u16, Listener)>,
    pub(crate) planned: Vec<Option<(Instant, ConnectRequest)>>,
    pub(crate) isn: RngSlot,
    pub(crate) jitter: Option<RngSlot>,
    /// Packets delayed by per-packet jitter with their release times, in order.
    #[expect(clippy::box_collection, reason = "few of the hundreds of thousands of hosts hold packets")]
    pub(crate) held: Option<Box<VecDeque<(Instant, Pkt)>>>,
    /// Packets that belong to no connection, that no listener accepts, and for which there is no sink.
    pub refused: u64,
    pub(crate) udp: Option<Box<Datagrams>>,
    /// Peers to which SYNs hide their request for a rate; made when one asks.
    pub(crate) peers: Option<Box<Peers<Addr>>>,
}

/// Makes room for one element if there is none yet: most hosts need no more, and the default is four.
fn reserve_one<T>(of: &mut Vec<T>) {
    if of.capacity() == 0 {
        of.reserve_exact(1);
    }
}

/// Slots below this belong to connections; this plus a port is the slot of the source of datagrams at that
/// port.
const SOURCES: u32 = 1 << 30;
/// Slots at and above this start planned connections.
const PLANNED: u32 = 1 << 31;
/// Releases a packet held by per-packet jitter.
const HELD: Slot = Slot(u32::MAX);

impl Host {
    /// A host that draws initial sequence numbers from `isn` and sender jitter from `jitter`.
    pub fn new(addr: Addr, isn: RngSlot, jitter: Option<RngSlot>) -> Self {
        Self { addr, isn, jitter, ..Self::default() }
    }

    /// Accepts connections to `port`.
    pub fn listen(&mut self, port: u16, listener: Listener) {
        match self.listeners.binary_search_by_key(&port, |l| l.0) {
            Ok(i) => self.listeners[i].1 = listener,
            Err(i) => {
                reserve_one(&mut self.listeners);
                self.listeners.insert(i, (port, listener));
            }
        }
    }

    /// Opens a connection at `at`.
    pub fn connect_at(&mut self, cx: &mut Cx<'_>, at: Instant, call: ConnectRequest) {
        cx.wake(Slot(PLANNED + self.planned.len() as u32), at);
        reserve_one(&mut self.planned);
        self.planned.push(Some((at, call)));
    }

    /// Sends datagrams, each port one stream.
    pub fn send_datagrams(&mut self, cx: &mut Cx<'_>, stream: &DatagramStream) {
        self.send_datagrams_until(cx, stream, Instant::NEVER, None);
    }

    /// Sends datagrams until a time, if it is given at a rate for which the source asks the network.
    pub fn send_datagrams_until(
        &mut self,
        cx: &mut Cx<'_>,
        stream: &DatagramStream,
        until: Instant,
        rate: Option<&DatagramRate>,
    ) {
        let at = self.udp.get_or_insert_default().send(cx, stream, until, rate);
        cx.wake(Slot(SOURCES + u32::from(stream.port)), at);
    }

    /// Receives datagrams that `from` sends to `port`; returns the sink.
    pub fn receive_datagrams(&mut self, port: u16, from: (Addr, u16)) -> &mut DatagramSink {
        let sinks = &mut self.udp.get_or_insert_default().sinks;
        sinks.remove(&port);
        sinks.entry(port).or_insert_with(|| DatagramSink::new(from))
    }

    /// The source of datagrams at `port`.
    pub fn source(&self, port: u16) -> Option<&DatagramSource> {
        self.udp.as_ref()?.sources.get(&port)
    }

    /// The sink of datagrams at `port`.
    pub fn sink(&self, port: u16) -> Option<&DatagramSink> {
        self.udp.as_ref()?.sinks.get(&port)
    }

    /// The sink of datagrams at `port`, for taking its recent measurements.
    pub fn sink_mut(&mut self, port: u16) -> Option<&mut DatagramSink> {
        self.udp.as_mut()?.sinks.get_mut(&port)
    }

    /// The end of the connection between local port `port` and `to`: the open one, else the last closed one.
    pub fn end(&self, port: u16, to: (Addr, u16)) -> Option<&Endpoint> {
        self.ends.look_up((port, to.0, to.1))
    }

    /// Frees the end at local port `port`, after the run: if it is the host's only one.
    pub fn free_end(&mut self, port: u16) {
        self.ends.free_only(port);
    }

    /// Reads what the arrival of `packet` will use, as a link does ahead of its call; only for a host
    /// with one connection.
    #[inline]
    pub fn touch(&self, packet: Option<&Packet>) -> u64 {
        self.ends.only().map_or(0, |end| {
            let (conn, apps) = (&end.conn, end.touch());
            let is_data = packet.is_some_and(|p| p.body.len > 0);
            let sequence = packet.map_or(0, |p| u64::from(p.tcp.seq.0));
            apps ^ sequence ^ if is_data { conn.touch_receiver() } else { conn.touch_sender() }
        })
    }

    fn draw_random_values(&self, cx: &mut Cx<'_>) -> RandomValues {
        let bits = cx.rng(self.isn).bits();
        RandomValues { isn: Seq(bits as u32), timestamp: (bits >> 32) as u32, jitter: self.jitter }
    }

    /// A packet arrives.
    // Not inlined: links are called six times as often as hosts, and without this code their stack frame is
    // small.
    #[inline(never)]
    pub fn receive(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        if let Some(said) = packet.too_big() {
            self.too_big(cx, &packet, said);
            cx.recycle(packet);
        } else if packet.proto == Proto::Udp {
            let addr = self.addr;
            match self.udp.as_mut().map_or(Taken::Refused, |udp| udp.take(cx, addr, &packet)) {
                Taken::Refused => self.refuse(cx, &packet),
                Taken::Done => {}
                Taken::Source(port) => self.run_source(cx, Slot(SOURCES + u32::from(port))),
            }
            cx.recycle(packet);
        } else if let Some(i) = self.ends.find(&packet) {
            if let Some(end) = self.ends.get_mut(i) {
                if end.conn.state() == State::SynSent {
                    end.conn.segment(cx, &packet);
                    if end.conn.asked_in_syn() && end.conn.stats().established_at.is_some() {
                        let peers = self.peers.get_or_insert_default();
                        peers.opened(cx.now, packet.src, end.conn.stats().timeouts > 0);
                    }
                } else {
                    end.conn.segment(cx, &packet);
                }
            }
            cx.recycle(packet);
            self.run_inline(cx, i);
        } else {
            self.unknown(cx, packet);
        }
    }

    /// A link does not take a packet of ours. Sources of datagrams do not change their size.
    #[cold]
    fn too_big(&mut self, cx: &mut Cx<'_>, message: &Pkt, said: TooBig) {
        let Some(i) = self.ends.find(message).filter(|_| said.is_tcp) else { return };
        let Some(end) = self.ends.get_mut(i) else { return };
        let headers = u16::from(message.ip.header() + TcpHeader::default().wire_len());
        end.conn.icmp(cx, said.seq, Icmp::TooBig { segment: said.mtu.saturating_sub(headers) });
        self.run(cx, i);
    }

    fn refuse(&mut self, cx: &mut Cx<'_>, packet: &Pkt) {
        self.refused += 1;
        cx.trace(Mask::PACKETS, || Event::Dropped(packet, DropCause::NoListener));
    }

    fn unknown(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        let place = self.listeners.binary_search_by_key(&packet.dport, |l| l.0);
        let listener = place.ok().map(|i| &self.listeners[i].1);
        let answer = if listener.is_some() { reset_in_listen } else { reset_for };
        let offer = listener.and_then(|l| {
            let offer = Offer::new(&packet, Arc::clone(&l.config))?;
            Some((offer, l.writer.clone(), l.reader))
        });
        if let Some((offer, writer, reader)) = offer {
            let chance = self.draw_random_values(cx);
            let tuple = offer.tuple();
            let conn = offer.complete(cx, chance);
            let i = self.ends.add(tuple, Box::new(Endpoint::new(conn, writer, reader)));
            self.run(cx, i);
        } else {
            self.refuse(cx, &packet);
            if let Some(rst) = answer(cx, &packet) {
                cx.send(Port(0), rst);
            }
        }
        cx.recycle(packet);
    }

    /// Runs the applications, sends all packets that may be sent, and requests the next wake-up.
    fn run(&mut self, cx: &mut Cx<'_>, i: usize) {
        self.run_inline(cx, i);
    }

    /// The same as part of the caller.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called for every segment: a call costs 3 % of it")]
    fn run_inline(&mut self, cx: &mut Cx<'_>, i: usize) {
        let Some(end) = self.ends.get_mut(i) else { return };
        let read_at = end.reader.run(cx.now, &mut end.conn);
        let write_at = end.writer.run(cx, &mut end.conn);
        end.app_at = read_at.min(write_at);
        if let Some(rng) = self.jitter
            && let Some(jitter) = end.conn.config().jitter.filter(|j| j.kind == JitterKind::Packet)
        {
            transmit_late(end, cx, self.held.get_or_insert_default(), (jitter.max, rng));
        } else {
            end.conn.transmit_all(cx, |cx, packet| cx.send(Port(0), packet));
        }
        if end.conn.state() == State::Closed {
            self.ends.retire(i);
            return;
        }
        end.arm(cx, Slot(i as u32));
    }

    /// A timer that belongs to no connection.
    fn other_timer(&mut self, cx: &mut Cx<'_>, slot: Slot) {
        if slot == HELD {
            let Some(held) = &mut self.held else { return };
            let due = held.partition_point(|(at, _)| *at <= cx.now);
            held.drain(..due).for_each(|(_, packet)| cx.send(Port(0), packet));
        } else if let Some(i) = slot.0.checked_sub(PLANNED) {
            self.open(cx, i as usize);
        } else {
            self.run_source(cx, slot);
        }
    }

    /// Lets a source of datagrams send, and requests its next wake-up.
    fn run_source(&mut self, cx: &mut Cx<'_>, slot: Slot) {
        if let Some(udp) = &mut self.udp
            && let Some(at) = udp.run(cx, (self.addr, (slot.0 - SOURCES) as u16))
        {
            cx.wake(slot, at);
        }
    }

    fn open(&mut self, cx: &mut Cx<'_>, planned: usize) {
        let Some(place) = self.planned.get_mut(planned) else { return };
        let Some((_, ConnectRequest { port, to, config, writer, reader })) =
            place.take_if(|(at, _)| *at <= cx.now)
        else {
            return;
        };
        if self.planned.len() == 1 {
            self.planned = Vec::new(); // most hosts open one connection and no other
        }
        let tuple = Tuple { local: (self.addr, port), remote: to };
        let chance = self.draw_random_values(cx);
        let mut conn = Connection::connect(cx, tuple, config, chance);
        if self.peers.as_ref().is_some_and(|peers| peers.hides(cx.now, to.0)) {
            conn.hide_request();
        }
        let i = self.ends.add(tuple, Box::new(Endpoint::new(conn, writer, reader)));
        self.run(cx, i);
    }

    /// A wake-up that the host has requested, or an outdated one.
    #[inline(never)]
    pub fn wake(&mut self, cx: &mut Cx<'_>, slot: Slot) {
        if slot.0 >= SOURCES {
            self.other_timer(cx, slot);
            return;
        }
        let i = slot.0 as usize;
        let Some(end) = self.ends.get_mut(i) else { return };
        if cx.now < end.armed {
            return; // an earlier wake-up has replaced this one
        }
        end.disarm();
        if !end.conn.timer(cx) && end.app_at > cx.now {
            // the deadline has moved: only request another wake-up
            end.arm(cx, slot);
            return;
        }
        self.run(cx, i);
    }
}

impl Node for Host {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(_, packet) => self.receive(cx, packet),
            Input::Timer(slot) => self.wake(cx, slot),
        }
    }
}

/// Sends all that an end may send, under per-packet jitter.
#[inline(never)]
fn transmit_late(
    end: &mut Endpoint,
    cx: &mut Cx<'_>,
    held: &mut VecDeque<(Instant, Pkt)>,
    (max, rng): (Duration, RngSlot),
) {
    end.conn.transmit_all(cx, |cx, packet| hold(held, cx, max, rng, packet));
}

/// Per-packet jitter: holds each packet for a random time of its own and keeps the order.
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

    /// Each packet waits for a time of its own, up to the largest delay, and none overtakes another.
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
