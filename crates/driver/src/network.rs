//! A network between ports, with the bytes of its packets. It has no clock and no socket.
//!
//! Units go in with their arrival time; packets come out with the time they were due. The same inputs in the
//! same order give the same outputs, so that a journal can be replayed.
//!
//! Where a node reads headers, a readable unit becomes a TCP packet; otherwise it is opaque to the network,
//! which knows only its flow, length and code points. A super-packet goes in whole, and is cut into wire
//! packets where it enters a link.

use crate::counters::Counters;
use crate::datagram::Datagram;
use crate::emit::{Emitted, emit, joint};
use crate::frame::{ETHERNET, Link, Unit};
use crate::hosts::Hosts;
use crate::label::FlowLabel;
use crate::parse::{HEADER_SPACE, Parsed, UnreadReason, parse};
use crate::signal::{has_end, has_scone, may_have_end, opens_signalling};
use crate::store::{Content, Store};
use bentpipe_base::{Addr, Body, Flags, Instant, NodeId, Packet, Pkt, Proto, Size};
use bentpipe_network::{ChainNode, Network};
use bentpipe_wire::offload::{SuperPacket, VnetHeader, addresses};
use core::net::IpAddr;
use std::cell::RefCell;
use std::rc::Rc;

/// A unit that leaves: a packet, or consecutive packets that arrived together.
#[derive(Debug)]
pub struct Arrival {
    /// When its first packet was due.
    pub due: Instant,
    /// Index of the port.
    pub port: usize,
    /// Number of packets: wire packets, or 1 for a super-packet that passed whole.
    pub pieces: u32,
    packet: Pkt,
}

/// The host for every real address, for networks with routers.
#[derive(Debug, Default)]
struct Routes {
    hosts: Hosts,
    /// For each address number, the host it was last routed to.
    of: Vec<Option<Addr>>,
}

/// A network and the store of its packets' bytes.
#[derive(Debug)]
pub struct LiveNetwork {
    /// The network; its present time is that of the last input or advance.
    pub network: Network,
    /// Bytes of its packets; captures on the network's trace read them too.
    pub store: Rc<RefCell<Store>>,
    /// Packet counters; [`crate::Core::counters`] includes the losses at the ports.
    pub counters: Counters,
    unit: Unit,
    /// A node reads rate signalling.
    reads_signalling: bool,
    /// And a node reads what looks like it, whatever the DSCP says.
    reads_all_ends: bool,
    /// Super-packets of datagrams are cut.
    cuts_datagrams: bool,
    /// The wire packets of a super-packet that is cut before it is read.
    pieces: Vec<(VnetHeader, Vec<u8>)>,
    /// The open end of each port, and its host.
    ports: Vec<(NodeId, usize)>,
    routes: Option<Routes>,
    next: Option<(Instant, NodeId, Pkt)>,
    /// Digest of the packets that left, if enabled.
    digest: Option<blake3::Hasher>,
}

impl LiveNetwork {
    /// A network with open ends `ports`, each with its host.
    pub fn new(mut network: Network, ports: Vec<(NodeId, usize)>, unit: Unit, memory: Size) -> Self {
        network.world.count_holders();
        Self {
            store: Rc::new(RefCell::new(Store::new(memory))),
            counters: Counters::new(ports.len()),
            unit,
            reads_signalling: network.reads_signalling(),
            reads_all_ends: network.reads_all_ends(),
            network,
            cuts_datagrams: false,
            pieces: Vec::new(),
            ports,
            routes: None,
            next: None,
            digest: None,
        }
    }

