//! A flow router with two open ports; the tests put packets in and see what comes out at the other side.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part; this is test code")]

use bentpipe_advice::rounded;
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, QOS_SIGNAL, RateType, Structure, structures, write};
use bentpipe_base::{
    Addr, Body, Dscp, Duration, Flags, Input, Instant, IpVersion, Node, NodeId, Packet, Port, Proto, Rate,
    Seq, Slot, World,
};
use bentpipe_flow_router::{Fixed, FlowRouter, MANAGED, RouterConfig, SENDERS};
use core::net::IpAddr;
use std::collections::BTreeMap;

pub(crate) const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
pub(crate) const ACK: Flags = Flags::ACK;
pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const SYN_ACK: Flags = Flags(0x12);
pub(crate) const FIN_ACK: Flags = Flags(0x11);
pub(crate) const RST: Flags = Flags::RST;
const NODE: NodeId = NodeId(3);

pub(crate) fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000).unwrap()
}

/// What a rate in kbit/s is after it was written into a structure, in bit/s.
pub(crate) fn field(kbps: u64) -> u64 {
    rounded(Rate::from_bps(kbps * 1000).unwrap()).unwrap().bps()
}

/// AR and GR of a structure in bit/s.
pub(crate) fn rates(structure: &Structure) -> (u64, u64) {
    let bps = |rate: Option<Rate>| rate.map_or(0, Rate::bps);
    (bps(structure.available()), bps(structure.guaranteed()))
}

/// A request for a guaranteed rate.
pub(crate) fn guaranteed(rate_type: RateType, rate: Rate, priority: u8) -> Structure {
    let mut request = Structure::request(rate);
    request.set_rate_type(rate_type);
    request.set_guaranteed(Some(rate));
    request.set_preemption_priority(priority);
    if rate_type != RateType::Composite {
        request.set_available(None);
    }
    request
}

/// One connection from host 1 to host 2, told apart by its port.
#[derive(Clone, Copy)]
pub(crate) struct Talk {
    pub(crate) ip: IpVersion,
    pub(crate) port: u16,
}

impl Talk {
    pub(crate) fn new(ip: IpVersion, port: u16) -> Self {
        Self { ip, port }
    }

    /// A packet of the sender with the default code point.
    pub(crate) fn there(self, flags: Flags, len: u32) -> Packet {
        let (src, dst) = (Addr(1), Addr(2));
        let mut packet =
            Packet { ip: self.ip, src, dst, sport: self.port, dport: 80, hops: 60, ..Packet::default() };
        packet.tcp.flags = flags;
        packet.tcp.seq = Seq(1000);
        packet.body = Body { off: 0, len };
        packet.seal();
        packet
    }

    /// A packet of the receiver.
    pub(crate) fn back(self, flags: Flags) -> Packet {
        let mut packet = self.there(flags, 0);
        (packet.src, packet.dst) = (packet.dst, packet.src);
        (packet.sport, packet.dport) = (packet.dport, packet.sport);
        packet
    }

    /// The same packet of a sender at this host.
    pub(crate) fn from(host: u32, mut packet: Packet) -> Packet {
        packet.src = Addr(host);
        packet
    }

    /// A datagram of the sender with this code point.
    pub(crate) fn datagram(self, dscp: Dscp, len: u32) -> Packet {
        let mut packet = self.there(Flags::default(), len);
        packet.proto = Proto::Udp;
        packet.dscp = dscp;
        packet.seal();
        packet
    }

    /// Data of a negotiated flow; in IPv6 with a place for a structure.
    pub(crate) fn data(self) -> Packet {
        let mut packet = self.there(ACK, 1000);
        if self.ip == IpVersion::V6 {
            let mut place = Structure::request(mbps(1));
            place.set_available(None);
            place.set_kind(Kind::Forward);
            write(&mut packet, &[place]);
        }
        packet.dscp = QOS_FLOW;
        packet
    }
}

pub(crate) struct Rig {
    pub(crate) router: FlowRouter,
    pub(crate) world: World,
    pub(crate) now: Instant,
    pub(crate) recycled: u64,
    /// Bytes of data of all flows, with the packet that other functions send.
    sent: u64,
}

impl Rig {
    /// A router of a direction with this rate; it gives all of it.
    pub(crate) fn new(rate: Rate) -> Self {
        Self::with(RouterConfig { utilisation: 1.0, ..RouterConfig::new(rate) })
    }

    /// Host n has the address 10.0.n.1.
    pub(crate) fn with(config: RouterConfig) -> Self {
        config.check().unwrap();
        let mut world = World::new(1);
        world.count_holders();
        for n in 1..9 {
            assert!(world.addresses.assign(Addr(u32::from(n)), IpAddr::from([10, 0, n, 1])));
        }
        Self { router: FlowRouter::new(config), world, now: Instant::ZERO, recycled: 0, sent: 1000 }
    }

    /// The router's counters.
    pub(crate) fn report(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        self.router.counters(&mut |key, n| {
            all.insert(key, n);
        });
        all
    }

    /// Hands the router an input; returns what it sent.
    fn handle(&mut self, input: Input) -> Option<(Port, Packet)> {
        let mut sent = self.handle_all(input);
        assert!(sent.len() <= 1, "it creates no packets");
        sent.pop()
    }

