//! What is kept of a run.

use bentpipe_base::packet::Proto;
use bentpipe_base::trace::{DropCause, Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId};
use bentpipe_report::{FlowReport, InstrumentReport, LinkReport, Metric, Report, Unit};
use bentpipe_sim::Record;

/// What is kept of a run.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its report, without the access links of a dumbbell.
    pub report: Report,
    /// What was seen during the run, of a job that is watched.
    pub record: Option<Record>,
    /// Drops of data on links, in order of time, of a job that is watched.
    pub drops: Vec<Dropped>,
}

/// A data packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropped {
    /// When, in seconds.
    pub time_s: f64,
    /// Why.
    pub cause: DropCause,
    /// First byte of its payload in the stream, or the datagram's number.
    pub place: u64,
    /// That of the packet after it.
    pub next: u64,
}

impl Observed {
    /// What `report` says.
    pub fn of(mut report: Report) -> Self {
        report.links.retain(|l| !l.name.contains("-access"));
        Self { report, record: None, drops: Vec::new() }
    }

    /// A metric in B/s, s or its own unit; not a number when the run does not have it.
    pub fn metric(&self, text: &str) -> f64 {
        let figure = |metric: Metric| Some((metric.of(&self.report).ok()??, metric.unit()));
        match Metric::parse(text).ok().and_then(figure) {
            Some((bps, Unit::Rate)) => bps / 8.0,
            Some((ms, Unit::Milliseconds)) => ms / 1e3,
            Some((value, _)) => value,
            None => f64::NAN,
        }
    }

    /// The direction of a link called `name`.
    pub fn link(&self, name: &str) -> Option<&LinkReport> {
        self.report.links.iter().find(|l| l.name == name)
    }

    /// The instrument called `name`.
    pub fn instrument(&self, name: &str) -> Option<&InstrumentReport> {
        self.report.instruments.iter().find(|i| i.name == name)
    }

    /// Data segments that the flows whose schemes fell back had sent before.
    pub fn fallbacks(&self) -> impl Iterator<Item = u64> {
        let fallback = |f: &FlowReport| Some(f.tcp()?.fallback.as_ref()?.after_segments);
        self.report.flows.iter().filter_map(fallback)
    }

    /// Mean goodput of the flows whose names begin with `prefix`, B/s; not a number without any.
    pub fn goodput_of(&self, prefix: &str) -> f64 {
        let fits = self.report.flows.iter().filter(|f| f.name.starts_with(prefix));
        bentpipe_stats::mean(&fits.map(|f| f.goodput_bps / 8.0).collect::<Vec<_>>())
    }
}

/// Listens for data packets that are dropped.
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
            let place = packet.body.off;
            let next = match packet.proto {
                Proto::Tcp => place + u64::from(packet.body.len),
                Proto::Udp => place + 1,
                Proto::Opaque => return,
            };
            self.0.push(Dropped { time_s: now.as_secs_f64(), cause: *cause, place, next });
        }
    }
}
