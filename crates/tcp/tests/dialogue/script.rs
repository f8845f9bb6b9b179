//! The test fixture: one connection, a peer played by the test, and a clock.
//!
//! Positions are stream offsets on both sides: 0 is the SYN, 1 the first byte. Times are milliseconds since
//! the start. `at` moves the clock and fires every timer at its own time; segments that the connection sends
//! are queued with their times until `sends`, `sends_at` or `silent` checks them. So "nothing was sent
//! meanwhile" is checked as well.

use bentpipe_base::{
    Addr, Body, Cx, Duration, Ecn, Flags, Instant, NodeId, Packet, Purpose, SackList, Seq, Timestamps, World,
};
use bentpipe_tcp::{
    Config, Connection, Event, Offer, Options, RandomValues, ReceiveBuffer, Scheme, State, Tuple, Validation,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Our initial sequence number and the peer's: both wrap within the first kilobytes of a dialogue.
pub const OURS: Seq = Seq(u32::MAX - 2500);
pub const PEERS: Seq = Seq(u32::MAX - 700);

/// A segment in dialogue notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seg {
    /// Position of the first byte, in the sender's stream.
    pub seq: u64,
    /// Payload bytes.
    pub len: u32,
    /// Position acknowledged in the other stream; `None` without ACK.
    pub ack: Option<u64>,
    /// Window field, unscaled.
    pub win: u16,
    /// Flags other than ACK.
    pub flags: Flags,
    /// SACK blocks, in positions of the stream they report.
    pub sack: [(u64, u64); 4],
    /// Timestamps option.
    pub ts: Option<(u32, u32)>,
    /// MSS, window scale, SACK-permitted: on a SYN.
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_ok: bool,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

/// A pure ACK to start from: `Seg { ack: Some(1001), ..ACK }`.
pub const ACK: Seg = Seg {
    seq: 1,
    len: 0,
    ack: Some(1),
    win: 65_000,
    flags: Flags(0),
    sack: [(0, 0); 4],
    ts: None,
    mss: None,
    scale: None,
    sack_ok: false,
    ecn: Ecn::NotEct,
};

/// The peer's SYN with MSS 1000 and no other option.
pub const SYN: Seg = Seg { seq: 0, ack: None, flags: Flags::SYN, mss: Some(1000), ..ACK };

/// The peer's SYN/ACK with MSS 1000 and no other option.
pub const SYN_ACK: Seg = Seg { ack: Some(1), ..SYN };

/// The peer's FIN as the first segment after the handshake.
pub const FIN: Seg = Seg { flags: Flags::FIN, ..ACK };

/// The peer's RST at the first expected sequence number.
pub const RST: Seg = Seg { flags: Flags::RST, ack: None, ..ACK };

/// Expected values of a segment of ours; a field that is `None` is not checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Want {
    pub seq: Option<u64>,
    pub len: Option<u32>,
    pub ack: Option<u64>,
    pub win: Option<u16>,
    /// Exact flags; ACK and PSH are not compared.
    pub flags: Option<Flags>,
    pub sack: Option<&'static [(u64, u64)]>,
    /// Timestamps option; `Some(None)`: must be absent.
    pub ts: Option<Option<(u32, u32)>>,
    pub ecn: Option<Ecn>,
}

/// Data of ours.
pub fn data(seq: u64, len: u32) -> Want {
    Want { seq: Some(seq), len: Some(len), ..Want::default() }
}

/// A pure ACK of ours.
pub fn ack(ack: u64) -> Want {
    Want { ack: Some(ack), len: Some(0), flags: Some(Flags(0)), ..Want::default() }
}

/// Our FIN without data.
pub fn fin(seq: u64) -> Want {
    Want { seq: Some(seq), len: Some(0), flags: Some(Flags::FIN), ..Want::default() }
}

/// Our SYN.
pub fn syn() -> Want {
    Want { seq: Some(0), len: Some(0), flags: Some(Flags::SYN), ..Want::default() }
}

/// Our SYN/ACK.
pub fn syn_ack() -> Want {
    Want { ack: Some(1), ..syn() }
}

/// Where segment number `k` of a stream of 1000 B segments begins.
pub const fn nth(k: u64) -> u64 {
    1 + 1000 * k
}

