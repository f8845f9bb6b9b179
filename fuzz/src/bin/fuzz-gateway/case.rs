//! One random case, determined by a number: a gateway, conversations over a bad hop, and in some cases
//! forged or damaged packets.

use crate::host::{Host, Kind, Out};
use crate::mutate::{Random, mutate};
use crate::oracle::{InputRecord, Seg, before, cut, flag, read, seal, stream};
use crate::packet::build;
use crate::stage::{BEGIN, DataPath, Sent, Wire};
use bentpipe_base::{Rate, Size};
use bentpipe_gateway::{Config, Copies, Limits, Mode};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
/// A conversation that takes longer is stuck: its own timeouts are at most 32 s apart.
const LONGEST: u64 = 3_000_000 * MS;
/// Most events of a case; far fewer with hostile packets, since it may never end.
const EVENTS: [u32; 2] = [200_000, 4000];

/// Destination of a packet in transit.
enum To {
    /// The gateway, with the side of arrival.
    Gateway(usize, Wire),
    /// A host: conversation, side.
    Host(usize, usize, Box<Seg>),
}

/// What a path does to packets; probabilities in 1/1000.
#[derive(Clone, Copy, Debug)]
struct Path {
    delay: u64,
    loss: usize,
    twice: usize,
    late: usize,
}

/// The window advertised to a host by the other, in order of departure from the gateway.
#[derive(Clone, Copy, Debug, Default)]
struct AdvertisedWindow {
    scale: u8,
    /// Right edge; sequence and acknowledgment number that set it (RFC 9293: SND.WL1, SND.WL2).
    edge: Option<(u32, u32, u32)>,
}

/// Result of a case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Units that came in.
    pub(crate) units: u64,
    /// Disturbances: hostile packets or floods.
    pub(crate) mutated: u64,
    /// Units that the gateway edited, and their packets.
    pub(crate) edited: (u64, u64),
    /// Conversations that ended with all their bytes.
    pub(crate) finished: u64,
}

pub(crate) struct Case {
    random: Random,
    stage: DataPath,
    pairs: Vec<[Host; 2]>,
    advertised: Vec<[AdvertisedWindow; 2]>,
    on_the_way: BTreeMap<(u64, u64), To>,
    count: u64,
    paths: [Path; 2],
    /// Hostile packets per thousand units.
    hostile: usize,
    /// Packets that are damaged further.
    seeds: Vec<Vec<u8>>,
    /// What came in, by which the output is checked.
    book: InputRecord,
    tally: Tally,
    now: u64,
    /// True if all units in and out are printed.
    tells: bool,
}

fn config(random: &mut Random) -> Config {
    let mut one_in = |n: usize| random.below(n) == 0;
    let (strict, unknown, small, tight) = (one_in(4), one_in(4), one_in(8), one_in(8));
    let rate = 1_000_000 << random.below(9);
    let copies = if random.below(3) > 0 { Copies::Auto } else { Copies::Fixed(1 + random.below(4) as u8) };
    let mut limits = Limits::default();
    if small {
        limits.memory = Size(random.below(200_000) as u64);
    }
    if tight {
        (limits.flows, limits.opening, limits.passing) = (2, 2, 2);
    }
    Config {
        rate: if unknown { None } else { Rate::from_bps(rate) },
        framing: Size(14 * random.below(2) as u64),
        mode: if strict { Mode::Strict } else { Mode::Open },
        copies,
        limits,
        ..Config::default()
    }
}

fn kind(random: &mut Random, v6: bool, most: usize) -> Kind {
    let yes = |random: &mut Random| random.below(2) == 0;
    Kind {
        v6,
        stamps: yes(random),
        sack: yes(random),
        scale: yes(random).then(|| random.below(9) as u8),
        room: [65_280, 29_952, 17_408, 409_600, 2048][random.below(5)],
        says: random.below(most) as u32,
        burst: [1, 1, 4, 40][random.below(4)],
        partial: yes(random),
        delays: yes(random),
    }
}

