//! A gateway between two hosts, with the hop behind it: the whole path in simulated time.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part; this is test code")]

use bentpipe_base::{
    Addr, Duration, Flags, Input, Instant, Node, NodeId, Packet, Pkt, Port, Probability, Purpose, Rate, Seq,
    Size, World,
};
use bentpipe_gateway::{Config as GatewayConfig, Gateway, LAN, SATELLITE};
use bentpipe_link::{Capacity, Channel, Discipline, Errors, Link, Queue};
use bentpipe_nodes::{ConnectRequest, Host, Listener, Reader, Writer};
use bentpipe_tcp::{Config, Connection, Options, ReceiveBuffer};
use std::sync::Arc;

pub(crate) const SENDER: usize = 0;
pub(crate) const RECEIVER: usize = 1;
const GATEWAY: usize = 2;
const HOP: usize = 3;
const BACK: usize = 4;
/// The timer of the sender's kernel for joined segments.
const JOINER: usize = 5;
/// How long it waits for more segments.
const JOINING: Duration = Duration::from_millis(4);
/// The sender's port and the receiver's.
pub(crate) const PORTS: (u16, u16) = (80, 5000);

/// The hop.
#[derive(Clone, Copy)]
pub(crate) struct Hop {
    pub(crate) bps: u64,
    pub(crate) one_way: Duration,
    pub(crate) loss: f64,
    pub(crate) back_loss: f64,
    pub(crate) queue: u64,
}

/// 24 Mbit/s, 1000 ms RTT and a queue of 64 KB.
pub(crate) const WINDS: Hop =
    Hop { bps: 24_000_000, one_way: Duration::from_millis(500), loss: 0.0, back_loss: 0.0, queue: 64 << 10 };

pub(crate) fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// A modern host.
pub(crate) fn modern() -> Config {
    let mut config = Config::linux();
    config.receive_buffer = ReceiveBuffer::Auto { initial: Size(65_535), max: Size(16 << 20) };
    config
}

/// An old host: 64 KB, no scaling, no timestamps.
pub(crate) fn old() -> Config {
    let options = Options { window_scale: false, timestamps: false, ..Config::linux().options };
    Config { options, receive_buffer: ReceiveBuffer::Fixed(Size(65_535)), ..Config::linux() }
}

/// A gateway configured for the hop.
pub(crate) fn gateway(hop: &Hop) -> GatewayConfig {
    GatewayConfig { rate: Rate::from_bps(hop.bps), framing: Size(14), ..GatewayConfig::default() }
}

/// Who opens the connection, what each end writes and how it reads.
pub(crate) struct Plan {
    pub(crate) sender: Config,
    pub(crate) receiver: Config,
    pub(crate) writes: [Writer; 2],
    pub(crate) reads: [Reader; 2],
    pub(crate) receiver_opens: bool,
}

impl Plan {
    /// The receiver opens and gets bulk data.
    pub(crate) fn bulk(receiver: Config) -> Self {
        Self {
            sender: modern(),
            receiver,
            writes: [Writer::Bulk, Writer::Silent],
            reads: [Reader::Eager; 2],
            receiver_opens: true,
        }
    }
}

/// The path.
pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) now: Instant,
    hosts: [Host; 2],
    pub(crate) gateway: Gateway,
    links: [Link; 2],
    bypass: bool,
    /// Every packet that the gateway sent to the sender, if recorded.
    pub(crate) seen: Option<Vec<(Instant, Packet)>>,
    queue_peak: u64,
    promise: Promise,
    /// Percentages of packets between the sender and the gateway that are lost, duplicated, or late.
    pub(crate) lan: [u32; 3],
    dice: u64,
    late: Vec<(usize, Port, Pkt)>,
    /// The sender's kernel joins up to this many bytes into one packet, and the receiver's rejects a whole
    /// packet that reaches beyond its window, as Linux does since 6.17.
    pub(crate) joins: u32,
    joined: Option<Pkt>,
    /// Rejected packets.
    pub(crate) refused: [u64; 2],
}

/// Invariants that must hold for every packet.
#[derive(Default)]
struct Promise {
    /// Of both ends: ISN, and the shift it offered.
    isn: [Option<u32>; 2],
    shift: [Option<u8>; 2],
    /// The right edge advertised to the sender.
    edge: u64,
    /// The receiver's last ACK and right edge, with the shift that it offered itself.
    told: (u64, u64),
    own_shift: u8,
    /// How far it has moved its own edge left by rounding of its scaled window.
    left: u64,
}