/// Acknowledges the first `k` segments of 1000 B.
pub fn acks(k: u64) -> Seg {
    Seg { ack: Some(nth(k)), ..ACK }
}

/// Like [`acks`], with SACK blocks, each from segment number `l` to before `r`.
pub fn sacks(k: u64, blocks: &[(u64, u64)]) -> Seg {
    let mut seg = acks(k);
    for (to, (l, r)) in seg.sack.iter_mut().zip(blocks) {
        *to = (nth(*l), nth(*r));
    }
    seg
}

/// The connection, the clock and the segments sent.
pub struct Dialogue {
    pub world: World,
    pub conn: Connection,
    now: Instant,
    sent: VecDeque<(Instant, Packet)>,
}

/// A host with few features: Reno, MSS 1000, no other options, immediate ACKs, fixed window of 65 000 B, no
/// Nagle, window kept when idle.
pub fn plain() -> Config {
    Config {
        scheme: Scheme::named("reno").unwrap(),
        mss: 1000,
        receive_buffer: ReceiveBuffer::Fixed(bentpipe_base::Size(65_000)),
        delayed_ack: None,
        nagle: false,
        options: Options { mss: true, window_scale: false, sack: false, timestamps: false },
        initial_window: 4,
        limited_transmit: false,
        validation: Validation::Keep,
        ..Config::default()
    }
}

/// Like [`plain`], with another scheme; SACK is on if the scheme uses it.
pub fn plain_with(scheme: &str) -> Config {
    let scheme = Scheme::named(scheme).unwrap();
    let mut config = Config { scheme, ..plain() };
    config.options.sack = scheme.wants_sack();
    config
}

fn tuple() -> Tuple {
    Tuple { local: (Addr(1), 1000), remote: (Addr(2), 2000) }
}

impl Dialogue {
    /// An active open: our SYN is queued.
    pub fn connect(config: Config) -> Self {
        let mut world = World::new(1);
        let jitter = config.jitter.map(|_| world.open_rng("dialogue", Purpose::Jitter));
        let chance = RandomValues { isn: OURS, timestamp: 0, jitter };
        let conn =
            Connection::connect(&world.cx(Instant::ZERO, NodeId(0)), tuple(), Arc::new(config), chance);
        let mut d = Self { world, conn, now: Instant::ZERO, sent: VecDeque::new() };
        d.pump();
        d
    }

    /// A passive open: the peer's `syn` arrived and was accepted; our SYN/ACK is queued.
    pub fn accept(config: Config, syn: Seg) -> Self {
        Self::accept_at(0, config, syn)
    }

    /// The same, but the offer is held until `ms`.
    pub fn accept_at(ms: u64, config: Config, syn: Seg) -> Self {
        let mut world = World::new(1);
        let now = Instant::ZERO + Duration::from_millis(ms);
        let packet = packet_of(&syn);
        let offer = Offer::new(&packet, Arc::new(config)).expect("a SYN");
        let chance = RandomValues { isn: OURS, timestamp: 0, jitter: None };
        let conn = offer.complete(&mut world.cx(now, NodeId(0)), chance);
        let mut d = Self { world, conn, now, sent: VecDeque::new() };
        d.pump();
        d
    }

    /// Established by an active open with an RTT of 100 ms: the clock is at 100 ms, nothing is queued. The
    /// peer offers what `config` offers, and a window of 65 000 B.
    pub fn established(config: Config) -> Self {
        let options = config.options;
        let answer = Seg {
            mss: Some(config.mss),
            scale: options.window_scale.then_some(0),
            sack_ok: options.sack,
            ts: options.timestamps.then_some((1, 0)),
            ..SYN_ACK
        };
        Self::answered(config, answer)
    }

    /// Established by an active open that the peer answered with `answer` after 100 ms.
    pub fn answered(config: Config, answer: Seg) -> Self {
        let mut d = Self::connect(config);
        d.sends(Want { seq: Some(0), ..Want::default() });
        d.at(100).gets(answer).sends(ack(1)).silent();
        assert_eq!(d.event(), Some(Event::Established));
        assert_eq!(d.conn.state(), State::Established);
        d
    }

