//! A tagger with two open ports; the tests put packets in and see what comes out.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part; this is test code")]

use bentpipe_advice::negotiation::AskConfig;
use bentpipe_advice::rounded;
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, QOS_SIGNAL, Structure, structures, write};
use bentpipe_base::{
    Addr, Body, Dscp, Duration, Flags, Input, Instant, IpVersion, Node, NodeId, Packet, Port, Prefix, Rate,
    Seq, Slot, World,
};
use bentpipe_tagger::{FlowKey, HOST, NETWORK, Opener, Ports, Rule, Tagger, TaggerConfig};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

pub(crate) const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
pub(crate) const SYN_ACK: Flags = Flags(0x12);
pub(crate) const FIN_ACK: Flags = Flags(0x11);
/// First sequence numbers of host and peer.
pub(crate) const ISN: (u32, u32) = (u32::MAX - 20, 900);
/// The port of the service.
pub(crate) const SERVICE: u16 = 80;
const NODE: NodeId = NodeId(7);

pub(crate) fn mbps(mbps: u64) -> Rate {
    rounded(Rate::from_bps(mbps * 1_000_000).unwrap()).unwrap()
}

/// Gives hosts 1 to 8 their addresses: 10.0.n.1, in IPv6 fd00::n; the latter are numbered from 101 on.
pub(crate) fn name_hosts(world: &mut World) {
    for n in 1..9_u8 {
        assert!(world.addresses.assign(Addr(u32::from(n)), IpAddr::from([10, 0, n, 1])));
        let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n));
        assert!(world.addresses.assign(Addr(100 + u32::from(n)), v6.into()));
    }
}

/// The number of a host.
pub(crate) fn host(ip: IpVersion, n: u32) -> Addr {
    Addr(if ip == IpVersion::V4 { n } else { 100 + n })
}

/// All flows of all hosts to the service ask for 10 Gbit/s, if `ask` does not say otherwise.
pub(crate) fn config(ask: &AskConfig) -> TaggerConfig {
    let any = |address: IpAddr| Prefix::new(address, 0).unwrap();
    let rule = |all: Prefix| Rule {
        hosts: all,
        peers: all,
        ports: Ports { first: SERVICE, last: SERVICE },
        from_ports: Ports::ALL,
        opener: Opener::Any,
        ask: Some(ask.clone()),
    };
    let rules = vec![rule(any(Ipv4Addr::UNSPECIFIED.into())), rule(any(Ipv6Addr::UNSPECIFIED.into()))];
    TaggerConfig::new(rules)
}

pub(crate) fn asking() -> AskConfig {
    AskConfig { ask: Some(mbps(10_000)), ..AskConfig::default() }
}

/// What a node has sent.
pub(crate) fn take_sent(world: &mut World) -> Vec<(Port, Packet)> {
    while let Some(packet) = world.take_recycled() {
        world.return_to_pool(packet);
    }
    while world.take_duplicated().is_some() {}
    world.outbox.drain(..).map(|(_, port, packet)| (port, *packet)).collect()
}

/// A tagger beside host 1, which talks with host 2.
pub(crate) struct Rig {
    pub(crate) tagger: Tagger,
    pub(crate) world: World,
    pub(crate) now: Instant,
    pub(crate) ip: IpVersion,
    pub(crate) port: u16,
}

impl Rig {
    pub(crate) fn new(ip: IpVersion) -> Self {
        Self::with(ip, config(&asking()))
    }

    pub(crate) fn with(ip: IpVersion, config: TaggerConfig) -> Self {
        config.check().unwrap();
        let mut world = World::new(1);
        world.count_holders();
        name_hosts(&mut world);
        Self { tagger: Tagger::new(config), world, now: Instant::ZERO, ip, port: 4000 }
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        self.tagger.counters(&mut |key, n| {
            all.insert(key, n);
        });
        all
    }

    pub(crate) fn key(&self) -> FlowKey {
        FlowKey { host: (host(self.ip, 1), self.port), peer: (host(self.ip, 2), SERVICE) }
    }

