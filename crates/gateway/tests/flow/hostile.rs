//! Random packets in nonsensical order: nothing panics, is lost, or is invented.

use bentpipe_base::{
    Addr, Body, Duration, Flags, Input, Instant, Node, NodeId, Packet, Rate, SackList, Seq, Size, Slot,
    Timestamps, World,
};
use bentpipe_gateway::{Config, Copies, Gateway, LAN, Limits, Mode, SATELLITE};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One event.
#[derive(Clone, Debug)]
enum Act {
    Packet {
        lan: bool,
        flags: u8,
        seq: i32,
        ack: i32,
        window: u16,
        len: u32,
        segment: u16,
        sack: Vec<(i32, i32)>,
        stamps: Option<(u32, u32)>,
        scale: Option<u8>,
    },
    Wait(u64),
    Release,
}

fn near() -> impl Strategy<Value = i32> {
    prop_oneof![4 => -3i32..40_000, 2 => 0i32..4, 1 => any::<i32>()]
}

fn act() -> impl Strategy<Value = Act> {
    let flags = prop_oneof![
        8 => Just(Flags::ACK.0),
        2 => Just(Flags::ACK.0 | Flags::PSH.0),
        1 => Just(Flags::ACK.0 | Flags::FIN.0),
        1 => any::<u8>().prop_map(|f| f & !Flags::RST.0),
        1 => Just(Flags::SYN.0),
    ];
    let sack = proptest::collection::vec((near(), near()), 0..4);
    let stamps = proptest::option::of((any::<u32>(), any::<u32>()));
    let len = prop_oneof![3 => Just(0u32), 5 => 1u32..3000, 1 => 3000u32..65_000];
    let segment = prop_oneof![Just(0u16), Just(1448), Just(1)];
    let packet = (
        any::<bool>(),
        flags,
        near(),
        near(),
        any::<u16>(),
        len,
        segment,
        (sack, stamps, proptest::option::of(any::<u8>())),
    );
    let packet = packet.prop_map(|(lan, flags, seq, ack, window, len, segment, (sack, stamps, scale))| {
        Act::Packet { lan, flags, seq, ack, window, len, segment, sack, stamps, scale }
    });
    prop_oneof![20 => packet, 6 => (0u64..2_000_000_000).prop_map(Act::Wait), 1 => Just(Act::Release)]
}

/// A gateway alone, and the number of holders of each packet's bytes.
struct Bench {
    world: World,
    gateway: Gateway,
    now: Instant,
    holders: BTreeMap<u64, i64>,
    isns: (u32, u32),
    next: u64,
}

impl Bench {
    fn call(&mut self, input: Input) {
        self.gateway.handle(&mut self.world.cx(self.now, NodeId(0)), input);
        self.settle();
    }

    /// Frees what was sent, as a driver would, and counts every change of holders.
    fn settle(&mut self) {
        while let Some(body) = self.world.take_duplicated() {
            *self.holders.get_mut(&(body.off >> 32)).expect("a copy of something that came in") += 1;
        }
        let mut gone = Vec::new();
        while let Some((_, _, packet)) = self.world.outbox.pop_front() {
            assert!(
                u64::from(packet.header_len) >= 40 && packet.header_len <= 80,
                "a header of {}",
                packet.header_len
            );
            gone.push(packet);
        }
        while let Some(packet) = self.world.take_recycled() {
            gone.push(packet);
        }
        for packet in gone {
            let count = self.holders.get_mut(&(packet.body.off >> 32)).expect("it came in");
            *count -= 1;
            assert!(*count >= 0, "given away twice");
            self.world.return_to_pool(packet);
        }
    }