    /// Established at 100 ms, `n` segments of 1000 B sent then, and plenty of data written; the clock is at
    /// 200 ms.
    pub fn flying(mut config: Config, n: u32) -> Self {
        config.initial_window = n;
        let mut d = Self::established(config);
        d.write(1_000_000).sent(&(0..u64::from(n)).collect::<Vec<_>>());
        d.at(200);
        d
    }

    fn pump(&mut self) {
        loop {
            let mut cx = self.world.cx(self.now, NodeId(0));
            let Some(packet) = self.conn.transmit(&mut cx) else { return };
            self.sent.push_back((self.now, *packet));
            assert!(self.sent.len() < 100_000, "it never stops sending");
        }
    }

    /// Moves the clock to `ms`, firing timers at their own times.
    pub fn at(&mut self, ms: u64) -> &mut Self {
        self.at_instant(Instant::ZERO + Duration::from_millis(ms))
    }

    /// Like [`Self::at`], to the nanosecond.
    pub fn at_instant(&mut self, target: Instant) -> &mut Self {
        assert!(target >= self.now, "dialogues go forward");
        while self.conn.deadline() <= target {
            self.now = self.now.max(self.conn.deadline());
            self.conn.timer(&mut self.world.cx(self.now, NodeId(0)));
            self.pump();
        }
        self.now = target;
        self
    }

    /// The peer's segment arrives.
    pub fn gets(&mut self, seg: Seg) -> &mut Self {
        let packet = packet_of(&seg);
        self.conn.segment(&mut self.world.cx(self.now, NodeId(0)), &packet);
        self.pump();
        self
    }

    /// The same segment arrives `n` times.
    pub fn gets_times(&mut self, n: usize, seg: Seg) -> &mut Self {
        for _ in 0..n {
            self.gets(seg);
        }
        self
    }

    /// The application writes `n` bytes.
    pub fn write(&mut self, n: u64) -> &mut Self {
        assert_eq!(self.conn.write(n), n, "the send buffer took all");
        self.pump();
        self
    }

    /// The application reads `n` bytes.
    pub fn read(&mut self, n: u64) -> &mut Self {
        assert!(self.conn.readable() >= n, "{} readable", self.conn.readable());
        self.conn.consume(self.now, n);
        self.pump();
        self
    }

    /// The application closes its direction.
    pub fn close(&mut self) -> &mut Self {
        self.conn.close();
        self.pump();
        self
    }

    /// The next segment of ours, with its time in milliseconds.
    pub fn take(&mut self) -> (u64, Packet) {
        let (at, packet) = self.next_sent().unwrap_or_else(|| panic!("nothing was sent by {}", self.now()));
        (at.0 / 1_000_000, packet)
    }

    /// The next segment of ours with its time, if there is one.
    pub fn next_sent(&mut self) -> Option<(Instant, Packet)> {
        self.sent.pop_front()
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The next segment of ours, if there is one.
    pub fn try_take(&mut self) -> Option<Packet> {
        self.next_sent().map(|(_, packet)| packet)
    }

    /// Checks that the next segment of ours matches `want`.
    #[track_caller]
    pub fn sends(&mut self, want: Want) -> &mut Self {
        let (_, packet) = self.take();
        check(&packet, &want);
        self
    }

    /// Checks that the next segment of ours matches `want` and was sent at `ms`.
    #[track_caller]
    pub fn sends_at(&mut self, ms: u64, want: Want) -> &mut Self {
        let (at, packet) = self.take();
        check(&packet, &want);
        assert_eq!(at, ms, "sent at {at} ms, expected {ms} ms: {packet:?}");
        self
    }

    /// Checks that exactly these segments of 1000 B, by number, were sent since the last check.
    #[track_caller]
    pub fn sent(&mut self, numbers: &[u64]) -> &mut Self {
        let got: Vec<_> = self.drain().iter().map(|p| (position(OURS, p.tcp.seq), p.body.len)).collect();
        let want: Vec<_> = numbers.iter().map(|k| (nth(*k), 1000)).collect();
        assert_eq!(got, want, "at {}", self.now);
        self
    }

    /// Everything sent since the last check.
    pub fn drain(&mut self) -> Vec<Packet> {
        self.sent.drain(..).map(|(_, packet)| packet).collect()
    }

    /// Checks that the next segment of ours is number `k`, of 1000 B.
    #[track_caller]
    pub fn sends_first(&mut self, k: u64) -> &mut Self {
        self.sends(data(nth(k), 1000))
    }

    /// Acknowledges everything outstanding at `ms`, segment by segment; returns the window afterwards in
    /// bytes.
    pub fn round(&mut self, ms: u64) -> u64 {
        self.at(ms);
        let (una, next) = (self.conn.scoreboard().una(), self.conn.scoreboard().next());
        for position in (una + 1..=next).filter(|p| (p - 1) % 1000 == 0) {
            self.gets(Seg { ack: Some(position), ..ACK });
        }
        self.drain();
        self.cwnd()
    }

    /// The congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.conn.cwnd().0
    }

