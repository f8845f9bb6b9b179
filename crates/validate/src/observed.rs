//! What is kept of a run.

use bentpipe_base::packet::Proto;
use bentpipe_base::trace::{DropCause, Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId};
use bentpipe_sim::report::{FlowReport, InstrumentReport, LinkReport};
use bentpipe_sim::{Record, Report};

/// What is kept of a report.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Every flow.
    pub flows: Vec<Flow>,
    /// Every direction of a link, except the access links of a dumbbell.
    pub links: Vec<Link>,
    /// What the scenario's instruments saw.
    pub instruments: Vec<InstrumentReport>,
    /// What was seen during the run, of a job that is watched.
    pub record: Option<Record>,
    /// Drops of data on links, in order of time, of a job that is watched.
    pub drops: Vec<Dropped>,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Goodput, B/s.
    pub goodput: f64,
    /// Rate of new payload under way, B/s; not a number when the flow was too short.
    pub steady: f64,
    /// Data segments sent before the scheme fell back; not a number when it did not.
    pub fallback_after: f64,
    /// When the transfer was finished, in seconds; not a number when it was not.
    pub finished_s: f64,
    /// Shortest round trip in seconds; not a number without a sample.
    pub rtt_min_s: f64,
    /// Median round trip in seconds; not a number without a sample.
    pub rtt_median_s: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Name.
    pub name: String,
    /// Seconds spent serialising.
    pub busy_s: f64,
    /// Packets serialised.
    pub packets: u64,
    /// Packets dropped, by cause.
    pub drops: Vec<(String, u64)>,
    /// Mean number of packets waiting.
    pub queue_mean: f64,
    /// Most packets that waited.
    pub queue_peak: u32,
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
    pub fn of(report: Report) -> Self {
        let simulated_s = report.simulated_s;
        let kept = report.links.iter().filter(|l| !l.name.contains("-access"));
        Self {
            simulated_s,
            flows: report.flows.iter().map(Flow::of).collect(),
            links: kept.map(|l| Link::of(l, simulated_s)).collect(),
            instruments: report.instruments,
            record: None,
            drops: Vec::new(),
        }
    }

    /// The direction of a link called `name`.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|l| l.name == name)
    }

    /// The instrument called `name`.
    pub fn instrument(&self, name: &str) -> Option<&InstrumentReport> {
        self.instruments.iter().find(|i| i.name == name)
    }

    /// Mean goodput of the flows whose names begin with `prefix`, B/s; not a number without any.
    pub fn goodput_of(&self, prefix: &str) -> f64 {
        let fits: Vec<f64> =
            self.flows.iter().filter(|f| f.name.starts_with(prefix)).map(|f| f.goodput).collect();
        crate::stats::mean(&fits)
    }

    /// Sum of the flows' goodputs, B/s.
    pub fn goodput(&self) -> f64 {
        self.flows.iter().map(|f| f.goodput).sum()
    }

    /// When the last transfer was finished, in seconds; not a number when one was not.
    pub fn finished_s(&self) -> f64 {
        let later = |latest: f64, t: f64| if t.is_nan() || t > latest { t } else { latest };
        self.flows.iter().map(|f| f.finished_s).fold(0.0, later)
    }
}

impl Flow {
    fn of(report: &FlowReport) -> Self {
        Self {
            name: report.name.clone(),
            goodput: report.goodput_bps / 8.0,
            steady: report.steady_bps.map_or(f64::NAN, |bps| bps / 8.0),
            fallback_after: report.fallback.as_ref().map_or(f64::NAN, |f| f.after_segments as f64),
            finished_s: report.finished_s.unwrap_or(f64::NAN),
            rtt_min_s: report.rtt_ms.min.map_or(f64::NAN, |ms| ms / 1e3),
            rtt_median_s: report.rtt_ms.p50.map_or(f64::NAN, |ms| ms / 1e3),
            timeouts: report.timeouts,
        }
    }
}

impl Link {
    fn of(report: &LinkReport, simulated_s: f64) -> Self {
        let drops = report.drops.iter().map(|(cause, n)| (cause.clone(), n.as_u64().unwrap_or(0)));
        Self {
            name: report.name.clone(),
            busy_s: report.utilisation * simulated_s,
            packets: report.packets,
            drops: drops.collect(),
            queue_mean: report.queue_packets.mean,
            queue_peak: report.queue_packets.peak,
        }
    }

    /// Packets dropped for `cause`.
    pub fn dropped(&self, cause: DropCause) -> u64 {
        self.drops.iter().find(|(key, _)| key == cause.key()).map_or(0, |(_, n)| *n)
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
