//! Two connected hosts: timing of datagrams, hostile packets, and closed connections.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_base::{
    Addr, Duration, Flags, Input, Instant, Node, NodeId, Packet, Pkt, Port, Proto, Purpose, Rate, Size, World,
};
use bentpipe_nodes::{ConnectRequest, DatagramStream, Host, Listener, Pattern, Reader, Writer};
use bentpipe_tcp::{Config, State};
use std::collections::VecDeque;
use std::sync::Arc;

const DELAY: Duration = Duration::from_millis(10);

/// Two hosts and a wire with delay [`DELAY`].
struct Pair {
    world: World,
    hosts: [Host; 2],
    flying: VecDeque<(Instant, usize, Pkt)>,
    now: Instant,
    /// Every packet that entered the wire: time and sender.
    sent: Vec<(Instant, usize, Packet)>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let hosts = ["a", "b"].map(|name| world.open_rng(name, Purpose::Isn));
        let hosts = [Host::new(Addr(0), hosts[0], None), Host::new(Addr(1), hosts[1], None)];
        Self { world, hosts, flying: VecDeque::new(), now: Instant::ZERO, sent: Vec::new() }
    }

    fn handle(&mut self, host: usize, input: Input) {
        self.hosts[host].handle(&mut self.world.cx(self.now, NodeId(host as u32)), input);
        while let Some((from, _, packet)) = self.world.outbox.pop_front() {
            self.sent.push((self.now, from.0 as usize, (*packet).clone()));
            self.flying.push_back((self.now + DELAY, 1 - from.0 as usize, packet));
        }
    }

    fn run_until(&mut self, until: Instant) {
        loop {
            let arrival = self.flying.front().map_or(Instant::NEVER, |f| f.0);
            if let Some(wake) = self.world.events.pop_until(until.min(arrival)) {
                self.now = wake.at;
                self.handle(wake.node.0 as usize, Input::Timer(wake.slot));
            } else if arrival <= until {
                let (at, to, packet) = self.flying.pop_front().unwrap();
                self.now = at;
                self.handle(to, Input::Packet(Port(0), packet));
            } else {
                self.now = until;
                return;
            }
        }
    }

    fn stream(&mut self, pattern: Pattern, size: u64, start: Instant) {
        let rng = self.world.open_rng("stream", Purpose::Application);
        let stream = DatagramStream { port: 7, to: (Addr(1), 9), size: Size(size), pattern, rng, start };
        self.hosts[1].receive_datagrams(9, (Addr(0), 7));
        self.hosts[0].send_datagrams(&mut self.world.cx(self.now, NodeId(0)), &stream);
    }

    /// Times between datagrams in seconds.
    fn gaps(&self) -> Vec<f64> {
        self.sent.windows(2).map(|w| w[1].0.since(w[0].0).as_secs_f64()).collect()
    }
}

const fn at(seconds: u64) -> Instant {
    Instant(seconds * 1_000_000_000)
}

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).unwrap()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// 3 Mbit/s of 1000 B are a datagram every 2.666... ms, which is no whole number of nanoseconds: after 1000 s
/// none is missing.
#[test]
fn a_constant_rate_does_not_drift() {
    let mut net = Pair::new(1);
    net.stream(Pattern::Constant(rate(3_000_000)), 1000, at(2));
    net.run_until(at(1002));
    assert_eq!(net.sent.len(), 375_001, "from 2 s to 1002 s, both ends included");
    assert_eq!((net.sent[0].0, net.sent[375_000].0), (at(2), at(1002)));
    assert!(net.gaps().iter().all(|g| (*g - 8.0 / 3000.0).abs() < 2e-9));
    net.run_until(at(1002) + DELAY);
    let sink = net.hosts[1].sink(9).unwrap();
    assert_eq!((sink.received, sink.bytes, sink.lost()), (375_001, 375_001_000, 0));
    assert_eq!((sink.delay.min(), sink.mean_delay()), (Some(DELAY), Some(DELAY)));
}

