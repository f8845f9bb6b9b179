//! Under random loss, duplication and reordering in both directions no byte is lost, duplicated or misplaced,
//! and every connection ends: for every kind of loss detection, window reduction and window growth.
//!
//! The test drives both ends: it copies real bytes on `transmit`, writes them where the sequence number says,
//! and compares what the engine reports as readable with what was sent. So it notices a segment in the wrong
//! place, a byte reported that never arrived, and a FIN reported too early.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_base::{Addr, Duration, Instant, NodeId, Packet, Purpose, Rng, Seq, Size, World};
use bentpipe_tcp::{
    Config, Connection, DelayedAck, Detection, EcnUse, Event, Growth, Jitter, JitterKind, Offer, Options,
    RandomValues, ReceiveBuffer, RecoveryParams, Reduction, Scheme, Stack, State, Tuple, Validation,
};
use std::sync::Arc;

/// Impairments of the path.
#[derive(Clone, Copy, Debug)]
struct Weather {
    loss: f64,
    duplicate: f64,
    /// Delay is 20 ms plus a random time up to this, which reorders packets.
    spread: Duration,
}

/// One end: its connection, bytes to send, and bytes received.
struct End {
    world: World,
    conn: Option<Connection>,
    isn: Seq,
    source: Vec<u8>,
    written: usize,
    /// Received bytes by position; `None` where none has arrived.
    arrived: Vec<Option<u8>>,
    read: usize,
    peer_closed: bool,
    ended: Option<Event>,
}

impl End {
    fn new(seed: u64, bytes: usize) -> Self {
        let mut rng = Rng::new(seed, "content", Purpose::Jitter);
        Self {
            world: World::new(seed),
            conn: None,
            isn: Seq(rng.bits() as u32),
            source: (0..bytes).map(|_| rng.bits() as u8).collect(),
            written: 0,
            arrived: Vec::new(),
            read: 0,
            peer_closed: false,
            ended: None,
        }
    }
}

/// A packet in flight: arrival time, receiving end, header and bytes.
type Flight = (Instant, u64, usize, Packet, Vec<u8>);

struct Storm {
    now: Instant,
    ends: [End; 2],
    sky: Sky,
    config: Arc<Config>,
}

/// The path: packets in flight and the random numbers for its impairments.
struct Sky {
    flights: Vec<Flight>,
    rng: Rng,
    weather: Weather,
    sequence: u64,
}

impl Sky {
    /// Sends a packet to end `to`: it is lost, or arrives once or twice, each copy with its own delay.
    fn fly(&mut self, now: Instant, to: usize, packet: &Packet, bytes: &[u8]) {
        let copies = match self.rng.unit() {
            u if u < self.weather.loss => 0,
            u if u < self.weather.loss + self.weather.duplicate => 2,
            _ => 1,
        };
        for _ in 0..copies {
            self.sequence += 1;
            let at = now + Duration::from_millis(20) + self.rng.up_to(self.weather.spread);
            self.flights.push((at, self.sequence, to, packet.clone(), bytes.to_vec()));
        }
    }
}

const ADDRESSES: [(Addr, u16); 2] = [(Addr(1), 1000), (Addr(2), 2000)];

impl Storm {
    fn new(seed: u64, config: Config, weather: Weather, bytes: [usize; 2]) -> Self {
        let mut ends = [End::new(seed, bytes[0]), End::new(seed ^ 0xffff, bytes[1])];
        let config = Arc::new(config);
        let tuple = Tuple { local: ADDRESSES[0], remote: ADDRESSES[1] };
        let chance = chance(&mut ends[0]);
        let cx = ends[0].world.cx(Instant::ZERO, NodeId(0));
        let client = Connection::connect(&cx, tuple, Arc::clone(&config), chance);
        ends[0].conn = Some(client);
        let rng = Rng::new(seed, "weather", Purpose::Errors);
        Self { now: Instant::ZERO, ends, sky: Sky { flights: Vec::new(), rng, weather, sequence: 0 }, config }
    }

