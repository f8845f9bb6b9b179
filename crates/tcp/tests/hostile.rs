//! A peer that follows no rule: whatever arrives and whatever the application does, nothing panics, memory
//! stays bounded, and a connection with data to send always has a timer.

use bentpipe_advice::quick_start::{self, Fields};
use bentpipe_advice::scone_tcp::{self, Advised};
use bentpipe_advice::tia1039::{self, Structure};
use bentpipe_base::{
    Addr, Duration, Flags, Instant, IpVersion, NodeId, Packet, Purpose, Rate, Rng, Seq, Size, Timestamps,
    World,
};
use bentpipe_tcp::{
    AskConfig, Config, Connection, EcnUse, Encoding, RandomValues, ReceiveBuffer, Scheme, Signalling, State,
    Tuple,
};
use std::sync::Arc;

const OURS: Seq = Seq(u32::MAX - 2500);
const PEERS: Seq = Seq(u32::MAX - 700);

/// Random choices of a hostile peer.
struct Dice(Rng);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.bits() % n
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
    /// A sequence number at `near`, close to it, or anywhere.
    fn about(&mut self, start: Seq, near: u64, span: u64) -> Seq {
        let off = self.below(span + 2);
        match self.below(16) {
            0 => Seq(self.0.bits() as u32),
            1 => start.at(near.wrapping_sub(self.below(1 << 17))),
            2..=6 => start.at(near),
            7..=10 => start.at(near + off / 500 * 500),
            _ => start.at(near + off),
        }
    }

    fn config(&mut self) -> Config {
        let mut config = Config {
            ecn: self.of(&[EcnUse::Off, EcnUse::AcceptOnly, EcnUse::Request]),
            mss: self.of(&[1, 100, 1000]),
            ..Config::default()
        };
        config.scheme = Scheme::named(self.of(&Scheme::NAMES)).expect("a name of the table");
        config.options.sack = !self.one_in(4);
        config.options.timestamps = self.one_in(2);
        config.receive_buffer = ReceiveBuffer::Fixed(Size(self.of(&[1, 500, 65_000, 1_000_000])));
        config
    }

    /// Makes a host ask for a rate.
    fn asking(&mut self, config: Config, encoding: Encoding) -> Config {
        let explicit_rate = Scheme::named("explicit-rate").expect("a name of the table");
        let ask = AskConfig {
            encoding,
            ask: Rate::from_bps(self.of(&[500, 1_000_000, 1_000_000_000])),
            take: Rate::from_bps(self.of(&[0, 1, 5_000_000])),
            trust_path: self.one_in(2),
            ..AskConfig::default()
        };
        Config {
            scheme: if encoding == Encoding::Tia1039 { explicit_rate } else { config.scheme },
            signalling: Some(Signalling::new(ask)),
            ip: self.of(&[IpVersion::V4, IpVersion::V6]),
            ..config
        }
    }

    /// Options with random content, in packets with any hop limit.
    fn options(&mut self, p: &mut Packet, encoding: Encoding) {
        let random = self.0.bits().to_be_bytes();
        p.hops = self.of(&[0, 1, 60, 64, 255, random[6]]);
        if encoding == Encoding::SconeTcp {
            let option = Advised::from_bytes(&[254, 6, 0x6F, 0x7D, random[0], random[1]]).expect("an option");
            scone_tcp::packet::put(p, option);
        } else {
            let [_, rest @ .., _, flags] = random;
            let fields = [&[random[0] & self.of(&[0x0F, 0x8F, 0xFF])], &rest[..]].concat();
            let fields = Fields::from_bytes(fields.try_into().expect("six bytes"));
            let (request, answer) = (flags & 1 == 0, flags & 2 == 0);
            quick_start::packet::put(p, request.then_some(fields), answer.then_some(fields));
        }
    }

    /// Structures of any kind and rate, some of them invalid, and any code point.
    fn signal(&mut self, c: &Connection, p: &mut Packet) {
        p.ip = if self.one_in(20) { IpVersion::V4 } else { c.config().ip };
        let mut structures = [Structure::default(); 3];
        for structure in &mut structures {
            let mut bytes = [0; Structure::LEN];
            let rate = self.0.bits() as u16 & if self.one_in(8) { 0xffff } else { 0x5fff };
            bytes[4..6].copy_from_slice(&rate.to_be_bytes());
            bytes[10] = (self.below(9) as u8) << 4;
            bytes[13] = self.of(&[0x10, 0x10, 0x11, 0x11, 0x20]);
            *structure = Structure::from_bytes(bytes);
        }
        tia1039::write(p, &structures[..self.of(&[0, 1, 1, 2, 3])]);
        p.dscp = if self.one_in(8) { tia1039::QOS_FLOW } else { tia1039::QOS_SIGNAL };
    }

    fn segment(&mut self, c: &Connection) -> Packet {
        let (next, una, span) = (c.receiver().next(), c.scoreboard().una(), c.scoreboard().flight());
        let mut p = Packet { src: Addr(2), sport: 2000, dst: Addr(1), dport: 1000, ..Packet::default() };
        let opening = matches!(c.state(), State::SynSent | State::SynReceived);
        p.tcp.flags = match self.below(20) {
            0 => Flags(self.0.bits() as u8 & if self.one_in(20) { 0xff } else { 0xfa }),
            1..=5 if opening => Flags::SYN.with(self.of(&[Flags::SYN, Flags::ACK])),
            1 => Flags::ACK.with(self.of(&[Flags::ECE, Flags::CWR, Flags::SYN, Flags::FIN])),
            _ => Flags::ACK,
        };
        p.tcp.seq = if p.tcp.flags.has(Flags::SYN) { PEERS } else { self.about(PEERS, next, 5000) };
        p.tcp.ack = if opening { OURS.at(1) } else { self.about(OURS, una, span) };
        p.tcp.window = self.of(&[0, 0, 1, 700, 5000, 65_535]);
        (p.tcp.mss, p.tcp.window_scale) = (self.of(&[Some(0), Some(1000)]), self.of(&[None, Some(255)]));
        p.tcp.sack_permitted = true;
        let stamps = Timestamps { value: self.below(4) as u32, echo: self.below(9000) as u32 };
        p.tcp.timestamps = (!self.one_in(4)).then_some(stamps);
        for _ in 0..self.of(&[0, 0, 1, 2, 4]) {
            let (l, r) = (self.about(OURS, una, span), self.about(OURS, una, span));
            p.tcp.sack.push(l, r);
        }
        p.body.len = self.of(&[0, 0, 0, 1, 500, 60_000]);
        p.seal();
        p
    }
}

