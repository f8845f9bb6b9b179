//! A network between ports, with the bytes of what is in it. It knows no clock and no socket.
//!
//! Units go in with the time they came; packets come out, each with the time it was due. The same inputs in
//! the same order give the same outputs: that is what makes a journal worth keeping.
//!
//! Where a node reads headers, a unit that can be read becomes a TCP packet; else it is opaque to the
//! network, and only its flow, length and code points are known. A super-packet goes in whole, and is cut
//! into wire packets where it enters a link.

use crate::counters::Counters;
use crate::digest::Digest;
use crate::emit::{Emitted, emit, joint};
use crate::frame::Unit;
use crate::hosts::Hosts;
use crate::label::Label;
use crate::parse::{HEADER_SPACE, Parsed, parse};
use crate::store::{Content, Store};
use bentpipe_base::{Addr, Body, Flags, Instant, NodeId, Packet, Pkt, Port, Size};
use bentpipe_network::Network;
use bentpipe_wire::offload::{Super, VnetHeader, addresses};
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What leaves as one: a packet, or neighbours that arrived together.
#[derive(Debug)]
pub struct Arrival {
    /// When the first was due.
    pub due: Instant,
    /// Which port.
    pub port: usize,
    /// Packets of the network: wire packets, or a super-packet that passed whole.
    pub pieces: u32,
    packet: Pkt,
}

/// Which host every real address leads to, for networks with routers.
#[derive(Debug, Default)]
struct Routes {
    hosts: Hosts,
    /// The host to which each number of an address was last routed.
    of: Vec<Option<Addr>>,
}

/// A network and the store of its packets' bytes.
#[derive(Debug)]
pub struct LiveNetwork {
    /// The network; its present time is that of the last input or advance.
    pub network: Network,
    /// Bytes of what is in it; a capture on the network's trace reads them too.
    pub store: Rc<RefCell<Store>>,
    /// What came in and went out.
    pub(crate) counters: Counters,
    unit: Unit,
    /// The open end of each port, and which host it is.
    ports: Vec<(NodeId, usize)>,
    routes: Option<Routes>,
    next: Option<(Instant, NodeId, Pkt)>,
    /// Of what came out, when somebody wants it.
    digest: Option<Digest>,
}

impl LiveNetwork {
    /// A network whose open ends are `ports`, each with the host that lies behind it.
    pub fn new(mut network: Network, ports: Vec<(NodeId, usize)>, unit: Unit, memory: Size) -> Self {
        network.world.count_holders();
        Self {
            network,
            store: Rc::new(RefCell::new(Store::new(memory))),
            counters: Counters::new(ports.len()),
            unit,
            ports,
            routes: None,
            next: None,
            digest: None,
        }
    }

    /// A network of one node whose ports 0 and 1 lead to the two open ends: a gateway's the LAN and the
    /// satellite. `add` puts the node, the only one, into the network.
    pub fn around(add: impl FnOnce(&mut Network) -> NodeId, seed: u64, unit: Unit, memory: Size) -> Self {
        Self::chain(|network| vec![add(network)], seed, unit, memory)
    }

    /// A network of nodes one behind the other between two open ends. `add` puts them, at least one, into the
    /// network.
    pub fn chain(add: impl FnOnce(&mut Network) -> Vec<NodeId>, seed: u64, unit: Unit, memory: Size) -> Self {
        let mut network = Network::new(seed);
        let chain = add(&mut network);
        let ends = [network.add_open_end(), network.add_open_end()];
        network.wire_chain(ends[0], &chain, ends[1]);
        network.wire(ends[0], chain[0]);
        network.wire(ends[1], (chain[chain.len() - 1], Port(1)));
        Self::new(network, vec![(ends[0], 0), (ends[1], 1)], unit, memory)
    }

