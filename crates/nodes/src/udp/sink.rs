//! Receives datagrams and measures number, delay, duplicates, reordering and loss.
//!
//! A datagram is out of order when one with a higher number came before it (RFC 4737, section 3.3), and lost
//! when one with a higher number came and it never does. A window of numbers distinguishes duplicates from
//! late datagrams; a datagram older than the window counts as a duplicate, as in a replay window (RFC 4303,
//! section 3.4.3).

use super::rated::{Ends, send};
use bentpipe_advice::negotiation::{AskConfig, Negotiation};
use bentpipe_advice::tia1039::structures;
use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Addr, Cx, Duration, Instant, IpVersion, Packet, Rate};

/// Duplicates are detected among this many numbers, up to the highest one received.
const WINDOW: u64 = 4096;
const WORDS: usize = (WINDOW / 64) as usize;

/// Receives the datagrams of one peer.
#[derive(Clone, Debug)]
pub struct DatagramSink {
    peer: (Addr, u16),
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Arrivals of datagrams that had arrived before.
    pub duplicates: u64,
    /// Arrivals after one with a higher number.
    pub reordered: u64,
    /// One more than the highest number.
    next: u64,
    /// A bit for each number in the window.
    seen: [u64; WORDS],
    /// One-way delays.
    pub delay: Histogram,
    total: Sum,
    /// Delays since the last [`DatagramSink::take_recent_delay`].
    recent: Sum,
    /// Returns what the network says, if this end signals.
    responder: Option<Box<Negotiation>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    nanoseconds: u128,
    count: u64,
}

impl Sum {
    fn add(&mut self, delay: Duration) {
        self.nanoseconds += u128::from(delay.0);
        self.count += 1;
    }
    fn mean(self) -> Option<Duration> {
        (self.count > 0).then(|| Duration((self.nanoseconds / u128::from(self.count)) as u64))
    }
}

impl DatagramSink {
    /// Receives from `peer` only.
    pub fn new(peer: (Addr, u16)) -> Self {
        Self {
            peer,
            received: 0,
            bytes: 0,
            duplicates: 0,
            reordered: 0,
            next: 0,
            seen: [0; WORDS],
            delay: Histogram::default(),
            total: Sum::default(),
            recent: Sum::default(),
            responder: None,
        }
    }

    /// From now on it returns what the network says about rates. It takes at most `take`.
    pub fn signal(&mut self, take: Option<Rate>, ip: IpVersion) {
        let config = AskConfig { take, ..AskConfig::default() };
        self.responder = Some(Box::new(Negotiation::new(config, ip)));
    }

    /// Returns the structures of a datagram; false if it is not from our peer, or this end does not signal.
    pub(super) fn respond(&mut self, cx: &mut Cx<'_>, ends: Ends, packet: &Packet) -> bool {
        if ends.1 != self.peer {
            return false;
        }
        let Some(responder) = &mut self.responder else { return false };
        for structure in structures(packet).as_slice() {
            if let Some(response) = responder.respond(cx.now, *structure) {
                send(cx, ends, packet.ip, response);
            }
        }
        true
    }

    /// Takes a datagram; false if it is not from our peer, or carries no number and time.
    pub fn take(&mut self, now: Instant, packet: &Packet) -> bool {
        if (packet.src, packet.sport) != self.peer {
            return false;
        }
        let Some((number, sent)) = packet.datagram() else { return false };
        let Some(after) = number.checked_add(1) else { return false };
        if after > self.next {
            for skipped in self.next.max(after.saturating_sub(WINDOW))..after {
                self.mark(skipped, false);
            }
            self.next = after;
        } else if self.next - number > WINDOW || self.is_marked(number) {
            self.duplicates += 1;
            return true;
        } else {
            self.reordered += 1;
        }
        self.mark(number, true);
        self.received += 1;
        self.bytes += u64::from(packet.body.len);
        let delay = now.since(sent);
        self.delay.record(delay);
        self.total.add(delay);
        self.recent.add(delay);
        true
    }

    fn mark(&mut self, number: u64, seen: bool) {
        let (word, bit) = ((number % WINDOW / 64) as usize, 1 << (number % 64));
        if seen { self.seen[word] |= bit } else { self.seen[word] &= !bit }
    }

    fn is_marked(&self, number: u64) -> bool {
        self.seen[(number % WINDOW / 64) as usize] & 1 << (number % 64) != 0
    }

    /// Datagrams that are missing up to the highest number received.
    pub const fn lost(&self) -> u64 {
        self.next - self.received
    }
    /// Mean of the one-way delays; `None` if there are none.
    pub fn mean_delay(&self) -> Option<Duration> {
        self.total.mean()
    }
    /// Mean of the one-way delays since the last call; `None` if nothing arrived.
    pub fn take_recent_delay(&mut self) -> Option<Duration> {
        std::mem::take(&mut self.recent).mean()
    }
}