    /// Puts a datagram in; returns the notice ahead of it, and the datagram.
    pub(crate) fn datagram(&mut self, packet: &Packet) -> (Option<Structure>, Option<Packet>) {
        let mut pkt = self.world.cx(self.now, NODE).packet();
        *pkt = packet.clone();
        let mut sent = self.handle_all(Input::Packet(SENDERS, pkt));
        assert!(sent.len() <= 2 && sent.iter().all(|(port, _)| *port == MANAGED));
        let datagram = sent.pop().map(|(_, out)| out);
        let notice = sent.pop().map(|(_, notice)| {
            let ends = |p: &Packet| (p.src, p.sport, p.dst, p.dport, p.proto);
            assert_eq!((ends(&notice), notice.body.len, notice.dscp), (ends(packet), 0, QOS_SIGNAL));
            assert_eq!(notice.datagram(), None, "it is none of the application");
            structures(&notice).as_slice()[0]
        });
        (notice, datagram)
    }

    fn handle_all(&mut self, input: Input) -> Vec<(Port, Packet)> {
        self.router.handle(&mut self.world.cx(self.now, NODE), input);
        while let Some(packet) = self.world.take_recycled() {
            self.recycled += 1;
            self.world.return_to_pool(packet);
        }
        let sent: Vec<_> = self.world.outbox.drain(..).map(|(_, port, packet)| (port, *packet)).collect();
        let copies = core::iter::from_fn(|| self.world.take_duplicated()).count();
        assert_eq!(copies, sent.len().saturating_sub(1), "only notices are copies");
        sent
    }

    /// Puts a packet in; returns it as it comes out at the other side, unless it was dropped.
    pub(crate) fn put(&mut self, port: Port, packet: Packet) -> Option<Packet> {
        let mut pkt = self.world.cx(self.now, NODE).packet();
        *pkt = packet;
        let (out, packet) = self.handle(Input::Packet(port, pkt))?;
        assert_ne!(out, port);
        Some(packet)
    }

    /// Puts a packet in that must come out unchanged.
    pub(crate) fn passes(&mut self, port: Port, packet: &Packet) {
        assert_eq!(self.put(port, packet.clone()).as_ref(), Some(packet));
    }

    /// A wake-up that nobody asked for, or that comes again.
    pub(crate) fn wake(&mut self) {
        assert!(self.handle(Input::Timer(Slot(0))).is_none());
    }

    /// Lets time pass; wake-ups come when they are due.
    pub(crate) fn wait(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while let Some(wake) = self.world.events.pop_until(until) {
            self.now = self.now.max(wake.at);
            self.wake();
        }
        self.now = until;
    }

    pub(crate) fn reconfigure(&mut self, new: RouterConfig) -> Result<(), Fixed> {
        self.router.reconfigure(&mut self.world.cx(self.now, NODE), new)
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.router.set_rate(&mut self.world.cx(self.now, NODE), rate);
    }

    /// Sends a packet with a structure from the sender; returns the structure as it comes out.
    pub(crate) fn send(&mut self, mut packet: Packet, structure: Structure) -> Structure {
        write(&mut packet, &[structure]);
        let out = self.put(SENDERS, packet).unwrap();
        assert_eq!(out.dscp, QOS_SIGNAL);
        structures(&out).as_slice()[0]
    }

    /// A SYN that asks.
    pub(crate) fn ask(&mut self, talk: Talk, structure: Structure) -> Structure {
        self.send(talk.there(SYN, 0), structure)
    }

    /// A response with these rates, which passes unchanged.
    pub(crate) fn answer(&mut self, talk: Talk, flags: Flags, structure: &Structure) {
        let mut packet = talk.back(flags);
        let mut response = *structure;
        response.set_kind(Kind::Response);
        write(&mut packet, &[response]);
        self.passes(MANAGED, &packet);
    }

    /// A handshake of 100 ms that asks for 10 Gbit/s; returns the rate that is granted.
    pub(crate) fn open(&mut self, talk: Talk) -> u64 {
        let offer = self.ask(talk, Structure::request(mbps(10_000)));
        self.wait(100);
        self.answer(talk, SYN_ACK, &offer);
        rates(&offer).0
    }

    /// A data packet; returns the structure that the router put into it.
    pub(crate) fn told(&mut self, talk: Talk) -> Option<Structure> {
        let mut packet = talk.data();
        // not what was sent before
        packet.tcp.seq = packet.tcp.seq.at(self.sent);
        packet.seal();
        self.sent += packet.seq_len();
        let mut out = self.put(SENDERS, packet.clone()).unwrap();
        out.priority = 0;
        assert_eq!((out.body, &out.tcp), (packet.body, &packet.tcp));
        if out.dscp == QOS_FLOW {
            assert_eq!(out, packet);
            return None;
        }
        let more = if talk.ip == IpVersion::V4 { 16 } else { 0 };
        assert_eq!((out.dscp, out.wire_len().0), (QOS_SIGNAL, packet.wire_len().0 + more));
        Some(structures(&out).as_slice()[0])
    }

    /// The sender asks for another rate in data; returns the offer after it was answered.
    pub(crate) fn raise(&mut self, talk: Talk, rate: Rate) -> u64 {
        let mut wish = Structure::request(rate);
        wish.set_kind(Kind::Renegotiate);
        let offer = self.send(talk.there(ACK, 1000), wish);
        self.wait(100);
        self.answer(talk, ACK, &offer);
        rates(&offer).0
    }
}