/// A mean gap of 800 us: mean and variance of the gaps are those of the exponential distribution, within 4
/// standard errors.
#[test]
fn poisson_gaps_are_exponential() {
    let mut net = Pair::new(2);
    net.stream(Pattern::Poisson(rate(1_000_000)), 100, Instant::ZERO);
    net.run_until(at(160));
    let gaps = net.gaps();
    let (n, expected) = (gaps.len() as f64, 800e-6);
    let m = mean(&gaps);
    assert!((m / expected - 1.0).abs() < 4.0 / n.sqrt(), "mean {m} of {n}");
    let variance = mean(&gaps.iter().map(|g| (g - m) * (g - m)).collect::<Vec<_>>());
    // the variance of an exponential sample's variance is 8 / n of its square
    assert!((variance / (expected * expected) - 1.0).abs() < 4.0 * (8.0 / n).sqrt(), "variance {variance}");
    let above = gaps.iter().filter(|g| **g > expected).count() as f64 / n;
    let share = 1.0 / std::f64::consts::E;
    assert!((above - share).abs() < 4.0 * (share * (1.0 - share) / n).sqrt(), "{above} above the mean");
}

/// A datagram each millisecond in on-periods, a quarter of the time: with long on-periods, and with
/// on-periods of two datagrams on average, where a restart in each period would show. For exponential periods
/// the on-time during T has variance 2 on^2 off^2 T / (on + off)^3 (renewal reward).
#[test]
fn on_off_has_its_long_run_rate_and_no_drift() {
    for (on, off) in [(100.0_f64, 300.0), (2.0, 6.0)] {
        let mut net = Pair::new(3);
        let ms = |t: f64| Duration::from_micros((t * 1000.0) as u64);
        net.stream(Pattern::OnOff { rate: rate(8_000_000), on: ms(on), off: ms(off) }, 1000, Instant::ZERO);
        net.run_until(at(2000));
        let (sent, total) = (net.sent.len() as f64, 2_000_000.0);
        let spread = (2.0 * on * on * off * off * total / ((on + off) * (on + off) * (on + off))).sqrt();
        assert!((sent - total / 4.0).abs() < 4.0 * spread, "{sent} sent, standard deviation {spread}");
        let gaps = net.gaps();
        assert!(gaps.iter().all(|g| *g >= 1e-3 - 1e-12), "never faster than in a spell");
        // the number of off-periods between two datagrams is Poisson with mean x = 1 ms / on; x / (1 -
        // exp(-x)) if there is one
        let silences: Vec<f64> = gaps.iter().map(|g| g - 1e-3).filter(|g| *g > 1e-9).collect();
        let expected = off / 1000.0 * if on > 50.0 { 1.005 } else { 1.2707 };
        let (n, m) = (silences.len() as f64, mean(&silences));
        // a sum of off-periods varies at most twice as much as one
        assert!((m / expected - 1.0).abs() < 4.0 * 1.5 / n.sqrt(), "mean silence {m} of {n}, {expected}");
    }
}

/// Two streams of one seed are equal, those of another are not.
#[test]
fn a_stream_repeats_with_its_seed() {
    let times = |seed| {
        let mut net = Pair::new(seed);
        net.stream(Pattern::Poisson(rate(100_000)), 100, Instant::ZERO);
        net.run_until(at(5));
        net.sent.iter().map(|s| s.0).collect::<Vec<_>>()
    };
    assert_eq!(times(4), times(4));
    assert_ne!(times(4), times(5));
}

fn datagram(number: u64, sent: Instant, from: (Addr, u16), to: (Addr, u16)) -> Packet {
    let mut p = Packet { src: from.0, sport: from.1, dst: to.0, dport: to.1, hops: 9, ..Packet::default() };
    p.set_datagram(number, sent, 50);
    p.seal();
    p
}

