//! The network between the ports: what a relay runs live and a replay runs again. It knows no clock and no socket.
//!
//! Packets go in as super-packets with the time they came; wire packets come out, each with the time it was due. The same inputs in the same order give
//! the same outputs: that is what makes a journal worth keeping.

use crate::addresses::Addresses;
use crate::buffers::{Buffers, Handle, WHOLE};
use crate::digest::Digest;
use crate::label::Label;
use bentpipe_base::{Addr, Ecn, Instant, NodeId, Pkt, Size};
use bentpipe_link::Discipline;
use bentpipe_scenario::Scenario;
use bentpipe_sim::build::{Network, build_open};
use bentpipe_wire::offload::{Super, VnetHeader, addresses};
use std::cell::RefCell;
use std::rc::Rc;

/// From this rate on, and with nothing else to do to it, a super-packet passes whole: at 10 Gbit/s one of 64 KB takes 52 us.
const UNLIMITED_BPS: u64 = 10_000_000_000;

/// Neighbouring pieces of one super-packet that have arrived at a host together.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When the first was due.
    pub due: Instant,
    /// Index of the host among the scenario's nodes.
    pub host: usize,
    /// The first of them.
    pub first: Handle,
    /// How many pieces; 1 for a whole super-packet.
    pub pieces: u16,
    /// A queue marked them on their way: they are to say CE.
    pub ce: bool,
}

/// Links and routers with ports in place of hosts.
#[derive(Debug)]
pub struct Net {
    /// The network; its present time is that of the last input or advance.
    pub network: Network,
    /// Bytes of what is on its way; a tap on the network's trace reads them too.
    pub buffers: Rc<RefCell<Buffers>>,
    addresses: Addresses,
    whole: bool,
    blanks: Vec<Pkt>,
    /// Host of each node of the network, by node id.
    hosts: Vec<Option<usize>>,
    next: Option<(Instant, NodeId, Pkt)>,
    /// Packets that were not IP.
    not_ip: u64,
    /// Of what came out, when somebody wants it.
    digest: Option<Digest>,
}

impl Net {
    /// Builds the network of `scenario`.
    pub fn new(scenario: &Scenario, addresses: Addresses) -> Self {
        let network = build_open(scenario);
        let mut hosts = Vec::new();
        for (host, id) in network.ports.iter().enumerate() {
            let Some(id) = id else { continue };
            let place = id.0 as usize;
            if hosts.len() <= place {
                hosts.resize(place + 1, None);
            }
            hosts[place] = Some(host);
        }
        Self {
            whole: passes_whole(scenario),
            network,
            buffers: Rc::default(),
            addresses,
            blanks: Vec::new(),
            hosts,
            next: None,
            not_ip: 0,
            digest: None,
        }
    }

    /// Keeps a digest of what comes out from now on.
    pub fn keep_digest(&mut self) {
        self.digest = Some(Digest::default());
    }

    /// The digest so far; that of nothing when none is kept.
    pub fn digest(&self) -> blake3::Hash {
        self.digest.as_ref().map_or_else(|| Digest::default().finish(), Digest::finish)
    }

    /// Super-packets are cut into wire packets from now on, since a link may have come to act on them.
    pub const fn cut_from_now_on(&mut self) {
        self.whole = false;
    }

    /// True when `host` is the place of a host among the scenario's nodes.
    pub fn is_host(&self, host: usize) -> bool {
        self.network.ports.get(host).is_some_and(Option::is_some)
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.network.sim.now()
    }

    /// Frames that were not IP.
    pub const fn not_ip(&self) -> u64 {
        self.not_ip
    }

