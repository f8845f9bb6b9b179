//! A middlebox: it changes or drops packets on their way, as boxes on real paths do.
//!
//! Sources: RFC 2474 (a domain may change the DSCP at its edge) and RFC 9435, sections 5 and 6 (which code
//! points networks rewrite or clear); RFC 4787 and RFC 5382 (address translation: endpoint-independent
//! mapping); RFC 793 as firewalls check it (no data before the handshake ends); RFC 9673 (networks drop IPv6
//! hop-by-hop options).
//! It stands before one direction of a link. Packets into that direction, in this order:
//!   dropped, if a filter says so
//!   DSCP := that of the map; the ECN bits stay
//!   source port := the one that the translation gave to this source, and back in the other direction
//! Deviations: the translation keeps addresses, so that routes need no change; it begins with a SYN or a
//! datagram, and other packets without an entry pass unchanged. Entries do not expire: there are as many as
//! ports, and a source that finds none left is dropped.

use bentpipe_advice::tia1039::Structure;
use bentpipe_base::{Addr, Cx, Dscp, Flags, Input, Instant, IpVersion, Node, Packet, Port, Proto};
use std::collections::BTreeMap;

/// The side of the senders.
const INSIDE: Port = Port(0);
/// The side of the direction into which it sends.
const OUTSIDE: Port = Port(1);
/// The first port that the translation gives, above those that the hosts of a scenario use; the last is
/// 65535.
const FIRST_PORT: u16 = 52_000;

/// Packets that a middlebox drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// SYNs with bytes behind the TCP header: data, or in IPv4 a structure of rate signalling.
    SynWithData,
    /// IPv6 packets with a hop-by-hop header, where rate signalling is.
    HopByHop,
}

impl Unwanted {
    fn is(self, packet: &Packet) -> bool {
        let signal = packet.signal.as_deref();
        // the start of a SCONE packet is shorter, and is data
        let has_structures = signal.is_some_and(|s| s.bytes().len() >= Structure::LEN);
        match self {
            Self::SynWithData => {
                let behind = packet.body.len > 0 || packet.ip == IpVersion::V4 && has_structures;
                packet.proto == Proto::Tcp && packet.tcp.flags.has(Flags::SYN) && behind
            }
            Self::HopByHop => {
                let has_options = signal.is_some_and(|s| !s.ip_options().is_empty());
                packet.ip == IpVersion::V6 && (has_structures || has_options)
            }
        }
    }
}

/// What happens to the DSCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DscpRule {
    /// Nothing.
    #[default]
    Keep,
    /// All packets get this one.
    All(Dscp),
    /// The first of a pair becomes the second.
    Map(Vec<(Dscp, Dscp)>),
}

impl DscpRule {
    fn apply(&self, dscp: Dscp) -> Dscp {
        match self {
            Self::Keep => dscp,
            Self::All(all) => *all,
            Self::Map(pairs) => pairs.iter().find(|(from, _)| *from == dscp).map_or(dscp, |(_, to)| *to),
        }
    }
}

/// What a middlebox does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MiddleboxConfig {
    /// Before this it does nothing.
    pub from: Instant,
    /// What it does to the DSCP.
    pub dscp: DscpRule,
    /// What it drops.
    pub drops: Vec<Unwanted>,
    /// It translates source ports.
    pub nat: bool,
}

/// A source of packets: protocol, address and port.
type Source = (u8, Addr, u16);

/// The ports of the translation. The entries are bounded by the number of ports.
#[derive(Debug, Default)]
struct Ports {
    given: BTreeMap<Source, u16>,
    /// The port of the source of each given one.
    own: BTreeMap<Source, u16>,
}

