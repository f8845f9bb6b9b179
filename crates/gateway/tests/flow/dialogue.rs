//! Single packets in and out: handshakes, what the sender sees of a loss, and which fields an ACK to the
//! receiver carries.

use bentpipe_base::{
    Addr, Duration, Flags, Input, Instant, Node, NodeId, OtherOptions, Packet, Port, Rate, SackList, Seq,
    Size, Timestamps, World,
};
use bentpipe_gateway::{Config, Gateway, LAN, PassReason, SATELLITE};
use std::collections::VecDeque;

/// The sender's ISN, close to the wrap of sequence numbers.
const LAN_ISN: u32 = u32::MAX - 1000;
const SAT_ISN: u32 = 70_000;
const SYN: u8 = Flags::SYN.0;
const ACK: u8 = Flags::ACK.0;

struct Talk {
    world: World,
    gateway: Gateway,
    now: Instant,
}

impl Talk {
    fn new() -> Self {
        Self::over(Rate::from_bps(24_000_000))
    }

    /// Over a hop of this rate.
    fn over(rate: Option<Rate>) -> Self {
        let config = Config { rate, ..Config::default() };
        Self { world: World::new(1), gateway: Gateway::new(config), now: Instant(1_000_000_000) }
    }

    /// Puts a packet in; returns the packets that come out at once.
    fn say(&mut self, from: Port, packet: Packet) -> Vec<(Port, Packet)> {
        let input = Input::Packet(from, Box::new(packet));
        self.gateway.handle(&mut self.world.cx(self.now, NodeId(0)), input);
        self.out()
    }

    fn out(&mut self) -> Vec<(Port, Packet)> {
        self.world.outbox.drain(..).map(|(_, port, packet)| (port, *packet)).collect()
    }

    /// Returns the packets that come out within `ms`.
    fn wait(&mut self, ms: u64) -> Vec<(Port, Packet)> {
        let until = self.now + Duration::from_millis(ms);
        let mut all = Vec::new();
        while let Some(wake) = self.world.events.pop_until(until) {
            self.now = wake.at;
            self.gateway.handle(&mut self.world.cx(self.now, NodeId(0)), Input::Timer(wake.slot));
            all.extend(self.out());
        }
        self.now = until;
        all
    }

    /// Puts a packet in and expects exactly one out, at the other side.
    fn through(&mut self, from: Port, packet: Packet) -> Packet {
        let mut out = self.say(from, packet);
        assert_eq!(out.len(), 1, "{out:?}");
        let (port, packet) = out.remove(0);
        assert_ne!(port, from);
        assert_eq!(
            packet.header_len,
            20 + packet.tcp.wire_len() + packet.other_options.len,
            "the length is true"
        );
        packet
    }

    /// An established connection, opened by a receiver without window scaling; RTT 600 ms.
    fn open() -> Self {
        Self::new().opened()
    }

    fn opened(mut self) -> Self {
        let talk = &mut self;
        talk.through(SATELLITE, syn(SATELLITE, SYN, None));
        talk.through(LAN, syn(LAN, SYN | ACK, Some(7)));
        talk.now += Duration::from_millis(600);
        talk.through(SATELLITE, ack(0, 65_535));
        self
    }
}

