//! What a report says about applications that measure for themselves, and about transfers over several connections.

use crate::build::{Carries, FlowEnds};
use crate::flow;
use crate::report::{FlowReport, Quantiles};
use crate::world::Simulation;
use bentpipe_base::Duration;
use bentpipe_scenario::Scenario;
use serde::Serialize;

/// Questions and answers.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsReport {
    /// Answers that are complete.
    pub completed: u64,
    /// From the writing of a request's first byte to the reading of its answer's last.
    pub response_ms: Quantiles,
}

/// Typing.
#[derive(Clone, Debug, Serialize)]
pub struct TelnetReport {
    /// Writes made.
    pub writes: u64,
    /// Of these, acknowledged.
    pub acknowledged: u64,
    /// From a write to the acknowledgment of its last byte.
    pub ack_ms: Quantiles,
}

/// Datagrams.
#[derive(Clone, Debug, Serialize)]
pub struct UdpReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Datagrams missing before the last one that arrived; what is under way at the end is not lost.
    pub lost: u64,
    /// Arrivals of what had arrived before.
    pub duplicates: u64,
    /// Arrivals after a later one.
    pub reordered: u64,
    /// One-way delay.
    pub delay_ms: DelayReport,
}

/// One-way delays in milliseconds; null without a value.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DelayReport {
    /// Mean.
    pub mean: Option<f64>,
    /// Smallest, median and 99th percentile.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

/// A transfer over several connections at once.
#[derive(Clone, Debug, Serialize)]
pub struct TransferReport {
    /// Name.
    pub name: String,
    /// Number of connections.
    pub connections: u64,
    /// Payload bytes acknowledged, of all of them.
    pub bytes: u64,
    /// When the last of them had finished; null if one did not.
    pub finished_s: Option<f64>,
    /// Sum of their goodputs, bit/s.
    pub goodput_bps: f64,
}

pub(crate) fn requests(sim: &Simulation, ends: &FlowEnds) -> Option<RequestsReport> {
    if ends.carries != Carries::Answers {
        return None;
    }
    // a flow that has not begun has no application yet
    Some(flow::asker(sim, ends).map_or(
        RequestsReport { completed: 0, response_ms: Quantiles::default() },
        |a| RequestsReport { completed: a.completed(), response_ms: Quantiles::of(a.times()) },
    ))
}

pub(crate) fn telnet(sim: &Simulation, ends: &FlowEnds) -> Option<TelnetReport> {
    if ends.carries != Carries::Typing {
        return None;
    }
    let none = TelnetReport { writes: 0, acknowledged: 0, ack_ms: Quantiles::default() };
    Some(flow::typist(sim, ends).map_or(none, |t| TelnetReport {
        writes: t.writes(),
        acknowledged: t.times().count(),
        ack_ms: Quantiles::of(t.times()),
    }))
}

pub(crate) fn udp(sim: &Simulation, ends: &FlowEnds) -> Option<UdpReport> {
    if ends.carries != Carries::Datagrams {
        return None;
    }
    let (source, sink) = (flow::source(sim, ends)?, flow::sink(sim, ends)?);
    Some(UdpReport {
        sent: source.sent(),
        received: sink.received(),
        lost: sink.lost(),
        duplicates: sink.duplicates(),
        reordered: sink.reordered(),
        delay_ms: DelayReport {
            mean: sink.mean_delay().map(Duration::as_millis_f64),
            quantiles: Quantiles::of(sink.delay()),
        },
    })
}

/// Transfers in the order of their first connections.
pub(crate) fn transfers(scenario: &Scenario, flows: &[FlowReport]) -> Vec<TransferReport> {
    let mut all: Vec<TransferReport> = Vec::new();
    for (spec, flow) in scenario.flows.iter().zip(flows) {
        let Some(name) = &spec.group else { continue };
        // connections of a transfer follow each other, so the last one is the likely one
        let known = all.iter_mut().rev().find(|t| t.name == *name);
        if let Some(t) = known {
            t.connections += 1;
            t.bytes += flow.bytes_acked;
            t.goodput_bps += flow.goodput_bps;
            t.finished_s = t.finished_s.zip(flow.finished_s).map(|(a, b)| a.max(b));
        } else {
            all.push(TransferReport {
                name: name.clone(),
                connections: 1,
                bytes: flow.bytes_acked,
                finished_s: flow.finished_s,
                goodput_bps: flow.goodput_bps,
            });
        }
    }
    all
}