    /// A packet of the host to the service: positions are relative to the SYNs.
    pub(crate) fn out(&self, flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
        let (src, dst) = (host(self.ip, 1), host(self.ip, 2));
        let mut packet = Packet { ip: self.ip, src, dst, hops: 64, ..Packet::default() };
        (packet.sport, packet.dport) = (self.port, SERVICE);
        packet.tcp.flags = flags;
        packet.tcp.seq = Seq(ISN.0).at(u64::from(seq));
        packet.tcp.window = 60_000;
        if flags.has(Flags::ACK) {
            packet.tcp.ack = Seq(ISN.1).at(u64::from(ack));
        }
        if flags.has(Flags::SYN) {
            packet.tcp.mss = Some(1460);
        }
        packet.body = Body { off: 0, len };
        packet.seal();
        packet
    }

    /// A packet of the service to the host.
    pub(crate) fn back(&self, flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
        let mut packet = self.out(flags, 0, 0, len);
        (packet.src, packet.dst) = (packet.dst, packet.src);
        (packet.sport, packet.dport) = (packet.dport, packet.sport);
        packet.tcp.seq = Seq(ISN.1).at(u64::from(seq));
        packet.tcp.ack = Seq(ISN.0).at(u64::from(ack));
        packet
    }

    /// Puts a packet in; returns all that came out.
    pub(crate) fn all(&mut self, port: Port, packet: Packet) -> Vec<(Port, Packet)> {
        let mut pkt = self.world.cx(self.now, NODE).packet();
        *pkt = packet;
        self.tagger.handle(&mut self.world.cx(self.now, NODE), Input::Packet(port, pkt));
        take_sent(&mut self.world)
    }

    /// Puts a packet in of which one comes out at the other side.
    pub(crate) fn put(&mut self, port: Port, packet: Packet) -> Packet {
        let mut out = self.all(port, packet);
        let (at, packet) = out.pop().unwrap();
        assert!(out.is_empty() && at != port, "{out:?}");
        packet
    }

    pub(crate) fn send(&mut self, packet: Packet) -> Packet {
        self.put(HOST, packet)
    }

    /// Delivers a packet with structures and DSCP 3; what the host gets has none.
    pub(crate) fn deliver(&mut self, mut packet: Packet, given: &[Structure]) -> Packet {
        packet.dscp = QOS_SIGNAL;
        write(&mut packet, given);
        let out = self.put(NETWORK, packet);
        assert_eq!((out.dscp, &out.signal), (Dscp::DEFAULT, &None));
        out
    }

    /// Data of the peer with the code point of a flow with a rate.
    pub(crate) fn flow_data(&self, seq: u32, ack: u32) -> Packet {
        Packet { dscp: QOS_FLOW, ..self.back(Flags::ACK, seq, ack, 100) }
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while let Some(wake) = self.world.events.pop_until(until) {
            self.now = self.now.max(wake.at);
            self.tagger.handle(&mut self.world.cx(self.now, NODE), Input::Timer(Slot(0)));
        }
        self.now = until;
    }

    /// The host opens a connection, which gets `rate` after 100 ms; its ACK is sent.
    pub(crate) fn open(&mut self, rate: Rate) {
        self.send(self.out(Flags::SYN, 0, 0, 0));
        self.wait(100);
        self.deliver(self.back(SYN_ACK, 0, 1, 0), &[response(rate)]);
        self.send(self.out(Flags::ACK, 1, 1, 0));
    }
}

/// What a structure says.
pub(crate) type Said = (Kind, Option<Rate>);

/// What the structures of a packet say.
pub(crate) fn said(packet: &Packet) -> Vec<Said> {
    structures(packet).as_slice().iter().map(|s| (s.kind().unwrap(), s.available())).collect()
}

/// A structure of this kind that a router has lowered to `rate`.
pub(crate) fn structure(kind: Kind, rate: Option<Rate>) -> Structure {
    let mut structure = Structure::request(mbps(1));
    structure.set_kind(kind);
    structure.set_available(rate);
    structure.set_changed(true);
    structure
}

pub(crate) fn response(rate: Rate) -> Structure {
    structure(Kind::Response, Some(rate))
}