    /// Runs the applications, then sends everything that may be sent.
    fn pump(&mut self, i: usize) {
        let now = self.now;
        let source_len = self.ends[1 - i].source.len();
        let end = &mut self.ends[i];
        let Some(conn) = &mut end.conn else { return };
        if conn.state().synchronised() || conn.state() == State::SynReceived {
            end.written += conn.write((end.source.len() - end.written) as u64) as usize;
            if end.written == end.source.len() && conn.state().synchronised() {
                conn.close();
            }
        }
        // the application reads a random part of what is readable
        let readable = conn.readable() as usize;
        let take = (self.sky.rng.unit() * (readable as f64 + 1.0)) as usize;
        conn.consume(now, take as u64);
        end.read += take;
        assert!(end.read <= source_len, "no byte is duplicated");
        while let Some(event) = conn.event() {
            match event {
                Event::PeerClosed => end.peer_closed = true,
                Event::Established => {}
                other => end.ended = Some(other),
            }
        }
        while let Some(packet) = conn.transmit(&mut end.world.cx(now, NodeId(0))) {
            let (off, len) = (packet.body.off as usize, packet.body.len as usize);
            let bytes = end.source[off.min(end.source.len())..(off + len).min(end.source.len())].to_vec();
            assert_eq!(bytes.len(), len, "no segment reaches beyond what was written");
            self.sky.fly(now, 1 - i, &packet, &bytes);
        }
    }

    fn deliver(&mut self, flight: Flight) {
        let (_, _, to, packet, bytes) = flight;
        let peer_isn = self.ends[1 - to].isn;
        let end = &mut self.ends[to];
        let mut cx = end.world.cx(self.now, NodeId(0));
        match &mut end.conn {
            None => {
                let Some(offer) = Offer::new(&packet, Arc::clone(&self.config)) else { return };
                let chance = chance(end);
                let mut cx = end.world.cx(self.now, NodeId(0));
                end.conn = Some(offer.complete(&mut cx, chance));
            }
            Some(conn) => {
                // writes the bytes where the header says, like a host with its receive ring
                let position = packet.tcp.seq.0.wrapping_sub(peer_isn.0).wrapping_sub(1) as usize;
                if !bytes.is_empty() && position < 1 << 30 {
                    let needed = position + bytes.len();
                    if end.arrived.len() < needed {
                        end.arrived.resize(needed, None);
                    }
                    for (place, byte) in end.arrived[position..].iter_mut().zip(&bytes) {
                        *place = Some(*byte);
                    }
                }
                conn.segment(&mut cx, &packet);
            }
        }
    }

    /// What the engine reports as readable must be what the peer wrote.
    fn check_content(&self) {
        for i in 0..2 {
            let (end, source) = (&self.ends[i], &self.ends[1 - i].source);
            let Some(conn) = &end.conn else { continue };
            let claimed = end.read + conn.readable() as usize;
            for (position, byte) in source.iter().enumerate().take(claimed) {
                assert_eq!(end.arrived[position], Some(*byte), "end {i}, byte {position}");
            }
            if end.peer_closed {
                assert_eq!(claimed, source.len(), "a FIN is reported after the last byte, not before");
            }
        }
    }

    fn is_over(&self) -> bool {
        self.ends
            .iter()
            .all(|e| e.conn.as_ref().is_some_and(|c| matches!(c.state(), State::Closed | State::TimeWait)))
    }

    fn run(&mut self) {
        self.pump(0);
        for _ in 0..400_000 {
            if self.is_over() {
                break;
            }
            self.step();
        }
        self.check_content();
        for i in 0..2 {
            let end = &self.ends[i];
            let state = end.conn.as_ref().map(Connection::state);
            assert!(
                matches!(state, Some(State::Closed | State::TimeWait)),
                "end {i} did not end: {state:?} at {}, {} of {} read, next {:?}",
                self.now,
                end.read,
                self.ends[1 - i].source.len(),
                self.ends[i].conn.as_ref().and_then(Connection::next_timer)
            );
        }
        for i in 0..2 {
            let (end, all) = (&self.ends[i], self.ends[1 - i].source.len());
            let readable = end.conn.as_ref().map_or(0, |c| c.readable() as usize);
            assert!(!matches!(end.ended, Some(Event::Reset | Event::TimedOut)), "end {i}: {:?}", end.ended);
            assert_eq!(end.read + readable, all, "no byte is lost");
        }
    }

    fn step(&mut self) {
        let deadline = |e: &End| e.conn.as_ref().map_or(Instant::NEVER, Connection::deadline);
        let timer = deadline(&self.ends[0]).min(deadline(&self.ends[1]));
        let first =
            (0..self.sky.flights.len()).min_by_key(|i| (self.sky.flights[*i].0, self.sky.flights[*i].1));
        let arrival = first.map_or(Instant::NEVER, |i| self.sky.flights[i].0);
        // an application that reads late must run from time to time
        let next = timer.min(arrival).min(self.now + Duration::from_millis(50));
        assert!(next >= self.now, "a deadline lies in the past: {next} at {}", self.now);
        self.now = next;
        if let Some(i) = first.filter(|_| arrival <= next) {
            let flight = self.sky.flights.swap_remove(i);
            self.deliver(flight);
        }
        for i in 0..2 {
            let end = &mut self.ends[i];
            if let Some(conn) = &mut end.conn {
                conn.timer(&mut end.world.cx(next, NodeId(0)));
            }
            self.pump(i);
        }
    }
}