impl Ports {
    /// Gives a port to the source of a packet that opens a flow. False if there is none left.
    fn outward(&mut self, packet: &mut Packet) -> bool {
        let source = (packet.proto as u8, packet.src, packet.sport);
        if let Some(port) = self.given.get(&source) {
            packet.sport = *port;
            return true;
        }
        let flags = packet.tcp.flags;
        let opens = match packet.proto {
            Proto::Tcp => flags.has(Flags::SYN) && !flags.has(Flags::ACK),
            Proto::Udp => true,
            Proto::Opaque | Proto::Icmp => false,
        };
        if !opens {
            return true;
        }
        let free = u16::try_from(self.given.len()).ok().and_then(|n| FIRST_PORT.checked_add(n));
        let Some(port) = free else { return false };
        self.given.insert(source, port);
        self.own.insert((source.0, source.1, port), source.2);
        packet.sport = port;
        true
    }

    /// Restores the destination port of a packet back.
    fn inward(&self, packet: &mut Packet) {
        // a message is translated like the packet that it quotes
        let quoted = packet.too_big().map(|said| if said.is_tcp { Proto::Tcp } else { Proto::Udp });
        let proto = quoted.unwrap_or(packet.proto);
        if let Some(port) = self.own.get(&(proto as u8, packet.dst, packet.dport)) {
            packet.dport = *port;
        }
    }
}

/// A middlebox before one direction of a link: port 0 leads back, port 1 into the direction.
#[derive(Debug)]
pub struct Middlebox {
    config: MiddleboxConfig,
    ports: Ports,
    rewritten: u64,
    dropped: u64,
}

impl Middlebox {
    /// Returns a middlebox that does this.
    pub fn new(config: MiddleboxConfig) -> Self {
        Self { config, ports: Ports::default(), rewritten: 0, dropped: 0 }
    }

    /// Changes a packet into the direction; false if it must be dropped.
    fn outward(&mut self, now: Instant, packet: &mut Packet) -> bool {
        if now < self.config.from {
            return true;
        }
        if self.config.drops.iter().any(|unwanted| unwanted.is(packet)) {
            return false;
        }
        let dscp = self.config.dscp.apply(packet.dscp);
        self.rewritten += u64::from(dscp != packet.dscp);
        packet.dscp = dscp;
        !self.config.nat || self.ports.outward(packet)
    }
}