impl Promise {
    fn syn(&mut self, end: usize, packet: &Packet) {
        if packet.tcp.flags.has(Flags::SYN) {
            self.isn[end] = Some(packet.tcp.seq.0);
            self.shift[end] = packet.tcp.window_scale;
        }
    }

    /// Position of a sequence number of `end`, near `near`.
    fn position(&self, end: usize, seq: Seq, near: u64) -> Option<u64> {
        Seq(self.isn[end]?).offset_near(seq, near)
    }

    /// Checks a packet from the gateway to the sender, when the receiver has `received` bytes.
    fn check_ack(&mut self, packet: &Packet, received: u64, sender: Option<u8>) {
        self.syn(RECEIVER, packet);
        let tcp = &packet.tcp;
        if !tcp.flags.has(Flags::ACK) || tcp.flags.has(Flags::RST) {
            return;
        }
        let Some(ack) = self.position(SENDER, tcp.ack, received) else { return };
        assert!(ack <= received + 2, "the sender is told {ack}, the receiver has {received}");
        for (left, right) in tcp.sack.as_slice() {
            let block = (self.position(SENDER, *left, ack), self.position(SENDER, *right, ack));
            assert!(block.0 < block.1, "a block has a length");
        }
        let syn = tcp.flags.has(Flags::SYN);
        let shift = if syn || sender.is_none() { 0 } else { self.shift[RECEIVER].unwrap_or(0) };
        let edge = ack + (u64::from(tcp.window) << shift);
        assert!(edge + self.left >= self.edge || syn, "the right edge moved from {} to {edge}", self.edge);
        self.edge = self.edge.max(edge);
    }

    /// Notes a packet that the receiver sends.
    fn note_edge(&mut self, packet: &Packet, received: u64) {
        let syn = packet.tcp.flags.has(Flags::SYN);
        if syn {
            self.own_shift = packet.tcp.window_scale.unwrap_or(0);
        }
        let shift = if syn || self.shift[SENDER].is_none() { 0 } else { self.own_shift };
        if let Some(ack) = self.position(SENDER, packet.tcp.ack, received) {
            let edge = ack + (u64::from(packet.tcp.window) << shift);
            self.left = self.left.max(self.told.1.saturating_sub(edge));
            self.told = (ack, self.told.1.max(edge));
        }
    }

    /// True if the receiver's kernel rejects the packet for its sequence number.
    fn refuses(&self, packet: &Packet) -> bool {
        let plain = !packet.tcp.flags.has(Flags::SYN) && !packet.tcp.flags.has(Flags::RST);
        let start = self.position(SENDER, packet.tcp.seq, self.told.0).filter(|_| plain);
        start.is_some_and(|start| start + packet.seq_len() > self.told.1)
    }

    /// Checks a packet from the gateway to the receiver: its bytes must match its sequence number.
    fn check_data(&mut self, packet: &Packet) {
        let payload = packet.body.len > 0;
        if let Some(start) = self.position(SENDER, packet.tcp.seq, packet.body.off + 1).filter(|_| payload) {
            assert_eq!(start, packet.body.off + 1, "bytes were shifted");
        }
        assert_eq!(
            u64::from(packet.header_len),
            20 + u64::from(packet.tcp.wire_len()),
            "the header's length is true"
        );
    }
}

fn link(world: &mut World, name: &str, hop: &Hop, loss: f64) -> Link {
    let rng = world.open_rng(name, Purpose::Errors);
    let errors = Errors { rng, loss: Probability::new(loss).unwrap(), ber: Probability::ZERO };
    let rate = Rate::from_bps(hop.bps).unwrap();
    let channel = Channel::new(rate, hop.one_way, Size(14), Some(errors));
    Link::new(Queue::new(Capacity::Bytes(Size(hop.queue)), Discipline::Fifo, 0), channel)
}