fn packet(from: Port, flags: u8, seq: u32, ack: u32) -> Packet {
    let mut packet = Packet::default();
    let ends = [(Addr(1), 80), (Addr(2), 5000)];
    let (own, other) = if from == LAN { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    (packet.src, packet.sport, packet.dst, packet.dport) = (own.0, own.1, other.0, other.1);
    let (isn, peer) = if from == LAN { (LAN_ISN, SAT_ISN) } else { (SAT_ISN, LAN_ISN) };
    packet.tcp.flags = Flags(flags);
    packet.tcp.seq = Seq(isn).at(u64::from(seq));
    packet.tcp.ack = Seq(peer).at(u64::from(ack));
    packet.tcp.window = 65_535;
    packet.seal();
    packet
}

fn syn(from: Port, flags: u8, scale: Option<u8>) -> Packet {
    let mut packet = packet(from, flags, 0, u32::from(flags & ACK != 0));
    packet.tcp.mss = Some(1460);
    packet.tcp.sack_permitted = true;
    packet.tcp.window_scale = scale;
    packet.tcp.window = 64_240;
    packet.seal();
    packet
}

/// Segment `n` from the sender, of 1460 bytes.
fn data(n: u32) -> Packet {
    let mut packet = packet(LAN, ACK, 1 + n * 1460, 1);
    packet.body.off = u64::from(n) * 1460;
    packet.body.len = 1460;
    packet
}

/// The receiver acknowledges this many segments.
fn ack(segments: u32, window: u16) -> Packet {
    let mut packet = packet(SATELLITE, ACK, 1, 1 + segments * 1460);
    packet.tcp.window = window;
    packet
}

fn to(port: Port, out: &[(Port, Packet)]) -> Vec<&Packet> {
    out.iter().filter(|o| o.0 == port).map(|o| &o.1).collect()
}

/// The receiver opens without scaling: the sender sees the option, its own is removed on the way back, and
/// each keeps its own view of the scale.
#[test]
fn scale_is_inserted_when_the_receiver_opens() {
    let mut talk = Talk::new();
    for _ in 0..2 {
        // the second is the same SYN, retransmitted
        let seen = talk.through(SATELLITE, syn(SATELLITE, SYN, None));
        // 2 products of 24 Mbit/s and the assumed 1.5 s are 9 MB: a shift of 8
        assert_eq!((seen.tcp.window_scale, seen.tcp.window, seen.tcp.mss), (Some(8), 64_240, Some(1460)));
        let answer = talk.through(LAN, syn(LAN, SYN | ACK, Some(7)));
        assert_eq!(
            (answer.tcp.window_scale, answer.tcp.window, answer.tcp.sack_permitted),
            (None, 64_240, true)
        );
        talk.now += Duration::from_secs(1);
    }
    let seen = talk.through(SATELLITE, ack(0, 65_535));
    assert!(u64::from(seen.tcp.window) << 8 > 3_000_000, "the product is shown: {}", seen.tcp.window);
    let mut own = packet(LAN, ACK, 1, 1);
    own.tcp.window = 500;
    assert_eq!(talk.through(LAN, own.clone()).tcp.window, 500 << 7);
    own.tcp.window = 600;
    assert_eq!(talk.through(LAN, own).tcp.window, 65_535);
}

/// The sender opens with scaling and the receiver has none: its SYN/ACK gets the option.
#[test]
fn scale_is_inserted_when_the_sender_opens() {
    let mut talk = Talk::new();
    assert_eq!(talk.through(LAN, syn(LAN, SYN, Some(7))).tcp.window_scale, Some(7));
    talk.now += Duration::from_millis(600);
    // now the RTT is known: 3.6 MB
    assert_eq!(talk.through(SATELLITE, syn(SATELLITE, SYN | ACK, None)).tcp.window_scale, Some(6));
    let mut own = packet(LAN, ACK, 1, 1);
    own.tcp.window = 100;
    assert_eq!(talk.through(LAN, own).tcp.window, 100 << 7);
}

/// A sender without scaling gets no option; if both scale, the larger shift is shown.
#[test]
fn scale_is_left_where_it_cannot_be_or_is_enough() {
    let mut talk = Talk::new();
    assert_eq!(talk.through(LAN, syn(LAN, SYN, None)).tcp.window_scale, None);
    assert_eq!(talk.through(SATELLITE, syn(SATELLITE, SYN | ACK, None)).tcp.window_scale, None);
    let mut talk = Talk::new();
    talk.through(LAN, syn(LAN, SYN, Some(9)));
    assert_eq!(talk.through(SATELLITE, syn(SATELLITE, SYN | ACK, Some(10))).tcp.window_scale, Some(10));
    let mut own = packet(LAN, ACK, 1, 1);
    own.tcp.window = 100;
    assert_eq!(talk.through(LAN, own).tcp.window, 100, "the receiver scales by itself");
}

/// A SYN without room for the option, and a signed one, pass unchanged.
#[test]
fn what_cannot_be_edited_passes_with_its_reason() {
    let mut full = syn(SATELLITE, SYN, None);
    full.tcp.timestamps = Some(Timestamps { value: 1, echo: 0 });
    full.other_options = OtherOptions { kinds: OtherOptions::UNKNOWN, len: 24 };
    full.seal();
    let mut talk = Talk::new();
    assert_eq!(talk.through(SATELLITE, full.clone()), full);
    talk.through(LAN, syn(LAN, SYN | ACK, Some(7)));
    let plain = ack(0, 1000);
    assert_eq!(talk.through(SATELLITE, plain.clone()), plain);
    assert_eq!(talk.gateway.flows(0, 1).0[0].pass_reason, Some(PassReason::OptionSpace));
    let mut signed = syn(SATELLITE, SYN, None);
    signed.other_options = OtherOptions { kinds: OtherOptions::SIGNED, len: 18 };
    signed.seal();
    assert_eq!(Talk::new().through(SATELLITE, signed.clone()), signed);
}

/// A forged SYN/ACK that answers no SYN passes and changes nothing.
#[test]
fn a_forged_answer_ends_nothing() {
    let mut talk = Talk::open();
    for from in [LAN, SATELLITE] {
        let mut forged = syn(from, SYN | ACK, Some(3));
        forged.tcp.seq = Seq(5);
        assert_eq!(talk.through(from, forged.clone()), forged);
    }
    assert_eq!(talk.gateway.flows(0, 1).0[0].pass_reason, None);
    let mut own = packet(LAN, ACK, 1, 1);
    own.tcp.window = 500;
    assert_eq!(talk.through(LAN, own).tcp.window, 500 << 7, "windows are still translated");
}

/// Segment 1 of six is lost: the sender sees neither duplicate ACKs nor SACK blocks, the receiver gets it
/// again, twice, and no ACK is ahead of the receiver.
#[test]
fn a_loss_is_repaired_and_not_seen() {
    let mut talk = Talk::open();
    let mut sent = Vec::new();
    for n in 0..6 {
        sent.extend(talk.say(LAN, data(n)));
    }
    sent.extend(talk.wait(600));
    assert_eq!(to(SATELLITE, &sent).len(), 6);
    let first = talk.through(SATELLITE, ack(1, 65_535));
    assert_eq!(first.tcp.ack, Seq(LAN_ISN).at(1461));
    let mut again = Vec::new();
    for n in 3..6 {
        talk.now += Duration::from_millis(1);
        let mut duplicate = ack(1, 65_535);
        duplicate.tcp.sack = SackList::default();
        duplicate.tcp.sack.push(Seq(LAN_ISN).at(1 + 2 * 1460), Seq(LAN_ISN).at(1 + n * 1460));
        duplicate.seal();
        again.extend(talk.say(SATELLITE, duplicate));
        again.extend(talk.wait(20));
    }
    assert_eq!(to(LAN, &again), Vec::<&Packet>::new(), "nothing of it is the sender's business");
    let repairs = to(SATELLITE, &again);
    assert!(
        repairs.len() == 2 && repairs.iter().all(|p| p.body == data(1).body && p.tcp.seq == data(1).tcp.seq)
    );
    // an RTT later; everything that this ACK covers has arrived, and only one packet was lost
    talk.wait(600);
    let last = talk.through(SATELLITE, ack(6, 65_535));
    assert_eq!((last.tcp.ack, last.tcp.sack.is_empty()), (Seq(LAN_ISN).at(1 + 6 * 1460), true));
    assert_eq!((talk.gateway.report().held.0, talk.gateway.counters().losses), (0, 1));
}

/// Segment 1 never reached the gateway: duplicate ACKs and SACK blocks pass, and so does the sender's
/// retransmission.
#[test]
fn a_loss_in_front_of_the_gateway_is_the_senders() {
    let mut talk = Talk::open();
    for n in [0, 2, 3] {
        talk.say(LAN, data(n));
    }
    talk.wait(600);
    talk.through(SATELLITE, ack(1, 65_535));
    let mut duplicate = ack(1, 65_535);
    duplicate.tcp.sack.push(Seq(LAN_ISN).at(1 + 2 * 1460), Seq(LAN_ISN).at(1 + 4 * 1460));
    duplicate.seal();
    let seen = talk.through(SATELLITE, duplicate.clone());
    assert_eq!((seen.tcp.ack, seen.tcp.sack), (duplicate.tcp.ack, duplicate.tcp.sack));
    assert_eq!(talk.through(LAN, data(1)).body, data(1).body);
    assert_eq!(talk.gateway.counters().losses, 0);
}

/// A tail loss probe is dropped and reported by DSACK (RFC 2883); a duplicate of data that has arrived is
/// answered with the missed ACK.
#[test]
fn a_copy_is_swallowed_and_told() {
    let mut talk = Talk::open();
    talk.say(LAN, data(0));
    talk.say(LAN, data(1));
    talk.wait(300);
    assert_eq!(talk.say(LAN, data(1)), Vec::new(), "it is on the way");
    talk.wait(300);
    let seen = talk.through(SATELLITE, ack(2, 65_535));
    let isn = Seq(LAN_ISN);
    assert_eq!(seen.tcp.sack.as_slice(), [(isn.at(1461), isn.at(2921))]);
    // the keep-alive of an idle sender and its answer pass
    let probe = packet(LAN, ACK, 2920, 1);
    assert_eq!(talk.through(LAN, probe.clone()).tcp.seq, probe.tcp.seq);
    assert_eq!(talk.through(SATELLITE, ack(2, 65_535)).tcp.ack, isn.at(2921));
}

/// A pure ACK behind queued data carries the sequence number that the receiver expects then.
#[test]
fn a_pure_ack_carries_what_is_expected() {
    let mut talk = Talk::open();
    for n in 0..40 {
        talk.say(LAN, data(n));
    }
    let out = talk.say(LAN, packet(LAN, ACK, 1 + 40 * 1460, 1));
    let acks: Vec<_> = to(SATELLITE, &out).into_iter().filter(|p| p.body.len == 0).collect();
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0].tcp.seq, Seq(LAN_ISN).at(1 + 1460 * talk.gateway.counters().forwarded));
}

