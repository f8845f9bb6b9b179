//! Listens to the trace of a run and collects RTT samples and the points of time-sequence plots.

use crate::exchange::{Exchange, ExchangeRecorder};
use crate::record::{Sequence, SequenceKind, SequencePoint};
use bentpipe_base::packet::Proto;
use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Flags, Instant, NodeId, Packet, Seq};
use std::collections::BTreeMap;

/// Maximum number of points of a time-sequence plot.
const MAX_POINTS: usize = 20_000;

/// A connection to record, and where its packets are seen at the sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FollowedFlow {
    /// Index of the flow.
    pub(crate) flow: usize,
    /// Address and port of the sender.
    pub(crate) from: (u32, u16),
    /// Address and port of the receiver.
    pub(crate) to: (u32, u16),
    /// Link that takes packets from the sender's host.
    pub(crate) out: NodeId,
    /// Link that delivers packets to the sender's host.
    pub(crate) back: NodeId,
}

/// Collects events between the sampling times.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Sum in milliseconds and number of RTT samples since the last call of `take_rtt`, by host and port.
    round_trips: BTreeMap<(NodeId, u16), (f64, u32)>,
    wants_round_trips: bool,
    followed: Vec<SequenceRecorder>,
    exchanges: Vec<ExchangeRecorder>,
}

#[derive(Debug, Default)]
struct SequenceRecorder {
    who: FollowedFlow,
    sequence: Sequence,
    /// Initial sequence number, known from the SYN on.
    isn: Option<Seq>,
    /// Window scale offered by each end.
    shift: [Option<u8>; 2],
    highest: u64,
    acked: u64,
    edge: u64,
}

impl Recorder {
    pub(crate) fn new(
        followed: &[FollowedFlow],
        exchanges: Vec<ExchangeRecorder>,
        round_trips: bool,
    ) -> Self {
        let start = |who: &FollowedFlow| SequenceRecorder {
            who: *who,
            sequence: Sequence { flow: who.flow, ..Sequence::default() },
            ..SequenceRecorder::default()
        };
        let followed = followed.iter().map(start).collect();
        Self { followed, exchanges, wants_round_trips: round_trips, ..Self::default() }
    }

    /// Mean RTT of a connection in milliseconds since the last call.
    pub(crate) fn take_rtt(&mut self, host: NodeId, port: u16) -> Option<f64> {
        let (sum, n) = self.round_trips.remove(&(host, port))?;
        Some(sum / f64::from(n))
    }

    pub(crate) fn sequences(&mut self) -> Vec<Sequence> {
        let mut all: Vec<Sequence> = self.followed.drain(..).map(|f| f.sequence).collect();
        // losses are reported later, with the time at which they happened
        for s in &mut all {
            s.points.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        }
        all
    }

    pub(crate) fn exchanges(&mut self) -> Vec<Exchange> {
        self.exchanges.drain(..).map(ExchangeRecorder::finish).collect()
    }
}

impl Sink for Recorder {
    fn mask(&self) -> Mask {
        let packets = !self.followed.is_empty() || !self.exchanges.is_empty();
        let wanted = |wanted, mask| if wanted { mask } else { Mask::default() };
        wanted(packets, Mask::PACKETS).with(wanted(self.wants_round_trips, Mask::ROUND_TRIPS))
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        if let Event::RoundTrip { port, rtt } = event {
            let (sum, n) = self.round_trips.entry((node, *port)).or_default();
            *sum += rtt.as_millis_f64();
            *n += 1;
            return;
        }
        self.followed.iter_mut().for_each(|follower| follower.event(now, node, event));
        self.exchanges.iter_mut().for_each(|follower| follower.event(now, node, event));
    }
}

impl SequenceRecorder {
    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        let FollowedFlow { from, to, out, back, .. } = self.who;
        match event {
            Event::Sent(p) if node == out && is_between(p, from, to) => self.sent(now, p),
            Event::Delivered(p) if node == back && is_between(p, to, from) => self.acknowledged(now, p),
            Event::Dropped(p, _) if is_between(p, from, to) && p.body.len > 0 => {
                self.point(now, p.body.off, SequenceKind::Dropped);
            }
            _ => {}
        }
    }

    fn sent(&mut self, now: Instant, p: &Packet) {
        if p.tcp.flags.has(Flags::SYN) {
            self.isn = Some(p.tcp.seq);
            self.shift[0] = p.tcp.window_scale;
        }
        if p.body.len == 0 {
            return;
        }
        let kind = if p.body.off < self.highest { SequenceKind::Resent } else { SequenceKind::Sent };
        self.highest = self.highest.max(p.body.off + u64::from(p.body.len));
        self.point(now, p.body.off, kind);
    }

    fn acknowledged(&mut self, now: Instant, p: &Packet) {
        let syn = p.tcp.flags.has(Flags::SYN);
        if syn {
            self.shift[1] = p.tcp.window_scale;
        }
        let Some(isn) = self.isn.filter(|_| p.tcp.flags.has(Flags::ACK)) else { return };
        // the SYN takes one sequence number; offsets count bytes
        let Some(acked) = isn.offset_near(p.tcp.ack, self.acked + 1).and_then(|a| a.checked_sub(1)) else {
            return;
        };
        let shift = match self.shift {
            [Some(_), Some(shift)] if !syn => shift,
            _ => 0,
        };
        let edge = acked + (u64::from(p.tcp.window) << shift);
        if acked > self.acked {
            self.acked = acked;
            self.point(now, acked, SequenceKind::Acknowledged);
        }
        if edge > self.edge {
            self.edge = edge;
            self.point(now, edge, SequenceKind::WindowEdge);
        }
    }

    fn point(&mut self, now: Instant, offset: u64, kind: SequenceKind) {
        if self.sequence.points.len() < MAX_POINTS {
            self.sequence.points.push(SequencePoint { time_s: now.as_secs_f64(), offset, kind });
        } else {
            self.sequence.omitted += 1;
        }
    }
}

/// True for segments of TCP from one address and port to another.
fn is_between(p: &Packet, from: (u32, u16), to: (u32, u16)) -> bool {
    p.proto == Proto::Tcp && (p.src.0, p.sport) == from && (p.dst.0, p.dport) == to
}
