//! The two ends of a flow, with applications that write, read at once, compare each byte, and close.

use super::net::SITES;
use bentpipe_base::{Addr, Duration, Flags, Instant, IpVersion, Packet, Rate, Seq, Size, mix};
use bentpipe_tcp::{
    AskConfig, Config, Connection, Event, RandomValues, RateState, ReceiveBuffer, RtoConfig, Scheme,
    Signalling, State,
};
use std::sync::{Arc, OnceLock};

/// The port of the first flow at host A, and of all at host B.
pub(crate) const PORT: u16 = 1000;
/// The MSS option.
pub(crate) const MSS: u16 = 536;
/// Length of the pattern of which streams consist.
const PATTERN: usize = 65_521;
/// Bytes that a receiver keeps to compare: more than any window here.
const KEPT: usize = 1 << 17;

pub(crate) fn host_of(side: usize) -> Addr {
    Addr(1 + side as u32)
}

pub(crate) fn chance(isn: Seq) -> RandomValues {
    RandomValues { isn, timestamp: isn.0 ^ 0x5555, jitter: None }
}

/// A host that signals and asks for more than any router here gives.
pub(crate) fn host(ip: IpVersion) -> Config {
    let ask = AskConfig { ask: Rate::from_bps(10_000_000_000), ..AskConfig::default() };
    Config {
        scheme: Scheme::named("explicit-rate").unwrap(),
        mss: MSS,
        ip,
        receive_buffer: ReceiveBuffer::Fixed(Size(65_535)),
        signalling: Some(Signalling::new(ask)),
        rto: RtoConfig { min: Duration::from_millis(200), ..RtoConfig::default() },
        time_wait: Duration::from_secs(10),
        ..Config::default()
    }
}

/// Bytes from a position of a stream on; each stream begins somewhere else in the pattern.
fn stream(begin: usize, position: u64, len: usize) -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let most = usize::from(u16::MAX);
    let bytes = BYTES.get_or_init(|| (0..PATTERN + most).map(|i| mix((i % PATTERN) as u64) as u8).collect());
    let at = (begin as u64 + position) as usize % PATTERN;
    &bytes[at..at + len]
}

/// What has arrived at an end.
#[derive(Debug, Default)]
pub(crate) struct Content {
    bytes: Vec<u8>,
    /// Bytes read.
    pub(crate) read: u64,
    /// The first position at which another byte was read than was written.
    pub(crate) wrong: Option<u64>,
}

impl Content {
    /// Stores the bytes of a segment where its sequence number says.
    pub(crate) fn store(&mut self, from: &End, packet: &Packet) {
        let len = packet.body.len as usize;
        let position = u64::from(packet.tcp.seq.0.wrapping_sub(from.isn.0).wrapping_sub(1));
        // what was read is not read again
        if len == 0 || position + (len as u64) <= self.read || position > self.read + KEPT as u64 / 2 {
            return;
        }
        let size = KEPT.min(from.bytes as usize).max(1);
        self.bytes.resize(size, 0);
        let known = self.read.saturating_sub(position) as usize;
        let new = &stream(from.begin, packet.body.off, len)[known..];
        let at = (position as usize + known) % size;
        let (first, wrapped) = new.split_at(new.len().min(size - at));
        self.bytes[at..at + first.len()].copy_from_slice(first);
        self.bytes[..wrapped.len()].copy_from_slice(wrapped);
    }

    /// Reads bytes and compares them with what was written.
    fn read(&mut self, from: &End, mut len: u64) {
        while len > 0 {
            let size = self.bytes.len().max(1);
            let at = self.read as usize % size;
            let part = (size - at).min(len as usize).min(1000);
            let is_same = self.read + part as u64 <= from.bytes
                && self.bytes.get(at..at + part) == Some(stream(from.begin, self.read, part));
            if !is_same {
                self.wrong.get_or_insert(self.read);
            }
            self.read += part as u64;
            len -= part as u64;
        }
    }
}