/// Counters of a sink after numbers 0, 2, 3, 1, 3, then a jump to a million, and then one from long ago.
#[test]
fn a_sink_tells_lost_from_late_from_twice() {
    let mut net = Pair::new(1);
    let (from, to) = ((Addr(0), 7), (Addr(1), 9));
    net.hosts[1].receive_datagrams(9, from);
    let give = |net: &mut Pair, number| {
        let packet = datagram(number, net.now, from, to);
        net.handle(1, Input::Packet(Port(0), Box::new(packet)));
    };
    for number in [0, 2, 3, 1, 3] {
        give(&mut net, number);
    }
    let counts = |net: &Pair| {
        let s = net.hosts[1].sink(9).unwrap();
        (s.received, s.lost(), s.reordered, s.duplicates)
    };
    assert_eq!(counts(&net), (4, 0, 1, 1));
    give(&mut net, 1_000_000);
    assert_eq!(counts(&net), (5, 999_996, 1, 1));
    give(&mut net, 999_999);
    give(&mut net, 999_999);
    assert_eq!(counts(&net), (6, 999_995, 2, 2));
    give(&mut net, 5); // too old to know
    assert_eq!(counts(&net), (6, 999_995, 2, 3));
    assert_eq!(net.hosts[1].sink(9).unwrap().bytes, 300);
}

/// Datagrams without a sink are counted and not answered, whatever their headers say.
#[test]
fn hostile_datagrams_are_refused_in_silence() {
    let mut net = connected(Writer::Bulk);
    net.run_until(at(1));
    let before = net.hosts[1].end(80, (Addr(0), 5000)).unwrap().conn.received();
    let (peer, stranger) = ((Addr(0), 5000), (Addr(3), 5000));
    net.hosts[1].receive_datagrams(9, (Addr(0), 7));
    let mut packets = vec![
        datagram(0, net.now, peer, (Addr(1), 80)), // the port of a listener, the tuple of a connection
        datagram(0, net.now, peer, (Addr(1), 4444)), // a closed port
        datagram(0, net.now, stranger, (Addr(1), 9)), // not the sink's peer
        datagram(u64::MAX, net.now, (Addr(0), 7), (Addr(1), 9)), // no number follows
    ];
    let mut bare = datagram(0, net.now, (Addr(0), 7), (Addr(1), 9));
    bare.tcp.timestamps = None;
    packets.push(bare);
    let mut syn = datagram(0, net.now, stranger, (Addr(1), 80));
    syn.tcp.flags = Flags::SYN;
    packets.push(syn);
    let (n, sent) = (packets.len() as u64, net.sent.len());
    for packet in packets {
        net.handle(1, Input::Packet(Port(0), Box::new(packet)));
    }
    assert_eq!((net.hosts[1].refused, net.sent.len()), (n, sent));
    assert_eq!(net.hosts[1].end(80, (Addr(0), 5000)).unwrap().conn.received(), before);
    let sink = net.hosts[1].sink(9).unwrap();
    assert_eq!((sink.received, sink.lost(), sink.duplicates), (0, 0, 0));
    // and a segment to a port where only datagrams are received is reset
    let mut segment = datagram(0, net.now, (Addr(0), 7), (Addr(1), 9));
    segment.proto = Proto::Tcp;
    segment.tcp.flags = Flags::SYN;
    net.handle(1, Input::Packet(Port(0), Box::new(segment)));
    assert!(net.sent.last().unwrap().2.tcp.flags.has(Flags::RST));
}

/// A connection from port 5000 of one host to port 80 of the other.
fn connected(writer: Writer) -> Pair {
    let mut net = Pair::new(1);
    let config = Arc::new(Config { time_wait: Duration::from_secs(10), ..Config::default() });
    let listener = Listener { config, writer: Writer::Silent, reader: Reader::Eager };
    net.hosts[1].listen(80, listener);
    call(&mut net, Instant::ZERO, 5000, writer);
    net
}