    /// A network of nodes in a chain between two open ends, for a gateway the LAN and the satellite. `add`
    /// adds the nodes, at least one; port 0 of the first and port 1 of the last lead to the ends, of a node
    /// that is turned ([`ChainNode`]) the other one.
    pub fn chain<N: Into<ChainNode> + Copy>(
        add: impl FnOnce(&mut Network) -> Vec<N>,
        seed: u64,
        unit: Unit,
        memory: Size,
    ) -> Self {
        let mut network = Network::new(seed);
        let chain = add(&mut network);
        let ends = [network.add_open_end(), network.add_open_end()];
        network.wire_chain(ends[0], &chain, ends[1]);
        network.wire(ends[0], chain[0].into().end(true));
        network.wire(ends[1], chain[chain.len() - 1].into().end(false));
        Self::new(network, vec![(ends[0], 0), (ends[1], 1)], unit, memory)
    }

    /// For a network whose routers address its nodes as `Addr(0)` to `Addr(nodes - 1)`: `hosts` maps real
    /// addresses to them.
    #[must_use]
    pub fn routed(mut self, hosts: Hosts, nodes: usize) -> Self {
        self.network.world.addresses.reserve(u32::try_from(nodes).unwrap_or(u32::MAX));
        self.routes = Some(Routes { hosts, of: Vec::new() });
        self
    }

    /// Cuts super-packets of datagrams as they arrive, for a node that paces them or keeps one. If there is
    /// no room for any of the datagrams, the scratch buffer holds the last one.
    pub const fn cut_datagrams(&mut self) {
        self.cuts_datagrams = true;
    }

    /// Keeps a digest of the packets that leave from now on.
    pub fn keep_digest(&mut self) {
        self.digest = Some(blake3::Hasher::new());
    }

    /// The digest so far; if disabled, the digest of no packets.
    pub fn digest(&self) -> blake3::Hash {
        self.digest.clone().unwrap_or_default().finalize()
    }

    /// The port of a host.
    pub fn port_of(&self, host: usize) -> Option<usize> {
        self.ports.iter().position(|(_, h)| *h == host)
    }

    pub(crate) fn host_of(&self, port: usize) -> usize {
        self.ports[port].1
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.network.now()
    }

    /// Handles all events up to and including `until`; does nothing if that is in the past.
    pub fn advance(&mut self, until: Instant) {
        if until >= self.now() {
            self.network.run_until(until, |_| false);
            self.settle();
        }
    }

    /// Injects the unit of `len` bytes in the store's scratch buffer, which arrived at `port`. False if there
    /// is no room for it: the scratch buffer is unchanged.
    pub fn accept(&mut self, port: usize, len: usize, vnet: &VnetHeader) -> bool {
        let counters = &mut self.counters.ports[port];
        counters.received += 1;
        counters.received_bytes += len as u64;
        if self.reads_signalling && vnet.gso_type != VnetHeader::GSO_NONE && self.cut(len, vnet) {
            return self.accept_pieces(port);
        }
        self.accept_unit(port, len, vnet)
    }

    /// Cuts the unit in the scratch buffer into wire packets if each may have a structure at its end, or a
    /// SCONE packet at its start, or if all datagrams are cut; false if not.
    fn cut(&mut self, len: usize, vnet: &VnetHeader) -> bool {
        let store = self.store.borrow();
        let bytes = store.read(len);
        let link = Link::of(bytes, self.unit).map_or(len, |link| link.len);
        let (frame, ip) = bytes.split_at_checked(link).unwrap_or_default();
        let has_end = may_have_end(ip)
            || self.reads_all_ends && has_end(ip, vnet.gso_size)
            || vnet.gso_type == VnetHeader::GSO_UDP_L4
                && (self.cuts_datagrams || has_scone(ip, vnet.gso_size));
        let whole = has_end.then(|| SuperPacket::parse(ip, &vnet.without_prefix(link as u16)).ok());
        let Some(whole) = whole.flatten().filter(|whole| whole.pieces() > 1) else { return false };
        self.pieces.clear();
        for i in 0..whole.pieces() {
            let mut header = [0; bentpipe_wire::offload::HEADER_SPACE];
            let piece = whole.piece(ip, i..i + 1, &mut header);
            let head = header.get(..piece.header_len).unwrap_or_default();
            let payload = ip.get(piece.payload.clone()).unwrap_or_default();
            self.pieces.push((piece.vnet.with_prefix(link as u16), [frame, head, payload].concat()));
        }
        true
    }