/// Zero window: data forwarded beyond it may have arrived or not, so the ACK goes with both possible numbers.
#[test]
fn a_pure_ack_reaches_a_closed_window() {
    let mut talk = Talk::open();
    for n in 0..60 {
        talk.say(LAN, data(n));
    }
    talk.wait(600);
    let mut closed = packet(SATELLITE, ACK, 1, 65_536);
    closed.tcp.window = 0;
    talk.say(SATELLITE, closed);
    let out = talk.say(LAN, packet(LAN, ACK, 1 + 60 * 1460, 1));
    let numbers: Vec<_> = to(SATELLITE, &out).iter().map(|p| (p.tcp.seq, p.body.len)).collect();
    assert_eq!(numbers, [(Seq(LAN_ISN).at(65_536), 0), (Seq(LAN_ISN).at(1 + 60 * 1460), 0)]);
}

/// An RST waits for the data before it, but not for ever: behind a window that stays closed it goes with the
/// number that the receiver expects (RFC 5961, section 3.2), and the data is dropped. The same holds if the
/// data was in flight and the RST behind it.
#[test]
fn a_reset_does_not_wait_for_a_closed_window() {
    for segments in [2000, 100] {
        let mut talk = Talk::open();
        for n in 0..segments {
            talk.say(LAN, data(n));
        }
        talk.wait(600);
        let mut closed = packet(SATELLITE, ACK, 1, 65_536);
        closed.tcp.window = 0;
        talk.say(SATELLITE, closed);
        let mut reset = packet(LAN, Flags::RST.0 | ACK, 1 + segments * 1460, 1);
        reset.body.len = 300;
        let at_once = talk.say(LAN, reset);
        assert_eq!(at_once.len(), usize::from(segments == 100), "{at_once:?}");
        let is_reset = |o: &&(Port, Packet)| o.1.tcp.flags.has(Flags::RST);
        assert_eq!(talk.wait(900).iter().filter(is_reset).count(), 0);
        let late = talk.wait(4000);
        let resets: Vec<_> = late.iter().filter(is_reset).map(|o| (o.0, o.1.tcp.seq)).collect();
        assert_eq!(resets.first(), Some(&(SATELLITE, Seq(LAN_ISN).at(65_536))), "{resets:?}");
        // text in the RST would overlap other bytes
        assert!(late.iter().filter(is_reset).all(|o| o.1.body.len == 0), "{late:?}");
        assert_eq!((resets.len(), talk.gateway.report().held.0), (2, 0));
        assert_eq!(talk.wait(20_000), Vec::new());
    }
}