fn call(net: &mut Pair, at: Instant, port: u16, writer: Writer) {
    let config = Arc::new(Config { time_wait: Duration::from_secs(10), ..Config::default() });
    let call = ConnectRequest { port, to: (Addr(1), 80), config, writer, reader: Reader::Eager };
    net.hosts[0].connect_at(&mut net.world.cx(net.now, NodeId(0)), at, call);
}

/// A copy of the SYN that arrives after the connection has closed opens one that is never established; the
/// counters shown stay those of the real one.
#[test]
fn a_late_syn_hides_no_counters() {
    let mut net = connected(Writer::Transfer(100_000));
    net.run_until(at(5));
    let seen = |net: &Pair| {
        let c = &net.hosts[1].end(80, (Addr(0), 5000)).unwrap().conn;
        (c.state(), c.received())
    };
    assert_eq!(seen(&net), (State::Closed, 100_000));
    let sent = net.sent.len();
    let syn = net.sent[0].2.clone();
    assert!(syn.tcp.flags.has(Flags::SYN));
    net.handle(1, Input::Packet(Port(0), Box::new(syn)));
    assert!(net.sent[sent].2.tcp.flags.has(Flags::SYN), "it is answered with SYN and ACK");
    assert_eq!(seen(&net), (State::Closed, 100_000), "while it is half open");
    net.run_until(at(60));
    let reset = net.sent[sent..].iter().any(|(_, _, p)| p.tcp.flags.has(Flags::RST));
    assert!(reset, "once TIME-WAIT is over, its peer knows nothing of it");
    assert_eq!(seen(&net), (State::Closed, 100_000), "when it was reset");
}

/// After TIME-WAIT the same two ports connect again and reuse the entry; until then the old counters remain.
#[test]
fn a_connection_that_is_over_makes_room_and_keeps_its_counters() {
    let mut net = connected(Writer::Transfer(100_000));
    call(&mut net, at(1), 5001, Writer::Bulk); // another connection stays open
    let seen = |net: &Pair, host: usize| {
        let (port, to) = if host == 0 { (5000, (Addr(1), 80)) } else { (80, (Addr(0), 5000)) };
        let c = &net.hosts[host].end(port, to).unwrap().conn;
        (c.state(), c.stats().bytes_acked.0, c.received())
    };
    net.run_until(at(5));
    assert_eq!(seen(&net, 0), (State::TimeWait, 100_000, 0));
    assert_eq!(seen(&net, 1), (State::Closed, 0, 100_000));
    net.run_until(at(20));
    assert_eq!(seen(&net, 0), (State::Closed, 100_000, 0));
    call(&mut net, at(21), 5000, Writer::Transfer(5));
    net.run_until(at(22));
    assert_eq!(seen(&net, 0), (State::TimeWait, 5, 0));
    assert_eq!(seen(&net, 1), (State::Closed, 0, 5));
    let other = |net: &Pair| net.hosts[1].end(80, (Addr(0), 5001)).unwrap().conn.received();
    let then = other(&net);
    net.run_until(at(23));
    assert!(other(&net) > then, "the other connection goes on");
}

/// A segment for a closed connection is answered with a RST (RFC 9293, section 3.10.7.1).
#[test]
fn late_segments_of_a_closed_connection_are_reset() {
    let mut net = connected(Writer::Transfer(1000));
    net.run_until(at(5));
    let data = net.sent.iter().find(|s| s.1 == 0 && s.2.body.len == 1000).unwrap().2.clone();
    let refused = net.hosts[1].refused;
    net.handle(1, Input::Packet(Port(0), Box::new(data)));
    assert_eq!(net.hosts[1].refused, refused + 1);
    let answer = &net.sent.last().unwrap().2;
    assert!(answer.tcp.flags.has(Flags::RST), "{answer:?}");
}