    /// When something is to be done next.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.network.sim.next_at()
    }

    /// Does everything that is due up to and including `until`. Earlier times do nothing.
    pub fn advance(&mut self, until: Instant) {
        if until >= self.now() {
            self.network.sim.run_until(until, |_| false);
            self.free_dropped();
        }
    }

    /// Takes the super-packet of `len` bytes that lies in the scratch of the buffers, which came to `host` at `at`.
    pub fn accept(&mut self, host: usize, len: usize, vnet: &VnetHeader, at: Instant) {
        self.advance(at);
        let whole = self.whole;
        let count = |cut: &Super| if whole { 1 } else { u32::try_from(cut.pieces()).unwrap_or(u32::MAX) };
        let destination = addresses(self.buffers.borrow().read(len)).ok().map(|a| a.1);
        let label = Label::of(self.buffers.borrow().read(len));
        let to = self.addresses.find(destination, host);
        let kept = self.buffers.borrow_mut().keep(len, vnet, count);
        let (Ok((slot, cut)), Some(port)) = (kept, self.network.ports[host]) else {
            self.not_ip += 1;
            return;
        };
        if whole {
            let size = (0..cut.pieces()).map(|i| cut.wire_len(i)).fold(Size::ZERO, |sum, s| sum + s);
            self.inject(port, (Handle { slot, piece: WHOLE }, label), size, to);
            return;
        }
        for piece in 0..cut.pieces() {
            let handle = Handle { slot, piece: piece as u16 };
            self.inject(port, (handle, label), cut.wire_len(piece), to);
        }
        self.free_dropped();
    }

    fn inject(&mut self, port: NodeId, (handle, label): (Handle, Label), size: Size, to: Addr) {
        let mut packet = self.blanks.pop().unwrap_or_default();
        packet.set_opaque(handle.pack(), size, to);
        packet.set_flow(label.flow);
        (packet.dscp, packet.ecn) = (label.dscp, label.ecn);
        self.network.sim.inject(port, packet);
    }

    /// True when something has arrived that was not taken yet.
    pub fn has_arrived(&self) -> bool {
        self.next.is_some() || self.network.sim.has_arrived()
    }

    /// What has arrived next, as much of it as makes one super-packet; call [`Net::done`] when it was sent.
    pub fn take_arrival(&mut self) -> Option<Arrival> {
        let (due, id, packet) = self.next.take().or_else(|| self.network.sim.take_arrived())?;
        let host = self.hosts.get(id.0 as usize).copied().flatten()?;
        let first = Handle::unpack(packet.handle().unwrap_or(u64::MAX));
        let ce = packet.ecn == Ecn::Ce;
        self.note(due, host, (first, ce));
        self.blanks.push(packet);
        let mut arrival = Arrival { due, host, first, pieces: 1, ce };
        let mut last = first;
        while let Some((due, next_id, packet)) = self.network.sim.take_arrived() {
            let handle = Handle::unpack(packet.handle().unwrap_or(u64::MAX));
            // one header says the same of all
            if next_id != id || !last.precedes(handle) || ce != (packet.ecn == Ecn::Ce) {
                self.next = Some((due, next_id, packet));
                break;
            }
            self.note(due, host, (handle, ce));
            self.blanks.push(packet);
            arrival.pieces += 1;
            last = handle;
        }
        Some(arrival)
    }

    fn note(&mut self, due: Instant, host: usize, packet: (Handle, bool)) {
        if let Some(digest) = &mut self.digest {
            digest.add(due, host, packet, &self.buffers.borrow());
        }
    }

    /// The bytes of `arrival` were sent.
    pub fn done(&mut self, arrival: &Arrival) {
        self.buffers.borrow_mut().release(arrival.first.slot, u32::from(arrival.pieces));
    }

    /// Frees the bytes of packets that were dropped.
    fn free_dropped(&mut self) {
        while let Some(packet) = self.network.sim.world.take_recycled() {
            if let Some(number) = packet.handle() {
                self.buffers.borrow_mut().release(Handle::unpack(number).slot, 1);
            }
            self.blanks.push(packet);
        }
    }
}

/// True when no link does anything to a packet that depends on its being a wire packet.
fn passes_whole(scenario: &Scenario) -> bool {
    let mut directions = scenario.links.iter().flat_map(|l| [&l.forward, &l.backward]);
    directions.all(|d| {
        d.discipline == Discipline::Fifo
            && d.dynamics.is_none()
            && d.loss.is_zero()
            && d.ber.is_zero()
            && d.rate.bps() >= UNLIMITED_BPS
    })
}
