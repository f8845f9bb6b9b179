//! Datagrams of a host: sources that send without feedback, and sinks that measure arrivals.
//!
//! They have a table of their own, so that hosts with only TCP pay just one comparison.

mod pattern;
mod sink;

pub use pattern::{Departures, Pattern};
pub use sink::Sink;

use bentpipe_base::{Addr, Cx, Instant, Packet, Port, Rate, RngSlot, Size};
use std::collections::BTreeMap;

/// Hops a datagram may take, as for TCP.
const HOPS: u8 = 64;
/// Largest payload of a datagram over IPv4.
const LARGEST: u64 = 65_507;

/// What a source sends.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Our port.
    pub port: u16,
    /// The peer's address and port.
    pub to: (Addr, u16),
    /// Payload of each datagram: 1 to 65507 B.
    pub size: Size,
    /// When it sends.
    pub pattern: Pattern,
    /// Random stream; not used by a constant rate.
    pub rng: RngSlot,
    /// When it begins.
    pub start: Instant,
}

/// Sends datagrams.
#[derive(Clone, Debug)]
pub struct Source {
    to: (Addr, u16),
    size: u32,
    clock: Departures,
    next: Instant,
    sent: u64,
}

impl Source {
    /// Datagrams sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }
}

/// Sources and sinks by port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) sources: BTreeMap<u16, Source>,
    pub(crate) sinks: BTreeMap<u16, Sink>,
}

impl Datagrams {
    /// Adds a source; returns when it must be called.
    pub(crate) fn send(&mut self, cx: &mut Cx<'_>, stream: &Stream) -> Instant {
        assert!((1..=LARGEST).contains(&stream.size.0), "a datagram has 1 to {LARGEST} bytes");
        let size = stream.size.0 as u32;
        let mut clock = Departures::new(cx, stream);
        let next = clock.at(cx, 0);
        self.sources.insert(stream.port, Source { to: stream.to, size, clock, next, sent: 0 });
        next
    }

    /// Sends what is due from `port`; returns when the source must be called again.
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>, local: (Addr, u16)) -> Option<Instant> {
        let source = self.sources.get_mut(&local.1)?;
        let mut late = None;
        while source.next <= cx.now {
            let mut packet = cx.packet();
            (packet.src, packet.sport) = local;
            (packet.dst, packet.dport) = source.to;
            packet.hops = HOPS;
            packet.set_datagram(source.sent, cx.now, source.size);
            packet.seal();
            cx.send(Port(0), packet);
            source.sent += 1;
            source.next = source.clock.at(cx, source.sent);
            late = Some(source.next);
        }
        late // `None` after an early or duplicate wake-up
    }

    /// Takes a datagram; false if there is no sink for it.
    pub(crate) fn take(&mut self, now: Instant, packet: &Packet) -> bool {
        let Some(sink) = self.sinks.get_mut(&packet.dport) else { return false };
        sink.take(now, packet)
    }
}

/// Bytes of `n` datagrams of `size`.
const fn bytes(size: Size, n: u64) -> Size {
    Size(size.0.saturating_mul(n))
}

/// Exact time from the first datagram to datagram `n` of `size` at `rate`.
fn due(rate: Rate, size: Size, n: u64) -> bentpipe_base::Duration {
    rate.time_for(bytes(size, n))
}