    /// Injects the wire packets of a super-packet. One for which there is no room is lost, as a router with a
    /// full memory would lose it.
    fn accept_pieces(&mut self, port: usize) -> bool {
        let pieces = core::mem::take(&mut self.pieces);
        let mut has_room = !self.cuts_datagrams;
        for (vnet, bytes) in &pieces {
            if self.store.borrow_mut().write(bytes) {
                has_room |= self.accept_unit(port, bytes.len(), vnet);
            }
        }
        self.pieces = pieces;
        has_room
    }

    fn accept_unit(&mut self, port: usize, len: usize, vnet: &VnetHeader) -> bool {
        let (mut packet, content) = self.read(port, len, vnet);
        if matches!(content, Content::Bytes) && self.routes.is_some() {
            // only IP packets can be routed
            self.counters.not_ip += 1;
            self.network.world.return_to_pool(packet);
            return true;
        }
        let Some(slot) = self.store.borrow_mut().keep(len, vnet, content) else {
            self.counters.store_full += 1;
            self.network.world.return_to_pool(packet);
            return false;
        };
        packet.body = Body::kept(slot, 0, packet.body.len);
        self.network.inject(self.ports[port].0, packet);
        self.settle();
        true
    }

    /// Returns the packet for the unit in the scratch buffer, and the content for its slot.
    fn read(&mut self, port: usize, len: usize, vnet: &VnetHeader) -> (Pkt, Content) {
        let store = Rc::clone(&self.store);
        let store = store.borrow();
        let bytes = store.read(len);
        let mut packet = self.network.blank();
        let mut datagram = None;
        if self.network.reads_headers() {
            match parse(bytes, vnet, self.unit) {
                Ok(parsed) if !self.reads_signalling && opens_signalling(&parsed.packet) => {
                    self.counters.note(UnreadReason::Signalling);
                }
                Ok(mut parsed) => {
                    if self.reads_signalling {
                        parsed.take_signal(bytes);
                    }
                    if self.reads_all_ends {
                        parsed.take_end(bytes);
                    } else if self.reads_signalling {
                        // a node that reads all ends takes any signalling in IPv4 for the end of the data
                        parsed.take_options(bytes);
                    }
                    let shape = parsed.shape;
                    if let Some(tcp) = self.numbered(port, parsed) {
                        packet.clone_from(&tcp.into());
                        return (packet.clone(), Content::Tcp(*packet, shape));
                    }
                }
                Err(UnreadReason::Protocol) if self.reads_signalling => {
                    datagram = Datagram::of(bytes, vnet, self.unit);
                    if datagram.is_none() {
                        self.counters.note(UnreadReason::Protocol);
                    }
                }
                Err(why) => self.counters.note(why),
            }
        }
        let cut = (self.unit == Unit::Packet).then(|| SuperPacket::parse(bytes, vnet).ok()).flatten();
        let (header, payload, segment) = match &cut {
            Some(cut) => cut.shape(),
            None => (0, len.saturating_sub(if self.unit == Unit::Frame { ETHERNET } else { 0 }), 0),
        };
        packet.set_opaque(header, Body::kept(0, 0, u32::try_from(payload).unwrap_or(u32::MAX)), segment);
        FlowLabel::of(bytes, self.unit).write(&mut packet);
        if let Some(routes) = &self.routes {
            let destination = addresses(bytes).ok().map(|a| a.1);
            packet.dst = routes.hosts.find(destination, self.ports[port].1);
        }
        let shape = datagram.and_then(|datagram| {
            (packet.src, packet.dst) = self.numbers(port, datagram.ends.addresses())?;
            packet.proto = Proto::Udp;
            packet.ip = datagram.ip();
            Some(datagram.take_signal(bytes, vnet, &mut packet))
        });
        let ecn = packet.ecn;
        let cut = cut.filter(|_| !datagram.is_some_and(|datagram| datagram.is_empty()));
        let content = match (cut, shape) {
            (cut, Some(shape)) => Content::Udp(cut.map(|cut| (cut, ecn)), shape),
            (Some(cut), None) => Content::Ip(cut, ecn),
            (None, None) => Content::Bytes,
        };
        (packet, content)
    }