impl Rig {
    pub(crate) fn new(seed: u64, hop: &Hop, config: GatewayConfig, plan: &Plan) -> Self {
        let mut world = World::new(seed);
        let hosts = ["sender", "receiver"].map(|name| world.open_rng(name, Purpose::Isn));
        let hosts = [Host::new(Addr(0), hosts[0], None), Host::new(Addr(1), hosts[1], None)];
        let links = [link(&mut world, "hop", hop, hop.loss), link(&mut world, "back", hop, hop.back_loss)];
        let bypass = !config.accelerate;
        let gateway = Gateway::new(config);
        let mut rig = Self {
            world,
            now: Instant::ZERO,
            hosts,
            gateway,
            links,
            bypass,
            seen: None,
            queue_peak: 0,
            promise: Promise::default(),
            lan: [0; 3],
            dice: seed | 1,
            late: Vec::new(),
            joins: 0,
            joined: None,
            refused: [0; 2],
        };
        rig.open(plan);
        rig
    }

    fn open(&mut self, plan: &Plan) {
        let configs = [Arc::new(plan.sender.clone()), Arc::new(plan.receiver.clone())];
        let ports = [PORTS.0, PORTS.1];
        let opener = usize::from(plan.receiver_opens);
        for end in 0..2 {
            let (config, writer, reader) =
                (Arc::clone(&configs[end]), plan.writes[end].clone(), plan.reads[end]);
            if end == opener {
                let to = (Addr(1 - end as u32), ports[1 - end]);
                let call = ConnectRequest { port: ports[end], to, config, writer, reader };
                let mut cx = self.world.cx(self.now, NodeId(end as u32));
                self.hosts[end].connect_at(&mut cx, at(0.1), call);
            } else {
                self.hosts[end].listen(ports[end], Listener { config, writer, reader });
            }
        }
    }

    fn call(&mut self, node: usize, input: Input) {
        let mut cx = self.world.cx(self.now, NodeId(node as u32));
        match node {
            SENDER | RECEIVER => self.hosts[node].handle(&mut cx, input),
            GATEWAY => self.gateway.handle(&mut cx, input),
            _ => self.links[node - HOP].handle(&mut cx, input),
        }
        if node == HOP {
            let mut cx = self.world.cx(self.now, NodeId(HOP as u32));
            self.queue_peak = self.queue_peak.max(self.links[0].snapshot(&mut cx).queue_bytes.0);
        }
    }

    fn handle(&mut self, node: usize, input: Input) {
        if node == JOINER {
            if let Some(packet) = self.joined.take() {
                self.call(GATEWAY, Input::Packet(LAN, packet));
            }
        } else {
            self.call(node, input);
        }
        while let Some((from, port, mut packet)) = self.world.outbox.pop_front() {
            let (to, port) = match (from.0 as usize, port) {
                (SENDER, _) => (GATEWAY, LAN),
                (RECEIVER, _) => (BACK, Port(0)),
                (GATEWAY, LAN) => (SENDER, Port(0)),
                (GATEWAY, _) => (HOP, Port(0)),
                (HOP, _) => (RECEIVER, Port(0)),
                _ => (GATEWAY, SATELLITE),
            };
            match to {
                SENDER if from.0 as usize == GATEWAY => {
                    let received = self.received();
                    self.promise.check_ack(&packet, received, self.promise.shift[SENDER]);
                }
                HOP => self.promise.check_data(&packet),
                GATEWAY if from.0 as usize == SENDER => self.promise.syn(SENDER, &packet),
                BACK => self.promise.note_edge(&packet, self.received()),
                RECEIVER if self.joins > 0 => self.refuse(&mut packet),
                _ => {}
            }
            if let Some(seen) = self.seen.as_mut().filter(|_| to == SENDER) {
                seen.push((self.now, (*packet).clone()));
            }
            if self.joins > 0 && from.0 as usize == SENDER {
                self.join(packet);
            } else if matches!((from.0 as usize, to), (SENDER, GATEWAY) | (GATEWAY, SENDER))
                && self.lan != [0; 3]
            {
                self.across(to, port, packet);
            } else {
                self.call(to, Input::Packet(port, packet));
            }
        }
    }