    fn packet(&mut self, act: &Act) {
        let Act::Packet { lan, flags, seq, ack, window, len, segment, sack, stamps, scale } = act else {
            return;
        };
        let (own, other) = if *lan { self.isns } else { (self.isns.1, self.isns.0) };
        let mut packet = self.world.cx(self.now, NodeId(0)).packet();
        *packet = Packet::default();
        (packet.src, packet.sport, packet.dst, packet.dport) =
            if *lan { (Addr(1), 10, Addr(2), 20) } else { (Addr(2), 20, Addr(1), 10) };
        let syn = flags & Flags::SYN.0 != 0;
        let tcp = &mut packet.tcp;
        tcp.flags = Flags(*flags);
        tcp.seq = Seq(own.wrapping_add_signed(*seq));
        tcp.ack = Seq(other.wrapping_add_signed(*ack));
        tcp.window = *window;
        tcp.timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
        tcp.window_scale = scale.filter(|_| syn);
        let mut list = SackList::default();
        for (left, right) in sack.iter().take(if stamps.is_some() { 3 } else { 4 }) {
            list.push(Seq(other.wrapping_add_signed(*left)), Seq(other.wrapping_add_signed(*right)));
        }
        if !syn {
            tcp.sack = list;
        }
        self.next += 1;
        packet.body = Body { off: self.next << 32, len: *len };
        packet.segment = if u32::from(*segment) < *len { *segment } else { 0 };
        packet.seal();
        self.holders.insert(self.next, 1);
        self.call(Input::Packet(if *lan { LAN } else { SATELLITE }, packet));
    }

    fn wait(&mut self, time: u64) {
        let until = self.now + Duration(time);
        let mut calls = 0;
        while let Some(wake) = self.world.events.pop_until(until) {
            self.now = wake.at;
            self.call(Input::Timer(wake.slot));
            calls += 1;
            assert!(calls < 20_000, "it wakes without end at {}", self.now);
        }
        self.now = until;
        self.call(Input::Timer(Slot(0)));
    }
}

fn handshake(lan: bool) -> [Act; 2] {
    let syn = |lan, flags, ack| Act::Packet {
        lan,
        flags,
        seq: 0,
        ack,
        window: 65_535,
        len: 0,
        segment: 0,
        sack: Vec::new(),
        stamps: Some((1, 1)),
        scale: Some(7),
    };
    [syn(lan, Flags::SYN.0, 0), syn(!lan, Flags::SYN.0 | Flags::ACK.0, 1)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_panics_and_every_packet_is_accounted_for(
        isns: (u32, u32),
        opener: bool,
        strict: bool,
        rate in proptest::option::of(1_000u64..1_000_000_000),
        copies in 0u8..9,
        memory in prop_oneof![Just(1u64 << 30), 0u64..100_000],
        acts in proptest::collection::vec(act(), 1..150),
    ) {
        let config = Config {
            rate: rate.and_then(Rate::from_bps),
            mode: if strict { Mode::Strict } else { Mode::Open },
            copies: if copies == 0 { Copies::Auto } else { Copies::Fixed(copies) },
            limits: Limits { memory: Size(memory), ..Config::default().limits },
            ..Config::default()
        };
        let mut world = World::new(1);
        world.count_holders();
        let mut bench = Bench { world, gateway: Gateway::new(config), now: Instant(1_000_000_000), holders: BTreeMap::new(), isns, next: 0 };
        for act in handshake(opener).iter().chain(&acts) {
            match act {
                Act::Packet { .. } => bench.packet(act),
                Act::Wait(time) => bench.wait(*time),
                Act::Release => {
                    bench.gateway.release_all(&mut bench.world.cx(bench.now, NodeId(0)));
                    bench.settle();
                }
            }
            prop_assert!(bench.gateway.report().held.0 <= memory.max(1), "{} held", bench.gateway.report().held.0);
        }
        bench.gateway.release_all(&mut bench.world.cx(bench.now, NodeId(0)));
        bench.settle();
        // passing packets may still wait for their turn
        bench.wait(60_000_000_000);
        prop_assert_eq!(bench.gateway.report().held.0, 0);
        let kept: i64 = bench.holders.values().sum();
        prop_assert_eq!(kept, 0, "held by nobody who would send or give back");
    }
}
