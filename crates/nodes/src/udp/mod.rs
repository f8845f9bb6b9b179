//! Datagrams of a host: sources that send without feedback or at a rate that the network grants (`rated.rs`),
//! and sinks that measure arrivals and return what the network says.
//!
//! They have a table of their own, so that hosts with only TCP pay just one comparison.

mod pattern;
mod rated;
mod sink;

pub use bentpipe_advice::negotiation::WhenRefused;
pub use pattern::{Departures, Pattern};
pub use rated::DatagramRate;
pub use sink::DatagramSink;

use bentpipe_advice::negotiation::Permit;
use bentpipe_advice::tia1039;
use bentpipe_base::{Addr, Cx, Duration, Instant, IpVersion, Packet, Port, RngSlot, Size};
use bentpipe_tcp::RateView;
use rated::{Ends, Rated};
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
    /// When the next datagram is due by the pattern and what was put off.
    next: Instant,
    /// How much later than by the pattern.
    delayed: Duration,
    /// When it ends.
    until: Instant,
    /// The earliest wake-up requested and still pending.
    armed: Instant,
    /// The rate for which it asks.
    rated: Option<Box<Rated>>,
    /// Datagrams sent.
    pub sent: u64,
}

impl DatagramSource {
    /// The rate that it asked for, and what became of it; `None` if it does not ask.
    pub fn rate(&self) -> Option<RateView<'_>> {
        self.rated.as_ref()?.view()
    }

    /// Sends what is due from `local`; returns when the source must be called again.
    fn run(&mut self, cx: &mut Cx<'_>, local: (Addr, u16)) -> Option<Instant> {
        let DatagramStream { to, .. } = self.clock.stream;
        if cx.now >= self.armed {
            self.armed = Instant::NEVER;
        }
        self.control(cx, (local, to));
        while self.next <= cx.now && self.next < self.until {
            let permit = self.rated.as_mut().map_or(Permit::Plain, |rated| rated.permit(cx.now));
            match permit {
                Permit::Wait => {
                    // it asks again before it goes on
                    self.control(cx, (local, to));
                    break;
                }
                Permit::Never => {
                    self.put_off(Instant::NEVER);
                }
                Permit::Plain | Permit::At(_) => self.send(cx, (local, to), permit),
            }
        }
        let at = self.wake_at(cx.now);
        if at >= self.armed {
            return None;
        }
        self.armed = at;
        Some(at)
    }

    /// Sends the structures that are due.
    fn control(&mut self, cx: &mut Cx<'_>, ends: Ends) {
        let is_over = self.is_over(cx.now);
        if let Some(rated) = &mut self.rated
            && cx.now >= self.clock.stream.start
        {
            rated.control(cx, ends, is_over);
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// Sends one datagram.
    fn send(&mut self, cx: &mut Cx<'_>, (from, to): Ends, permit: Permit) {
        let now = cx.now;
        let mut packet = cx.packet();
        (packet.src, packet.sport) = from;
        (packet.dst, packet.dport) = to;
        packet.hops = HOPS;
        packet.ip = self.rated.as_ref().map_or(IpVersion::V4, |rated| rated.ip());
        if let Permit::At(_) = permit {
            packet.dscp = tia1039::QOS_FLOW;
        }
        packet.set_datagram(self.sent, now, self.clock.stream.size.0 as u32);
        packet.seal();
        let size = packet.wire_len();
        cx.send(Port(0), packet);
        self.sent += 1;
        if self.rated.is_some() && now > self.next {
            // it was held back
            self.put_off(now);
        }
        self.next = self.clock.at(cx, self.sent) + self.delayed;
        if let Some(rated) = &mut self.rated {
            rated.note_sent(now);
            if let Permit::At(rate) = permit {
                self.put_off(now + rate.time_for(size));
            }
        }
    }

    /// Puts the next datagram off until `at`, if it is due before, and all later ones by as much.
    fn put_off(&mut self, at: Instant) {
        if at > self.next {
            self.delayed += at.since(self.next);
            self.next = at;
        }
    }

    /// When it has something to do next.
    fn wake_at(&self, now: Instant) -> Instant {
        let is_over = self.is_over(now);
        let data = if self.next < self.until { self.next } else { Instant::NEVER };
        let Some(rated) = &self.rated else { return data };
        let control = rated.control_at(is_over);
        let end = if is_over { Instant::NEVER } else { self.until };
        // while it waits for an answer, data that is due is not what wakes it
        let data = if data <= now { Instant::NEVER } else { data };
        data.min(control).min(end)
    }
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// There is nobody for it.
    Refused,
    /// A sink has taken it.
    Done,
    /// It is for the source at this port, which must be called.
    Source(u16),
}

/// Sources and sinks by port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) sources: BTreeMap<u16, DatagramSource>,
    pub(crate) sinks: BTreeMap<u16, DatagramSink>,
}

impl Datagrams {
    /// Adds a source that ends at `until`; returns when it must be called.
    pub(crate) fn send(
        &mut self,
        cx: &mut Cx<'_>,
        stream: &DatagramStream,
        until: Instant,
        rate: Option<&DatagramRate>,
    ) -> Instant {
        assert!((1..=LARGEST).contains(&stream.size.0), "a datagram has 1 to {LARGEST} bytes");
        let mut clock = Departures::new(cx, stream);
        let next = clock.at(cx, 0);
        let armed = if rate.is_some() { stream.start } else { next };
        let rated = rate.map(|rate| Box::new(Rated::new(rate)));
        let source = DatagramSource { clock, next, delayed: Duration::ZERO, until, armed, rated, sent: 0 };
        self.sources.insert(stream.port, source);
        armed
    }

    /// Sends the datagrams that are due from the source `local`; returns when the source must be called
    /// again, if it was not told so before.
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>, local: (Addr, u16)) -> Option<Instant> {
        self.sources.get_mut(&local.1)?.run(cx, local)
    }

    /// Takes a datagram to `local`.
    pub(crate) fn take(&mut self, cx: &mut Cx<'_>, local: Addr, packet: &Packet) -> Taken {
        let port = packet.dport;
        if packet.signal.is_some() && packet.body.len == 0 {
            return self.take_structures(cx, (local, port), packet);
        }
        let is_taken = self.sinks.get_mut(&port).is_some_and(|sink| sink.take(cx.now, packet));
        if is_taken { Taken::Done } else { Taken::Refused }
    }

    /// Takes a datagram that has structures and no data: the application does not see it.
    fn take_structures(&mut self, cx: &mut Cx<'_>, local: (Addr, u16), packet: &Packet) -> Taken {
        let from = (packet.src, packet.sport);
        if let Some(sink) = self.sinks.get_mut(&local.1) {
            return if sink.respond(cx, (local, from), packet) { Taken::Done } else { Taken::Refused };
        }
        let Some(source) = self.sources.get_mut(&local.1) else { return Taken::Refused };
        match &mut source.rated {
            Some(rated) if source.clock.stream.to == from => rated.hear(cx, (local, from), packet),
            _ => return Taken::Refused,
        }
        Taken::Source(local.1)
    }
}