impl Case {
    /// The case with this number; with `tells` it prints all units in and out.
    pub(crate) fn new(number: u64, tells: bool) -> Result<Self, String> {
        let mut random = Random::new(number);
        let config = config(&mut random);
        let stage = DataPath::new(config, number).map_err(|e| e.to_string())?;
        let hostile = if random.below(2) == 0 { 0 } else { 20 + random.below(300) };
        let path = |random: &mut Random, delay: usize, bad: usize| Path {
            delay: random.below(delay) as u64 * MS + 10_000,
            loss: random.below(bad),
            twice: random.below(bad / 2),
            late: random.below(bad / 2),
        };
        let paths = [path(&mut random, 20, 4), path(&mut random, 400, 120)];
        let pairs = (0..=random.below(3)).map(|i| {
            let v6 = random.below(2) == 0;
            let most = [1, 2000, 60_000, 200_000][random.below(4)];
            let back = [1, 1, 2000, 60_000][random.below(4)];
            let kinds = [kind(&mut random, v6, most), kind(&mut random, v6, back)];
            let ends = [(1, 1000 + random.below(60_000) as u16), (2, 10 + i as u16)];
            let isns = [random.word(), random.word()];
            let host =
                |side: usize| Host::new(kinds[side], ends[side], ends[1 - side], isns[side], hostile == 0);
            [host(0), host(1)]
        });
        let pairs: Vec<_> = pairs.collect();
        let told = vec![[AdvertisedWindow::default(); 2]; pairs.len()];
        Ok(Self {
            random,
            stage,
            pairs,
            advertised: told,
            on_the_way: BTreeMap::new(),
            count: 0,
            paths,
            hostile,
            seeds: Vec::new(),
            tells,
            book: InputRecord::default(),
            tally: Tally::default(),
            now: BEGIN,
        })
    }

    /// Runs the case to its end.
    pub(crate) fn run(mut self) -> Result<Tally, String> {
        for i in 0..self.pairs.len() {
            let opener = self.random.below(2);
            let out = self.pairs[i][opener].open(self.now);
            self.hosts_send(opener, out);
        }
        let (mut events, most) = (0, EVENTS[usize::from(self.hostile > 0)]);
        while !self.is_done() && self.now < BEGIN + LONGEST && events < most {
            events += 1;
            // a forged packet may leave a host waiting for ever
            if !self.step()? {
                break;
            }
        }
        let finished = self.pairs.iter().filter(|pair| pair.iter().all(Host::is_done)).count();
        if self.hostile == 0 && finished < self.pairs.len() {
            return Err(format!("stuck after {} ms: {:?}", (self.now - BEGIN) / MS, self.pairs));
        }
        // a normal stop: held packets leave at once, passing packets in their turn
        let sent = self.stage.release();
        self.gateway_sent(sent)?;
        let sent = self.stage.advance(self.now + 600_000 * MS);
        self.gateway_sent(sent)?;
        if !self.stage.is_empty() {
            return Err("something is kept after the end".to_owned());
        }
        self.tally.finished = finished as u64;
        self.tally.edited = self.book.edited;
        Ok(self.tally)
    }

    fn is_done(&self) -> bool {
        self.pairs.iter().flatten().all(Host::is_done)
    }

    /// Processes the next event; false if there is none.
    fn step(&mut self) -> Result<bool, String> {
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let hosts = self.pairs.iter().flatten().filter_map(Host::deadline).min();
        let next = [arrival, hosts, self.stage.next_at()].into_iter().flatten().min();
        let Some(next) = next else { return Ok(false) };
        self.now = self.now.max(next);
        let sent = self.stage.advance(self.now);
        self.gateway_sent(sent)?;
        if arrival.is_some_and(|at| at <= self.now)
            && let Some((_, to)) = self.on_the_way.pop_first()
        {
            return self.arrive(to).map(|()| true);
        }
        for i in 0..self.pairs.len() {
            for side in 0..2 {
                if self.pairs[i][side].deadline().is_some_and(|at| at <= self.now) {
                    let out = self.pairs[i][side].timer(self.now);
                    self.hosts_send(side, out);
                }
            }
        }
        Ok(true)
    }

    fn arrive(&mut self, to: To) -> Result<(), String> {
        match to {
            To::Gateway(side, wire) => {
                self.tally.units += 1;
                self.tell("in", side, &wire);
                self.book.note(side, &wire);
                let sent = self.stage.feed(side, self.now, wire.clone());
                self.gateway_sent(sent)?;
                if self.random.below(1000) < self.hostile {
                    self.disturb(side, &wire);
                }
                Ok(())
            }
            To::Host(i, side, seg) => {
                let acked = self.pairs[i][1 - side].acked;
                let out = self.pairs[i][side].receive(self.now, &seg, acked)?;
                self.hosts_send(side, out);
                Ok(())
            }
        }
    }

