//! What the checks keep of a run.

use bentpipe_base::packet::Proto;
use bentpipe_base::trace::{DropCause, Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId};
use bentpipe_report::{FlowReport, Metric, Report, Unit};
use bentpipe_sim::Record;

/// Name of the link that the checks look at.
pub(crate) const BOTTLENECK: &str = "bottleneck";

/// Results kept of a run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// Its report, without the access links of a dumbbell.
    pub report: Report,
    /// The time series, if the job is recorded.
    pub record: Option<Record>,
    /// Dropped data packets in order of time, if the job is recorded.
    pub drops: Vec<Dropped>,
}

/// A data packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropped {
    /// Time, s.
    pub time_s: f64,
    /// Cause.
    pub cause: DropCause,
    /// Stream offset of its payload, or the number of the datagram.
    pub offset: u64,
    /// The same for the packet that follows it in the stream.
    pub next_offset: u64,
}

impl RunResult {
    /// The results of `report`.
    pub fn of(mut report: Report) -> Self {
        report.links.retain(|l| !l.name.contains("-access"));
        Self { report, record: None, drops: Vec::new() }
    }

    /// A metric in B/s, s or its own unit; NaN if the run does not have it.
    pub fn metric(&self, text: &str) -> f64 {
        let figure = |metric: Metric| Some((metric.of(&self.report).ok()??, metric.unit()));
        match Metric::parse(text).ok().and_then(figure) {
            Some((bps, Unit::Rate)) => bps / 8.0,
            Some((ms, Unit::Milliseconds)) => ms / 1e3,
            Some((value, _)) => value,
            None => f64::NAN,
        }
    }

    /// For each flow whose congestion control fell back to another: data segments sent before that.
    pub fn fallbacks(&self) -> impl Iterator<Item = u64> {
        let fallback = |f: &FlowReport| Some(f.tcp()?.fallback.as_ref()?.after_segments);
        self.report.flows.iter().filter_map(fallback)
    }
}

/// A trace sink that records dropped data packets.
#[derive(Debug, Default)]
pub(crate) struct Drops(pub(crate) Vec<Dropped>);

impl Sink for Drops {
    fn mask(&self) -> Mask {
        Mask::PACKETS
    }

    fn event(&mut self, now: Instant, _: NodeId, event: &Event<'_>) {
        if let Event::Dropped(packet, cause) = event
            && packet.body.len > 0
        {
            let (time_s, offset) = (now.as_secs_f64(), packet.body.off);
            let next_offset = match packet.proto {
                Proto::Tcp => offset + u64::from(packet.body.len),
                Proto::Udp => offset + 1,
                Proto::Opaque | Proto::Icmp => return,
            };
            self.0.push(Dropped { time_s, cause: *cause, offset, next_offset });
        }
    }
}