    /// Joins adjacent segments into one packet.
    fn join(&mut self, packet: Pkt) {
        if let Some(last) = &mut self.joined {
            let (old, new) = (&last.tcp, &packet.tcp);
            let header = (old.ack, old.window, old.timestamps, &old.sack)
                == (new.ack, new.window, new.timestamps, &new.sack);
            let data =
                last.body.len > 0 && packet.body.len > 0 && old.flags == new.flags && old.flags == Flags::ACK;
            let mss = if last.segment > 0 { u32::from(last.segment) } else { last.body.len };
            let fits = last.body.len % mss.max(1) == 0
                && packet.body.len <= mss
                && last.body.len + packet.body.len <= self.joins;
            if header && data && fits && old.seq.at(u64::from(last.body.len)) == new.seq {
                last.segment = mss as u16;
                last.body.len += packet.body.len;
                self.world.cx(self.now, NodeId(JOINER as u32)).recycle(packet);
                return;
            }
        }
        if let Some(last) = self.joined.replace(packet) {
            self.call(GATEWAY, Input::Packet(LAN, last));
        }
        let at = self.now + JOINING;
        self.world.cx(self.now, NodeId(JOINER as u32)).wake(bentpipe_base::Slot(0), at);
    }

    /// Rejects a packet beyond the receiver's window: removes its data and makes its sequence number invalid,
    /// so the receiver ignores its acknowledgment and only answers with an ACK.
    fn refuse(&mut self, packet: &mut Packet) {
        if self.promise.refuses(packet) {
            self.refused[usize::from(packet.body.len == 0)] += 1;
            packet.tcp.seq = packet.tcp.seq.at(1 << 28);
            (packet.body.len, packet.segment, packet.tcp.flags) = (0, 0, Flags::ACK);
        }
    }

    fn roll(&mut self) -> u32 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 33) as u32 % 100
    }

    /// The network in front of the gateway, with loss, duplication and reordering.
    fn across(&mut self, to: usize, port: Port, packet: Pkt) {
        let [lost, twice, late] = self.lan;
        let held = core::mem::take(&mut self.late);
        if self.roll() < lost {
            self.world.cx(self.now, NodeId(to as u32)).recycle(packet);
        } else if self.roll() < late {
            self.late.push((to, port, packet));
        } else {
            if self.roll() < twice {
                let copy = self.world.cx(self.now, NodeId(to as u32)).duplicate(&packet);
                self.call(to, Input::Packet(port, copy));
            }
            self.call(to, Input::Packet(port, packet));
        }
        for (to, port, packet) in held {
            self.call(to, Input::Packet(port, packet));
        }
    }

    pub(crate) fn run_until(&mut self, until: Instant) {
        while let Some(wake) = self.world.events.pop_until(until) {
            self.now = wake.at;
            self.handle(wake.node.0 as usize, Input::Timer(wake.slot));
        }
        self.now = until;
    }

    /// Starts a planned stop.
    pub(crate) fn release(&mut self) {
        let mut cx = self.world.cx(self.now, NodeId(GATEWAY as u32));
        self.gateway.release_all(&mut cx);
        self.handle(GATEWAY, Input::Timer(bentpipe_base::Slot(0)));
    }

    /// Changes the gateway's configuration.
    pub(crate) fn reconfigure(&mut self, config: GatewayConfig) {
        let mut cx = self.world.cx(self.now, NodeId(GATEWAY as u32));
        self.gateway.reconfigure(&mut cx, config);
        self.handle(GATEWAY, Input::Timer(bentpipe_base::Slot(0)));
    }

    /// An end of the connection.
    pub(crate) fn end(&self, end: usize) -> Option<&Connection> {
        let ports = [PORTS.0, PORTS.1];
        self.hosts[end].end(ports[end], (Addr(1 - end as u32), ports[1 - end])).map(|end| &end.conn)
    }

    /// Bytes that the receiver has in order.
    pub(crate) fn received(&self) -> u64 {
        self.end(RECEIVER).map_or(0, Connection::received)
    }

    /// Goodput in Mbit/s between two times in seconds.
    pub(crate) fn goodput(&mut self, from: f64, to: f64) -> f64 {
        self.run_until(at(from));
        let before = self.received();
        self.run_until(at(to));
        (self.received() - before) as f64 * 8e-6 / (to - from)
    }

    /// Largest number of bytes queued at the hop.
    pub(crate) const fn queue_peak(&self) -> u64 {
        self.queue_peak
    }

    /// Packets that the hop's queue dropped.
    pub(crate) fn hop_drops(&mut self) -> u64 {
        let mut cx = self.world.cx(self.now, NodeId(HOP as u32));
        self.links[0].stats(&mut cx).dropped_in_queue()
    }
}