    fn put(&mut self, at: u64, to: To) {
        self.count += 1;
        self.on_the_way.insert((at, self.count), to);
    }

    /// Prints a unit in or out, for investigating a finding.
    fn tell(&self, what: &str, side: usize, wire: &Wire) {
        if !self.tells {
            return;
        }
        let us = (self.now - BEGIN) / 1000;
        match cut(wire).and_then(|packets| read(packets.first().ok_or("no packet")?)) {
            Ok(seg) => {
                let Seg { from, to, sport, dport, seq, ack, flags, window, scale, stamps, sack, .. } = &seg;
                let len = wire.bytes.len();
                eprintln!(
                    "{us} {what} {side}: {from}:{sport}>{to}:{dport} seq {seq} ack {ack} flags {flags:02x} window {window} unit {len} segment {} scale {scale:?} stamps {stamps:?} sack {sack:?}",
                    wire.vnet.gso_size
                );
            }
            Err(why) => eprintln!("{us} {what} {side}: {why}"),
        }
    }

    /// Arrival times over a path: none if lost, two if duplicated.
    fn arrival_times(&mut self, side: usize) -> Vec<u64> {
        let Path { delay, loss, twice, late } = self.paths[side];
        let mut times = Vec::new();
        if self.random.below(1000) >= loss {
            let more = if self.random.below(1000) < late { self.random.below(30) as u64 * MS } else { 0 };
            times.push(self.now + delay + more);
        }
        if self.random.below(1000) < twice {
            times.push(self.now + delay + 1);
        }
        times
    }

    fn hosts_send(&mut self, side: usize, out: Out) {
        for wire in out {
            for at in self.arrival_times(side) {
                self.put(at, To::Gateway(side, wire.clone()));
            }
        }
    }

    fn gateway_sent(&mut self, sent: std::io::Result<Sent>) -> Result<(), String> {
        for (side, wire) in sent.map_err(|e| format!("the path ended: {e}"))? {
            self.tell("out", side, &wire);
            for packet in self.book.check(side, &wire)? {
                // a receiver that verifies checksums discards damaged packets
                let Ok(seg) = read(&packet) else { continue };
                let is_for = |host: &Host| (host.own, host.other.1) == ((seg.to, seg.dport), seg.sport);
                let Some(i) = self.pairs.iter().position(|pair| is_for(&pair[side])) else { continue };
                self.edge(i, side, &seg)?;
                for at in self.arrival_times(side) {
                    self.put(at, To::Host(i, side, Box::new(seg.clone())));
                }
            }
        }
        Ok(())
    }

    /// Checks that a window's right edge, once advertised to a host, never moves left.
    fn edge(&mut self, i: usize, side: usize, seg: &Seg) -> Result<(), String> {
        let (host, told) = (&self.pairs[i][side], &mut self.advertised[i][side]);
        if self.hostile > 0 {
            return Ok(());
        }
        let is_syn = seg.has(flag::SYN);
        if is_syn {
            told.scale = host.scale_of(seg.scale);
        }
        if seg.has(flag::ACK) {
            let edge = seg.ack.wrapping_add(u32::from(seg.window) << if is_syn { 0 } else { told.scale });
            if let Some((old, seq, ack)) = told.edge {
                // RFC 9293, section 3.10.7.4: neither an older segment nor an older acknowledgment updates
                // the window
                if before(seg.seq, seq) || before(seg.ack, ack) {
                    return Ok(());
                }
                if before(edge, old) && !host.is_all(seg.ack) {
                    return Err(format!("the right edge moves from {old} left to {edge}: {seg:?}"));
                }
            }
            told.edge = Some((edge, seg.seq, seg.ack));
        }
        Ok(())
    }