/// One end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) config: Arc<Config>,
    pub(crate) conn: Option<Connection>,
    pub(crate) isn: Seq,
    /// Bytes that it sends.
    pub(crate) bytes: u64,
    /// Where its stream begins in the pattern.
    begin: usize,
    written: u64,
    pub(crate) content: Content,
    /// The earliest timer that was set.
    pub(crate) wake_at: Instant,
    pub(crate) failed: Option<Event>,
    /// When the connection ended.
    pub(crate) ended_at: Option<Instant>,
}

impl End {
    fn new(config: Arc<Config>, number: usize, bytes: u64) -> Self {
        let begin = mix(number as u64) as usize % PATTERN;
        Self {
            config,
            conn: None,
            isn: Seq((u32::MAX - 20_000).wrapping_add((number as u32) * 1000)),
            bytes,
            begin,
            written: 0,
            content: Content::default(),
            wake_at: Instant::NEVER,
            failed: None,
            ended_at: None,
        }
    }

    /// The application runs.
    pub(crate) fn apply(&mut self, now: Instant, peer: &Self) {
        let Some(conn) = &mut self.conn else { return };
        if self.written < self.bytes {
            self.written += conn.write(self.bytes - self.written);
        }
        if self.written == self.bytes && conn.state().synchronised() {
            conn.close();
        }
        if matches!(conn.state(), State::TimeWait | State::Closed) {
            self.ended_at.get_or_insert(now);
        }
        let readable = conn.readable();
        if readable > 0 {
            conn.consume(now, readable);
            self.content.read(peer, readable);
        }
        while let Some(event) = conn.event() {
            if !matches!(event, Event::Established | Event::PeerClosed | Event::Closed) {
                self.failed = Some(event);
            }
        }
    }
}

/// What of one direction of a flow has passed a site.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// When the last payload passed that could tell something; the beginning of time if only others have.
    pub(crate) payload: Option<Instant>,
    pub(crate) ended: bool,
}

impl Passed {
    pub(crate) fn note(&mut self, now: Instant, packet: &Packet) {
        // IPv6: into a packet without a structure a router cannot write
        if packet.body.len > 0 && (packet.ip == IpVersion::V4 || packet.signal.is_some()) {
            self.payload = Some(now);
        } else {
            self.payload.get_or_insert(Instant::ZERO);
        }
        self.ended |= packet.tcp.flags.has(Flags::FIN) || packet.tcp.flags.has(Flags::RST);
    }
}

/// A flow: side 0 opens it.
#[derive(Debug)]
pub(crate) struct Flow {
    /// It starts once the first flow has brought this many bytes; `None` if it has started.
    pub(crate) start_after: Option<u64>,
    /// Side 1 opens it at the same time.
    pub(crate) opens_at_once: bool,
    pub(crate) ends: [End; 2],
    /// By site and way.
    pub(crate) passed: [[Passed; 2]; SITES],
}

impl Flow {
    /// Flow `number` of hosts with this configuration; `bytes` are those that each side sends.
    pub(crate) fn new(config: &Arc<Config>, number: usize, start_after: u64, bytes: [u64; 2]) -> Self {
        let end = |side: usize| End::new(Arc::clone(config), 2 * number + side, bytes[side]);
        Self {
            start_after: Some(start_after),
            opens_at_once: false,
            ends: [end(0), end(1)],
            passed: Default::default(),
        }
    }

    /// The states of the rates of both ends.
    pub(crate) fn states(&self) -> impl Iterator<Item = RateState> {
        self.ends.iter().filter_map(|end| end.conn.as_ref()?.rate().map(|rate| rate.state))
    }

    /// An end, to be changed, and its peer.
    pub(crate) fn sides(&mut self, side: usize) -> (&mut End, &End) {
        let [zero, one] = &mut self.ends;
        if side == 0 { (zero, one) } else { (one, zero) }
    }
}