/// A packet of one byte costs a whole buffer, and the buffer of a super-packet that is cut stays until the
/// last part is freed: the limits count that.
#[test]
fn limits_count_what_is_really_held() {
    let mut talk = Talk::open();
    let mut config = talk.gateway.config().clone();
    config.limits.per_flow = Size(100_000);
    talk.gateway.reconfigure(&mut talk.world.cx(talk.now, NodeId(0)), config);
    let mut held = 0;
    for n in 0..1000 {
        let mut byte = packet(LAN, ACK, 1 + n, 1);
        (byte.body.off, byte.body.len) = (u64::from(n), 1);
        talk.say(LAN, byte);
        held = talk.gateway.report().held.0;
    }
    assert!(held > 50 && held * 256 < 100_000, "{held} bytes of one each");
    // nothing passes behind queued packets, since it would overtake them
    let counters = talk.gateway.counters();
    assert_eq!((counters.overflow, counters.no_room), (0, 1000 - held), "{held}");
}

/// A receiver whose buffer shrinks, as the kernel's does when packets need more memory than they carry: half
/// of the largest window is more than it ever shows again. With nothing in flight, and since Linux announces
/// a window by itself only when it has doubled, both could wait for each other for ever.
#[test]
fn a_slow_reader_that_shows_less_than_before_gets_its_rate() {
    const READ: f64 = 5e3; // bytes per second
    let half_trip = Duration::from_millis(300);
    let mut talk = Talk::over(Rate::from_bps(1_000_000)).opened();
    let (mut out, mut sent) = (Vec::new(), 0);
    let began = talk.now;
    let (mut arriving, mut answers) = (VecDeque::new(), VecDeque::new());
    let (mut next, mut edge, mut read, mut read_before) = (1_u64, 65_536_u64, 1.0_f64, 0.0);
    while talk.now < began + Duration::from_secs(90) {
        // the sender is 100 kB ahead of the receiver
        while u64::from(sent) * 1460 < next + 100_000 {
            out.extend(talk.say(LAN, data(sent)));
            sent += 1;
        }
        out.extend(talk.wait(10));
        for packet in to(SATELLITE, &std::mem::take(&mut out)) {
            let start = 1 + packet.body.off;
            arriving.push_back((talk.now + half_trip, start, start + u64::from(packet.body.len)));
        }
        let buffer = if talk.now < began + Duration::from_secs(5) { 65_535.0 } else { 28_000.0 };
        let mut tells = false;
        while let Some((_, start, end)) = arriving.pop_front_if(|(at, ..)| *at <= talk.now) {
            if start <= next && end <= edge {
                next = next.max(end);
            }
            tells = true;
        }
        read = (read + READ / 100.0).min(next as f64);
        if talk.now <= began + Duration::from_secs(30) {
            read_before = read;
        }
        let opened = edge.max((read + buffer) as u64);
        let known = edge - next;
        tells |= opened - edge >= known.max(1460);
        if tells {
            edge = opened;
            answers.push_back((talk.now + half_trip, next as u32, (edge - next) as u16));
        }
        while let Some((_, next, window)) = answers.pop_front_if(|(at, ..)| *at <= talk.now) {
            let mut ack = packet(SATELLITE, ACK, 1, next);
            ack.tcp.window = window;
            out.extend(talk.say(SATELLITE, ack));
        }
    }
    let rate = (read - read_before) / 60.0;
    assert!(rate > 0.9 * READ, "{rate:.0} B/s of {READ}");
}
