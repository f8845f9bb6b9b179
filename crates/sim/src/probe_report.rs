//! What a report says about probe segments.

use crate::build::{FlowEnds, Network};
use crate::flow;
use bentpipe_link::Discipline;
use bentpipe_scenario::Scenario;
use bentpipe_tcp::cc::ProbeSignal;
use bentpipe_tcp::cc::law::Value;
use serde::Serialize;

/// Probe segments of a flow whose scheme sends some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbesReport {
    /// How their arrival is known: `option`, `dsack`, or `none`.
    pub known_by: &'static str,
    /// Probes sent.
    pub sent: u64,
    /// Probes known to have arrived.
    pub acknowledged: u64,
    /// Probes that nothing was heard of in time.
    pub lost: u64,
    /// What the scheme does in place of what it was meant to do, and why; absent if it does that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<&'static str>,
    /// What a user should know of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// Of flow `i`, once its connection exists.
pub(crate) fn probes(
    scenario: &Scenario,
    net: &mut Network,
    i: usize,
    ends: &FlowEnds,
) -> Option<ProbesReport> {
    let growth = &scenario.flows[i].sender.scheme.growth;
    let trusted = growth.get("assume_priority") != Some(Value::Switch(false));
    let served_last = scenario
        .links
        .iter()
        .flat_map(|l| [&l.forward, &l.backward])
        .any(|d| d.discipline != Discipline::Fifo);
    flow::sender(net, ends, |c| {
        c.probes().map(|p| ProbesReport {
            known_by: match p.signal() {
                ProbeSignal::Option => "option",
                ProbeSignal::Dsack => "dsack",
                ProbeSignal::None => "none",
            },
            sent: p.sent(),
            acknowledged: p.acknowledged(),
            lost: p.lost(),
            fallback: fallback(p.signal(), trusted),
            note: (trusted && !served_last).then_some(
                "no queue of this network serves probes last (`discipline`): they take the place of data",
            ),
        })
    })?
}

const fn fallback(signal: ProbeSignal, trusted: bool) -> Option<&'static str> {
    match signal {
        ProbeSignal::None => Some(
            "slow start and recovery without probes: the peer would tell of none, as it has neither the probe option nor SACK",
        ),
        _ if !trusted => Some("slow start, and a quarter of the probes: `assume_priority` is off"),
        _ => None,
    }
}

impl ProbesReport {
    /// Of several flows: their sums, and of the rest what the first says.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        all.cloned().reduce(|a, b| Self {
            sent: a.sent + b.sent,
            acknowledged: a.acknowledged + b.acknowledged,
            lost: a.lost + b.lost,
            ..a
        })
    }

    /// One line.
    pub fn in_words(&self) -> String {
        let mut text = match self.known_by {
            "none" => "no probes".to_owned(),
            by => format!("{} probes, {} acknowledged ({by})", self.sent, self.acknowledged),
        };
        for more in [self.fallback, self.note].into_iter().flatten() {
            text.push_str("; ");
            text.push_str(more);
        }
        text
    }
}