    /// Checks that nothing (more) was sent.
    #[track_caller]
    pub fn silent(&mut self) -> &mut Self {
        if let Some((at, packet)) = self.sent.front() {
            panic!(
                "expected silence, but at {at}: seq {} len {} {packet:?}",
                position(OURS, packet.tcp.seq),
                packet.body.len
            );
        }
        self
    }

    /// The next event for the application.
    pub fn event(&mut self) -> Option<Event> {
        self.conn.event()
    }

    /// Runs `f` with the context of this moment.
    pub fn with<T>(&mut self, f: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T) -> T {
        let result = f(&mut self.conn, &mut self.world.cx(self.now, NodeId(0)));
        self.pump();
        result
    }
}

/// Stream position of a sequence number, of ours or the peer's.
pub fn position(start: Seq, seq: Seq) -> u64 {
    u64::from(seq.0.wrapping_sub(start.0))
}

/// Builds the peer's segment.
pub fn packet_of(seg: &Seg) -> Packet {
    let mut p = Packet {
        src: Addr(2),
        sport: 2000,
        dst: Addr(1),
        dport: 1000,
        body: Body { off: seg.seq.saturating_sub(1), len: seg.len },
        ecn: seg.ecn,
        ..Packet::default()
    };
    p.tcp.seq = PEERS.at(seg.seq);
    p.tcp.flags = seg.flags;
    if let Some(a) = seg.ack {
        p.tcp.ack = OURS.at(a);
        p.tcp.flags = p.tcp.flags.with(Flags::ACK);
    }
    p.tcp.window = seg.win;
    p.tcp.mss = seg.mss;
    p.tcp.window_scale = seg.scale;
    p.tcp.sack_permitted = seg.sack_ok;
    p.tcp.timestamps = seg.ts.map(|(value, echo)| Timestamps { value, echo });
    let mut sack = SackList::default();
    for (l, r) in seg.sack.into_iter().filter(|b| b.1 > 0) {
        sack.push(OURS.at(l), OURS.at(r));
    }
    p.tcp.sack = sack;
    p.seal();
    p
}

/// Compares a segment of ours with the expected values.
#[track_caller]
pub fn check(p: &Packet, want: &Want) {
    let seq = position(OURS, p.tcp.seq);
    if let Some(s) = want.seq {
        assert_eq!(seq, s, "sequence of {p:?}");
    }
    if let Some(l) = want.len {
        assert_eq!(p.body.len, l, "length of the segment at {seq}: {p:?}");
    }
    if let Some(a) = want.ack {
        assert!(p.tcp.flags.has(Flags::ACK), "no ACK: {p:?}");
        assert_eq!(position(PEERS, p.tcp.ack), a, "acknowledgment of {p:?}");
    }
    if let Some(w) = want.win {
        assert_eq!(p.tcp.window, w, "window of {p:?}");
    }
    if let Some(f) = want.flags {
        let shown = p.tcp.flags.0 & !(Flags::ACK.0 | Flags::PSH.0);
        assert_eq!(shown, f.0, "flags of {p:?}");
    }
    if let Some(blocks) = want.sack {
        let got: Vec<_> =
            p.tcp.sack.as_slice().iter().map(|(l, r)| (position(PEERS, *l), position(PEERS, *r))).collect();
        assert_eq!(got, blocks, "SACK blocks of {p:?}");
    }
    if let Some(ts) = want.ts {
        assert_eq!(p.tcp.timestamps.map(|t| (t.value, t.echo)), ts, "timestamps of {p:?}");
    }
    if let Some(ecn) = want.ecn {
        assert_eq!(p.ecn, ecn, "ECN field of {p:?}");
    }
}