    /// Adds a modified copy of a unit, a damaged one, or a flood.
    fn disturb(&mut self, side: usize, wire: &Wire) {
        self.tally.mutated += 1;
        let side = if self.random.below(4) == 0 { 1 - side } else { side };
        let at = self.now + self.random.below(4) as u64 * self.random.below(100) as u64 * MS;
        match self.random.below(8) {
            0 => self.flood(),
            1 | 2 => {
                let raw = self.raw(wire);
                self.put(at, To::Gateway(side, raw));
            }
            _ => {
                let Some(mut seg) = cut(wire).ok().and_then(|p| read(p.first()?).ok()) else { return };
                for _ in 0..=self.random.below(3) {
                    self.change(&mut seg);
                }
                seg.payload = stream(seg.sport, seg.dport, seg.first(), seg.payload.len());
                let size = [0, 0, 1, 100, 536, 1400][self.random.below(6)];
                let is_one =
                    seg.flags & (flag::SYN | flag::RST | flag::URG) > 0 || seg.payload.len() > 60_000;
                let size = if is_one { 0 } else { size };
                let longest = if size == 0 { 1380 } else { 60_000 };
                seg.payload.truncate(longest);
                let partial = self.random.below(2) == 0;
                self.put(at, To::Gateway(side, build(&seg, size, partial)));
            }
        }
    }

    /// A copy with changed bytes, in most cases with correct checksums again.
    fn raw(&mut self, wire: &Wire) -> Wire {
        let packet = cut(wire).unwrap_or_default().into_iter().next().unwrap_or_default();
        if self.seeds.len() < 64 {
            self.seeds.push(packet.clone());
        }
        let seeds = if self.random.below(2) == 0 { vec![packet] } else { self.seeds.clone() };
        let mut bytes = mutate(&mut self.random, &seeds);
        bytes.truncate(1500);
        // forged payload must not differ from the stream: correct it, or leave a wrong checksum
        let is_right = seal(&mut bytes).is_ok() && read(&bytes).is_ok();
        if let Some(seg) = read(&bytes).ok().filter(|_| is_right) {
            let said = stream(seg.sport, seg.dport, seg.first(), seg.payload.len());
            let from = bytes.len() - said.len();
            bytes[from..].copy_from_slice(&said);
            if seal(&mut bytes).is_err() || self.random.below(8) == 0 {
                let at = self.random.below(bytes.len());
                bytes[at] ^= 1 << self.random.below(8);
                if read(&bytes).is_ok() {
                    bytes.clear();
                }
            }
        }
        Wire { bytes, ..Wire::default() }
    }

    fn change(&mut self, seg: &mut Seg) {
        let near = |random: &mut Random| random.below(8000) as u32;
        let random = &mut self.random;
        match random.below(14) {
            0 => seg.seq = seg.seq.wrapping_add(near(random)),
            1 => seg.seq = seg.seq.wrapping_sub(near(random)),
            2 => seg.seq = random.word(),
            3 => seg.ack = seg.ack.wrapping_add(near(random)),
            4 => seg.ack = seg.ack.wrapping_sub(near(random)),
            5 => seg.ack = random.word(),
            6 => seg.flags ^= 1 << random.below(8),
            7 => seg.flags = random.byte(),
            8 => seg.window = random.word() as u16,
            9 => {
                let most = [2, 1400, 60_000][random.below(3)];
                seg.payload = vec![0; random.below(most)];
            }
            10 => seg.stamps = (random.below(2) == 0).then(|| (random.word(), random.word())),
            11 => {
                let base = seg.ack;
                let mut edge = || base.wrapping_add(near(random));
                seg.sack = (0..3).map(|_| (edge(), edge())).collect();
            }
            12 => {
                seg.flags =
                    [flag::SYN, flag::SYN | flag::ACK, flag::RST, flag::RST | flag::ACK][random.below(4)];
                seg.scale = (random.below(2) == 0).then(|| random.byte());
                seg.mss = (random.below(2) == 0).then(|| random.word() as u16);
                seg.sack_ok = random.below(2) == 0;
            }
            _ => {
                (seg.sport, seg.from) =
                    (seg.sport ^ random.below(3) as u16, seg.from ^ random.below(2) as u8);
            }
        }
        if seg.flags & flag::SYN == 0 {
            (seg.mss, seg.scale, seg.sack_ok) = (None, None, false);
        }
    }

    /// Many SYNs that are never completed.
    fn flood(&mut self) {
        for i in 0..self.random.below(60) {
            let (side, port) = (self.random.below(2), 1 + self.random.below(65_000) as u16);
            let syn = Seg {
                v6: self.random.below(2) == 0,
                from: self.random.byte(),
                to: self.random.byte(),
                sport: port,
                dport: 80,
                seq: self.random.word(),
                flags: flag::SYN,
                window: 1000,
                mss: Some(1460),
                ..Seg::default()
            };
            self.put(self.now + i as u64 * 1000, To::Gateway(side, build(&syn, 0, false)));
        }
    }
}
