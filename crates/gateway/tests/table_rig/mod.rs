//! A gateway with two open ports; the tests put packets in and take packets out.

#![allow(dead_code, reason = "every test file takes what it needs")]

use bentpipe_base::{
    Addr, Body, Duration, Flags, Input, Instant, Node, NodeId, Packet, Pkt, Port, Proto, Seq, World,
};
use bentpipe_gateway::{Config, Gateway, LAN, SATELLITE};

pub(crate) const ACK: Flags = Flags::ACK;
pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const SYN_ACK: Flags = Flags(0x12);
pub(crate) const FIN_ACK: Flags = Flags(0x11);
pub(crate) const RST: Flags = Flags::RST;

pub(crate) struct Rig {
    pub(crate) gateway: Gateway,
    pub(crate) world: World,
    pub(crate) now: Instant,
    /// Packets sent by the gateway, in order.
    pub(crate) out: Vec<(Port, Pkt)>,
    /// Packets put in, copies made, and packets freed.
    pub(crate) put: u64,
    pub(crate) copied: u64,
    pub(crate) back: u64,
}

impl Rig {
    pub(crate) fn new(config: Config) -> Self {
        Self::with(Gateway::new(config))
    }

    pub(crate) fn with(gateway: Gateway) -> Self {
        let mut world = World::new(7);
        world.count_holders();
        Self { gateway, world, now: Instant::ZERO, out: Vec::new(), put: 0, copied: 0, back: 0 }
    }

    /// Assigns addresses to the talks, so that rules can match them: number n is 10.0.0.n.
    pub(crate) fn name_addresses(&mut self) {
        let name = |n: u8| core::net::IpAddr::from([10, 0, 0, n]);
        for n in 0..100 {
            self.world.addresses.find((name(2 * n), name(2 * n + 1)), |_| ());
        }
    }

    fn collect(&mut self) {
        while let Some((node, port, packet)) = self.world.outbox.pop_front() {
            assert_eq!(node, NodeId(3));
            self.out.push((port, packet));
        }
        while self.world.take_duplicated().is_some() {
            self.copied += 1;
        }
        while let Some(packet) = self.world.take_recycled() {
            self.back += 1;
            self.world.return_to_pool(packet);
        }
    }

    /// Puts a packet in at `port`.
    pub(crate) fn put(&mut self, port: Port, packet: Packet) {
        self.put += 1;
        let mut cx = self.world.cx(self.now, NodeId(3));
        let mut pkt = cx.packet();
        *pkt = packet;
        self.gateway.handle(&mut cx, Input::Packet(port, pkt));
        self.collect();
    }

    /// Advances the time and delivers wake-ups when due; returns their number.
    pub(crate) fn wait(&mut self, time: Duration) -> u32 {
        let until = self.now + time;
        let mut n = 0;
        while let Some(wake) = self.world.events.pop_until(until) {
            self.now = self.now.max(wake.at);
            self.gateway.handle(&mut self.world.cx(self.now, NodeId(3)), Input::Timer(wake.slot));
            self.collect();
            n += 1;
            assert!(n < 1_000_000, "time stands still at {}", self.now);
        }
        self.now = until;
        n
    }

    /// Calls a method of the gateway that needs a context.
    pub(crate) fn act<T>(&mut self, act: impl FnOnce(&mut Gateway, &mut bentpipe_base::Cx<'_>) -> T) -> T {
        let result = act(&mut self.gateway, &mut self.world.cx(self.now, NodeId(3)));
        self.collect();
        result
    }

    /// Returns what was sent since the last call.
    pub(crate) fn take(&mut self) -> Vec<(Port, Pkt)> {
        core::mem::take(&mut self.out)
    }

    /// Opens a connection from the LAN.
    pub(crate) fn open(&mut self, talk: Talk) {
        self.put(LAN, talk.lan(SYN, 0, 0, 0));
        self.put(SATELLITE, talk.sat(SYN_ACK, 0, 1, 0));
        self.put(LAN, talk.lan(ACK, 1, 1, 0));
    }

    /// Packets unaccounted for: must be 0 once nothing is held.
    pub(crate) fn missing(&self, sent: u64) -> i64 {
        (self.put + self.copied) as i64 - (sent + self.back) as i64
    }
}

/// Two hosts: one at the LAN, one behind the satellite.
#[derive(Clone, Copy)]
pub(crate) struct Talk {
    pub(crate) lan: (Addr, u16),
    pub(crate) sat: (Addr, u16),
    pub(crate) isn: [u32; 2],
}

pub(crate) fn talk(n: u32) -> Talk {
    Talk { lan: (Addr(1), (n % 60_000) as u16), sat: (Addr(2 + n / 60_000), 80), isn: [1000, 9000] }
}

impl Talk {
    /// A packet from the LAN; sequence numbers are relative to the ISN.
    pub(crate) fn lan(self, flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
        segment(self.lan, self.sat, self.isn, (flags, seq, ack, len))
    }

    /// A packet from behind the satellite.
    pub(crate) fn sat(self, flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
        segment(self.sat, self.lan, [self.isn[1], self.isn[0]], (flags, seq, ack, len))
    }
}

fn segment(
    from: (Addr, u16),
    to: (Addr, u16),
    isn: [u32; 2],
    (flags, seq, ack, len): (Flags, u32, u32, u32),
) -> Packet {
    let mut p = Packet { src: from.0, sport: from.1, dst: to.0, dport: to.1, hops: 60, ..Packet::default() };
    p.tcp.flags = flags;
    p.tcp.seq = Seq(isn[0].wrapping_add(seq));
    if flags.has(ACK) {
        p.tcp.ack = Seq(isn[1].wrapping_add(ack));
    }
    p.tcp.window = 65_535;
    if flags.has(SYN) {
        p.tcp.mss = Some(1460);
        p.tcp.window_scale = Some(7);
        p.tcp.sack_permitted = true;
    }
    p.body = Body { off: u64::from(seq.saturating_sub(1)), len };
    p.seal();
    p
}

/// A datagram of `len` bytes.
pub(crate) fn datagram(talk: Talk, index: u64, len: u32) -> Packet {
    let (src, dst) = (talk.lan, talk.sat);
    let mut p = Packet { src: src.0, sport: src.1, dst: dst.0, dport: dst.1, ..Packet::default() };
    p.set_datagram(index, Instant(5), len);
    p.seal();
    assert_eq!(p.proto, Proto::Udp);
    p
}