/// Outstanding data has a timer, and no timer stays overdue.
fn check(c: &Connection, now: Instant) {
    let board = c.scoreboard();
    assert!(board.pipe() <= 2 * board.flight() && board.to_resend() <= board.lost());
    assert!(c.receiver().out_of_order().len() <= 70_000, "reassembly is bounded");
    let armed = c.deadline() != Instant::NEVER || c.state() == State::Closed;
    assert!(armed || (board.is_empty() && c.unacknowledged() == 0), "nothing is armed: {c:#?}");
    assert!(c.deadline() > now, "{:?} stays due at {now}", c.next_timer());
}

fn pump(c: &mut Connection, world: &mut World, now: Instant) {
    c.timer(&mut world.cx(now, NodeId(0)));
    let sent = (0..100_000).take_while(|_| c.transmit(&mut world.cx(now, NodeId(0))).is_some()).count();
    assert!(sent < 100_000, "it never stops: {:?} {:?}", c.config().scheme, c.path());
    check(c, now);
}

fn torment(seed: u64, signals: Option<Encoding>) {
    let mut dice = Dice(Rng::new(seed, "hostile", Purpose::Errors));
    let mut world = World::new(seed);
    let mut now = Instant::ZERO;
    let tuple = Tuple { local: (Addr(1), 1000), remote: (Addr(2), 2000) };
    let chance = RandomValues { isn: OURS, timestamp: 0, jitter: None };
    let mut config = dice.config();
    if let Some(encoding) = signals {
        config = dice.asking(config, encoding);
    }
    let mut c = Connection::connect(&world.cx(now, NodeId(0)), tuple, Arc::new(config), chance);
    for _ in 0..300 {
        // sometimes several things happen before the next transmission
        if !dice.one_in(4) {
            pump(&mut c, &mut world, now);
        }
        match dice.below(400) {
            0..30 => now += Duration(dice.of(&[1, 1_000_000, 50_000_000, 1_000_000_000])),
            30..70 if c.deadline() != Instant::NEVER => now = now.max(c.deadline()),
            70..100 => _ = c.write(dice.of(&[1, 100, 1000, 30_000])),
            100..130 => c.consume(now, dice.of(&[1, 1000, u64::MAX])),
            130 => c.close(),
            131 if dice.one_in(20) => c.abort(),
            _ => {
                let mut p = dice.segment(&c);
                match signals {
                    None => {}
                    Some(Encoding::Tia1039) => dice.signal(&c, &mut p),
                    Some(encoding) => dice.options(&mut p, encoding),
                }
                c.segment(&mut world.cx(now, NodeId(0)), &p);
            }
        }
    }
}

#[test]
fn no_peer_can_break_a_connection() {
    for seed in 0..2000 {
        let outcome = std::panic::catch_unwind(|| torment(seed, None));
        assert!(outcome.is_ok(), "failed: seed {seed}");
    }
}

#[test]
fn no_structure_can_break_a_connection_that_signals() {
    for seed in 0..1000 {
        let outcome = std::panic::catch_unwind(|| torment(seed, Some(Encoding::Tia1039)));
        assert!(outcome.is_ok(), "failed: seed {seed}");
    }
}

#[test]
fn no_option_can_break_a_connection_that_signals() {
    for (seed, encoding) in
        (0..1000).flat_map(|seed| [(seed, Encoding::SconeTcp), (seed, Encoding::QuickStart)])
    {
        let outcome = std::panic::catch_unwind(|| torment(seed, Some(encoding)));
        assert!(outcome.is_ok(), "failed: seed {seed}, {encoding:?}");
    }
}