fn chance(end: &mut End) -> RandomValues {
    let jitter = Some(end.world.open_rng("storm", Purpose::Jitter));
    RandomValues { isn: end.isn, timestamp: end.isn.0 ^ 0x5555, jitter }
}

/// Every law in the table of schemes, once.
fn growths() -> Vec<Growth> {
    let mut growths: Vec<Growth> = Vec::new();
    for scheme in Scheme::all() {
        if !growths.contains(&scheme.growth) {
            growths.push(scheme.growth);
        }
    }
    growths
}

/// Random host options: each may be absent.
fn config(rng: &mut Rng, scheme: Scheme) -> Config {
    let mut yes = || rng.unit() < 0.5;
    let (scale, auto) = (yes(), yes());
    let buffer = if auto {
        ReceiveBuffer::Auto { initial: Size(8_000), max: Size(if scale { 200_000 } else { 60_000 }) }
    } else {
        ReceiveBuffer::Fixed(Size(if scale { 100_000 } else { 20_000 }))
    };
    Config {
        scheme,
        mss: if yes() { 536 } else { 1000 },
        send_buffer: yes().then_some(Size(30_000)),
        receive_buffer: buffer,
        delayed_ack: yes().then_some(DelayedAck { count: 2, timeout: Duration::from_millis(40) }),
        nagle: yes(),
        options: Options { mss: yes(), window_scale: scale, sack: yes(), timestamps: yes() },
        initial_window: if yes() { 2 } else { 10 },
        limited_transmit: yes(),
        validation: if yes() { Validation::Validate } else { Validation::Restart },
        pacing: yes(),
        ecn: if yes() { EcnUse::Request } else { EcnUse::AcceptOnly },
        jitter: yes().then_some(Jitter { max: Duration::from_millis(2), kind: JitterKind::Opportunity }),
        time_wait: Duration::from_secs(240),
        rto: bentpipe_tcp::RtoConfig { min: Duration::from_millis(200), ..Default::default() },
        ..Config::default()
    }
}

fn storm_over(detection: Detection, seeds: core::ops::Range<u64>) {
    storm_of(Stack::Rfc, detection, seeds);
}

fn storm_of(stack: Stack, detection: Detection, seeds: core::ops::Range<u64>) {
    for reduction in [Reduction::AtOnce, Reduction::RateHalving, Reduction::Prr] {
        for growth in growths() {
            for seed in seeds.clone() {
                let mut rng =
                    Rng::new(seed, &format!("{detection:?}{reduction:?}{growth:?}"), Purpose::Start);
                let recovery = RecoveryParams { detection, reduction, frto: rng.unit() < 0.5 };
                let scheme = Scheme { name: "cubic", recovery, growth };
                let weather = Weather {
                    loss: 0.15 * rng.unit(),
                    duplicate: 0.1 * rng.unit(),
                    spread: Duration::from_millis((40.0 * rng.unit()) as u64),
                };
                let config = Config { stack, ..config(&mut rng, scheme) };
                let mut size = || (rng.unit() * rng.unit() * 80_000.0) as usize;
                let bytes = [size(), size()];
                let told = format!(
                    "{stack:?} {detection:?} {reduction:?} {growth:?} seed {seed} {weather:?} {bytes:?} {config:?}"
                );
                let outcome = std::panic::catch_unwind(|| Storm::new(seed, config, weather, bytes).run());
                assert!(outcome.is_ok(), "failed: {told}");
            }
        }
    }
}

#[test]
fn reno_survives_the_storm() {
    storm_over(Detection::Reno, 0..100);
}

#[test]
fn newreno_survives_the_storm() {
    storm_over(Detection::NewReno, 0..100);
}

#[test]
fn vegas_early_retransmission_survives_the_storm() {
    storm_over(Detection::Vegas, 0..100);
}

#[test]
fn sack_survives_the_storm() {
    storm_over(Detection::Sack, 0..100);
}

#[test]
fn a_linux_host_survives_the_storm() {
    for detection in [Detection::Rack, Detection::NewReno, Detection::Sack, Detection::Reno] {
        storm_of(Stack::Linux, detection, 0..50);
    }
}

#[test]
fn rack_survives_the_storm() {
    storm_over(Detection::Rack, 0..100);
}