    /// Returns the packet with address numbers, if any are left.
    fn numbered(&mut self, port: usize, mut parsed: Parsed) -> Option<Packet> {
        (parsed.packet.src, parsed.packet.dst) = self.numbers(port, parsed.ends.addresses())?;
        Some(parsed.packet)
    }

    /// Returns the numbers of two addresses, if any are left.
    fn numbers(&mut self, port: usize, ends: (IpAddr, IpAddr)) -> Option<(Addr, Addr)> {
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
        Some(numbers)
    }

    /// True if a packet has arrived and was not taken yet.
    pub fn has_arrived(&self) -> bool {
        self.next.is_some() || self.network.has_arrived()
    }

    /// Returns the next arrival, with as many packets as make one super-packet; pass it to
    /// [`LiveNetwork::done`] when it was sent.
    pub fn take_arrival(&mut self) -> Option<Arrival> {
        let (due, id, mut packet) = self.next.take().or_else(|| self.network.take_arrived())?;
        let port = self.ports.iter().position(|(end, _)| *end == id)?;
        self.add_to_digest(due, port, &packet);
        let mut pieces = 1;
        while let Some((due, next_id, next)) = self.network.take_arrived() {
            let held = (next_id == id).then(|| self.joint(&packet, &next)).flatten();
            let Some(segment) = held else {
                self.next = Some((due, next_id, next));
                break;
            };
            self.add_to_digest(due, port, &next);
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

    /// Adds a packet that leaves to the digest: due time, host, length and bytes.
    fn add_to_digest(&mut self, due: Instant, port: usize, packet: &Packet) {
        let host = self.host_of(port);
        let Some(digest) = &mut self.digest else { return };
        let store = self.store.borrow();
        let Some(held) = store.get(packet.body.slot()) else { return };
        let mut header = [0; HEADER_SPACE];
        let part = emit(&held, packet, &mut header);
        let payload = held.bytes.get(part.payload.clone()).unwrap_or_default();
        let len = part.header_len + payload.len() + part.tail().len();
        for number in [due.0, host as u64, len as u64] {
            digest.update(&number.to_le_bytes());
        }
        digest.update(&header[..part.header_len]).update(payload).update(part.tail());
    }

    /// Prepares an arrival for sending; `send` gets the rewritten headers and the bytes that follow, after
    /// which there may be [`Emitted::tail`].
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

    /// Frees an arrival that was sent.
    pub fn done(&mut self, arrival: Arrival) {
        self.free(arrival.packet);
    }

    fn free(&mut self, packet: Pkt) {
        self.store.borrow_mut().release(packet.body.slot());
        self.network.world.return_to_pool(packet);
    }

    /// Updates the store for packets that were copied or freed.
    fn settle(&mut self) {
        let mut store = self.store.borrow_mut();
        // copies first: the original may be among the freed packets
        while let Some(body) = self.network.world.take_duplicated() {
            store.hold(body.slot());
        }
        while let Some(packet) = self.network.world.take_recycled() {
            store.release(packet.body.slot());
            self.network.world.return_to_pool(packet);
        }
    }

    /// Calls `act` with the network between two inputs, and handles the packets it sent.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut Network) -> T) -> T {
        let done = act(&mut self.network);
        self.settle();
        done
    }
}