    /// For a network whose routers know its nodes by their places, `Addr(0)` to `Addr(nodes - 1)`: `hosts`
    /// says where real addresses lead.
    #[must_use]
    pub fn routed(mut self, hosts: Hosts, nodes: usize) -> Self {
        self.network.world.addresses.reserve(u32::try_from(nodes).unwrap_or(u32::MAX));
        self.routes = Some(Routes { hosts, of: Vec::new() });
        self
    }

    /// Keeps a digest of what comes out from now on.
    pub fn keep_digest(&mut self) {
        self.digest = Some(Digest::default());
    }

    /// The digest so far; that of nothing when none is kept.
    pub fn digest(&self) -> blake3::Hash {
        self.digest.as_ref().map_or_else(|| Digest::default().finish(), Digest::finish)
    }

    /// What came in and went out; [`crate::Core::counters`] has the ports' losses too.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The port of a host.
    pub fn port_of(&self, host: usize) -> Option<usize> {
        self.ports.iter().position(|(_, h)| *h == host)
    }

    /// The host behind a port.
    pub(crate) fn host_of(&self, port: usize) -> usize {
        self.ports[port].1
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.network.now()
    }

    /// When something is to be done next.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.network.next_at()
    }

    /// Does everything that is due up to and including `until`. Earlier times do nothing.
    pub fn advance(&mut self, until: Instant) {
        if until >= self.now() {
            self.network.run_until(until, |_| false);
            self.settle();
        }
    }

    /// Takes the unit of `len` bytes that lies in the scratch of the store, which came at `port`. False when
    /// there is no room for it: the scratch is as it was.
    pub fn accept(&mut self, port: usize, len: usize, vnet: &VnetHeader) -> bool {
        let counters = &mut self.counters.ports[port];
        counters.received += 1;
        counters.received_bytes += len as u64;
        let (mut packet, content) = self.read(port, len, vnet);
        if matches!(content, Content::Bytes) && self.routes.is_some() {
            // only IP packets can be routed
            self.counters.not_ip += 1;
            self.network.world.give_blank(packet);
            return true;
        }
        let Some(slot) = self.store.borrow_mut().keep(len, vnet, content) else {
            self.counters.store_full += 1;
            self.network.world.give_blank(packet);
            return false;
        };
        packet.body = Body::kept(slot, 0, packet.body.len);
        self.network.inject(self.ports[port].0, packet);
        self.settle();
        true
    }

    /// The packet of the unit in the scratch, and what its slot is to know of it.
    fn read(&mut self, port: usize, len: usize, vnet: &VnetHeader) -> (Pkt, Content) {
        let store = Rc::clone(&self.store);
        let store = store.borrow();
        let bytes = store.read(len);
        let mut packet = self.network.blank();
        if self.network.reads_headers() {
            match parse(bytes, vnet, self.unit) {
                Ok(parsed) => {
                    let shape = parsed.shape;
                    if let Some(tcp) = self.numbered(port, parsed) {
                        packet.clone_from(&tcp.into());
                        return (packet.clone(), Content::Tcp(*packet, shape));
                    }
                }
                Err(why) => self.counters.note(why),
            }
        }
        let cut = (self.unit == Unit::Packet).then(|| Super::parse(bytes, vnet).ok()).flatten();
        let (header, payload, segment) = match &cut {
            Some(cut) => cut.shape(),
            None => (0, len.saturating_sub(if self.unit == Unit::Frame { ETHERNET } else { 0 }), 0),
        };
        packet.set_opaque(header, Body::kept(0, 0, u32::try_from(payload).unwrap_or(u32::MAX)), segment);
        Label::of(bytes, self.unit).write(&mut packet);
        if let Some(routes) = &self.routes {
            let destination = addresses(bytes).ok().map(|a| a.1);
            packet.dst = routes.hosts.find(destination, self.ports[port].1);
        }
        (packet, cut.map_or(Content::Bytes, Content::Ip))
    }

    /// The packet with the numbers of its addresses, if there are any left.
    fn numbered(&mut self, port: usize, mut parsed: Parsed) -> Option<Packet> {
        let ends = parsed.ends.addresses();
        let Some(numbers) = self.network.numbers(ends) else {
            self.counters.addresses_full += 1;
            return None;
        };
        if let Some(routes) = &mut self.routes {
            let host = routes.hosts.find(Some(ends.1), self.ports[port].1);
            let i = numbers.1.0 as usize;
            if routes.of.len() <= i {
                routes.of.resize(i + 1, None);
            }
            if routes.of[i] != Some(host) {
                routes.of[i] = Some(host);
                self.network.route_alike(numbers.1, host);
            }
        }
        (parsed.packet.src, parsed.packet.dst) = numbers;
        Some(parsed.packet)
    }

    /// True when something has arrived that was not taken yet.
    pub fn has_arrived(&self) -> bool {
        self.next.is_some() || self.network.has_arrived()
    }

    /// What has arrived next, as much of it as makes one super-packet; give it back with
    /// [`LiveNetwork::done`] when it was sent.
    pub fn take_arrival(&mut self) -> Option<Arrival> {
        let (due, id, mut packet) = self.next.take().or_else(|| self.network.take_arrived())?;
        let port = self.ports.iter().position(|(end, _)| *end == id)?;
        self.note(due, port, &packet);
        let mut pieces = 1;
        while let Some((due, next_id, next)) = self.network.take_arrived() {
            let held = (next_id == id).then(|| self.joint(&packet, &next)).flatten();
            let Some(segment) = held else {
                self.next = Some((due, next_id, next));
                break;
            };
            self.note(due, port, &next);
            pieces += 1;
            packet.segment = segment;
            packet.body.len += next.body.len;
            packet.tcp.flags = Flags(packet.tcp.flags.0 | next.tcp.flags.0);
            self.free(next);
        }
        Some(Arrival { due, port, pieces, packet })
    }

    fn joint(&self, packet: &Packet, next: &Packet) -> Option<u16> {
        let store = self.store.borrow();
        joint(&store.get(packet.body.slot())?, packet, next)
    }

    fn note(&mut self, due: Instant, port: usize, packet: &Packet) {
        let host = self.host_of(port);
        if let Some(digest) = &mut self.digest {
            let store = self.store.borrow();
            if let Some(held) = store.get(packet.body.slot()) {
                digest.add(due, host, &held, packet);
            }
        }
    }

    /// Makes an arrival ready to be sent, with `header` for headers that are written anew; `send` gets these,
    /// and the bytes that follow.
    pub fn emit<T>(&mut self, arrival: &Arrival, send: impl FnOnce(&Emitted, &[u8], &[u8]) -> T) -> T {
        let store = self.store.borrow();
        let held = store.get(arrival.packet.body.slot()).expect("a node sends what it received");
        let mut header = [0; HEADER_SPACE];
        let emitted = emit(&held, &arrival.packet, &mut header);
        self.counters.untouched += u64::from(emitted.header_len == 0);
        self.counters.options_short += u64::from(emitted.is_short);
        let written = header.get(..emitted.header_len).unwrap_or_default();
        send(&emitted, written, held.bytes.get(emitted.payload.clone()).unwrap_or_default())
    }

    /// An arrival was sent.
    pub fn done(&mut self, arrival: Arrival) {
        self.free(arrival.packet);
    }

    fn free(&mut self, packet: Pkt) {
        self.store.borrow_mut().release(packet.body.slot());
        self.network.world.give_blank(packet);
    }

    /// Sees to the bytes of what was copied and of what was given back.
    fn settle(&mut self) {
        let mut store = self.store.borrow_mut();
        // copies first: the packet they were made of may be among what was given back
        while let Some(body) = self.network.world.take_duplicated() {
            store.hold(body.slot());
        }
        while let Some(packet) = self.network.world.take_recycled() {
            store.release(packet.body.slot());
            self.network.world.give_blank(packet);
        }
    }

    /// Does something to the network between two inputs, and sees to what it sent.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut Network) -> T) -> T {
        let done = act(&mut self.network);
        self.settle();
        done
    }
}