impl Node for Middlebox {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        let Input::Packet(port, mut packet) = input else { return };
        if port != INSIDE {
            self.ports.inward(&mut packet);
            cx.send(INSIDE, packet);
        } else if self.outward(cx.now, &mut packet) {
            cx.send(OUTSIDE, packet);
        } else {
            self.dropped += 1;
            cx.recycle(packet);
        }
    }

    fn takes_super_packets(&self) -> bool {
        true
    }

    fn reads_signalling(&self) -> bool {
        !self.config.drops.is_empty()
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.ports.given.keys().for_each(|(_, addr, _)| each(*addr));
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("rewritten", self.rewritten);
        each("dropped", self.dropped);
        each("translated", self.ports.given.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Body, Signal};

    fn dscp(n: u8) -> Dscp {
        Dscp::new(n).unwrap()
    }

    fn segment(flags: Flags) -> Packet {
        let mut packet = Packet { src: Addr(1), sport: 1024, dst: Addr(2), dport: 80, ..Packet::default() };
        packet.tcp.flags = flags;
        packet
    }

    fn with_structure(ip: IpVersion, flags: Flags) -> Packet {
        Packet { ip, signal: Signal::new(&[0; 16]).map(Box::new), ..segment(flags) }
    }

    #[test]
    fn it_does_nothing_before_its_time() {
        let config = MiddleboxConfig {
            from: Instant(5),
            dscp: DscpRule::All(Dscp::DEFAULT),
            drops: vec![Unwanted::SynWithData],
            nat: true,
        };
        let mut middlebox = Middlebox::new(config);
        let mut packet = with_structure(IpVersion::V4, Flags::SYN);
        let before = packet.clone();
        assert!(middlebox.outward(Instant(4), &mut packet) && packet == before);
        assert!(!middlebox.outward(Instant(5), &mut packet));
    }

    #[test]
    fn it_rewrites_the_code_point_and_keeps_ecn() {
        let pairs = vec![(dscp(3), dscp(0)), (dscp(7), dscp(10))];
        for (rule, expected) in [
            (DscpRule::Keep, [3, 7, 46]),
            (DscpRule::All(dscp(0)), [0, 0, 0]),
            (DscpRule::Map(pairs), [0, 10, 46]),
        ] {
            let mut middlebox = Middlebox::new(MiddleboxConfig { dscp: rule, ..MiddleboxConfig::default() });
            let mut rewritten = 0;
            for (before, after) in [3, 7, 46].into_iter().zip(expected) {
                let ecn = bentpipe_base::Ecn::Ce;
                let mut packet = Packet { dscp: dscp(before), ecn, ..segment(Flags::ACK) };
                assert!(middlebox.outward(Instant(0), &mut packet));
                assert_eq!((packet.dscp.get(), packet.ecn), (after, ecn));
                rewritten += u64::from(before != after);
            }
            assert_eq!(middlebox.rewritten, rewritten);
        }
    }

    #[test]
    fn filters_drop_what_they_name() {
        let (v4, v6) = (IpVersion::V4, IpVersion::V6);
        let body = Body { off: 0, len: 1 };
        let cases = [
            (segment(Flags::SYN), [false, false]),
            (with_structure(v4, Flags::SYN), [true, false]),
            (with_structure(v4, Flags::SYN.with(Flags::ACK)), [true, false]),
            (with_structure(v4, Flags::ACK), [false, false]),
            (with_structure(v6, Flags::SYN), [false, true]),
            (with_structure(v6, Flags::ACK), [false, true]),
            (Packet { body, ..segment(Flags::SYN) }, [true, false]),
            (Packet { body, ..segment(Flags::ACK) }, [false, false]),
        ];
        for (packet, expected) in cases {
            let dropped = [Unwanted::SynWithData, Unwanted::HopByHop].map(|unwanted| unwanted.is(&packet));
            assert_eq!(dropped, expected, "{packet:?}");
        }
    }

    fn back(to: u16) -> Packet {
        Packet { src: Addr(2), sport: 80, dst: Addr(1), dport: to, ..segment(Flags::ACK) }
    }

    #[test]
    fn translated_ports_are_restored() {
        let mut ports = Ports::default();
        let mut syn = segment(Flags::SYN);
        assert!(ports.outward(&mut syn) && syn.sport == FIRST_PORT);
        // another source gets another port, also if its own one is given already
        let mut other = Packet { sport: FIRST_PORT, ..segment(Flags::SYN) };
        assert!(ports.outward(&mut other) && other.sport == FIRST_PORT + 1);
        let mut data = segment(Flags::ACK);
        assert!(ports.outward(&mut data) && data.sport == FIRST_PORT);
        for (given, own) in [(FIRST_PORT, 1024), (FIRST_PORT + 1, FIRST_PORT), (7, 7)] {
            let mut answer = back(given);
            ports.inward(&mut answer);
            assert_eq!(answer.dport, own);
        }
    }

    #[test]
    fn what_was_open_before_passes_unchanged() {
        let mut ports = Ports::default();
        for flags in [Flags::ACK, Flags::SYN.with(Flags::ACK), Flags::RST] {
            let mut packet = segment(flags);
            assert!(ports.outward(&mut packet) && packet.sport == 1024);
        }
        assert!(ports.given.is_empty() && ports.own.is_empty());
    }

    #[test]
    fn there_are_as_many_entries_as_ports() {
        let mut ports = Ports::default();
        let room = u32::from(u16::MAX - FIRST_PORT) + 1;
        for n in 0..room + 2 {
            let mut syn = Packet { src: Addr(n), ..segment(Flags::SYN) };
            assert_eq!(ports.outward(&mut syn), n < room, "{n}");
        }
        assert_eq!((ports.given.len(), ports.own.len()), (room as usize, room as usize));
    }
}
