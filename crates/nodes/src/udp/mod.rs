//! Datagrams of a host: sources that send without feedback, and sinks that measure arrivals.
//!
//! They have a table of their own, so that hosts with only TCP pay just one comparison.

mod pattern;
mod sink;

pub use pattern::{Departures, Pattern};
pub use sink::DatagramSink;

use bentpipe_base::{Addr, Cx, Instant, Packet, Port, RngSlot, Size};
use std::collections::BTreeMap;

/// Hops a datagram may take, as for TCP.
const HOPS: u8 = 64;
/// Largest payload of a datagram over IPv4.
const LARGEST: u64 = 65_507;

/// The datagrams that a source sends.
#[derive(Clone, Copy, Debug)]
pub struct DatagramStream {
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
pub struct DatagramSource {
    clock: Departures,
    next: Instant,
    /// Datagrams sent.
    pub sent: u64,
}

/// Sources and sinks by port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) sources: BTreeMap<u16, DatagramSource>,
    pub(crate) sinks: BTreeMap<u16, DatagramSink>,
}

impl Datagrams {
    /// Adds a source; returns when it must be called.
    pub(crate) fn send(&mut self, cx: &mut Cx<'_>, stream: &DatagramStream) -> Instant {
        assert!((1..=LARGEST).contains(&stream.size.0), "a datagram has 1 to {LARGEST} bytes");
        let mut clock = Departures::new(cx, stream);
        let next = clock.at(cx, 0);
        self.sources.insert(stream.port, DatagramSource { clock, next, sent: 0 });
        next
    }

    /// Sends the datagrams that are due from the source `local`; returns when the source must be called
    /// again.
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>, local: (Addr, u16)) -> Option<Instant> {
        let source = self.sources.get_mut(&local.1)?;
        let DatagramStream { to, size, .. } = source.clock.stream;
        let mut late = None;
        while source.next <= cx.now {
            let mut packet = cx.packet();
            (packet.src, packet.sport) = local;
            (packet.dst, packet.dport) = to;
            packet.hops = HOPS;
            packet.set_datagram(source.sent, cx.now, size.0 as u32);
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
        self.sinks.get_mut(&packet.dport).is_some_and(|sink| sink.take(now, packet))
    }
}
