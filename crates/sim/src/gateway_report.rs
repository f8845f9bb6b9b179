//! What a gateway did.

use crate::build::Network;
use crate::text::trim;
use bentpipe_gateway::{Cause, FlowReport, Gateway, Why};
use core::fmt::Write as _;
use serde::Serialize;
use serde_json::{Map, Value};

/// One gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayReport {
    /// Name.
    pub name: String,
    /// Flows that it saw.
    pub flows: GatewayFlows,
    /// Packets that it found lost in the hop.
    pub losses: u64,
    /// Packets that it sent again, since the hop had lost them or the receiver could not keep them.
    pub repairs: u64,
    /// Packets that it sent beyond the first of each, so that one arrives.
    pub copies: u64,
    /// ACKs that senders did not get to see, since they told of a loss that was the hop's.
    pub acks_withheld: u64,
    /// Most bytes held at any time.
    pub held_peak_bytes: u64,
    /// Packets that came in and did not go out, by cause; only causes that occurred.
    pub not_forwarded: Map<String, Value>,
}

/// Flows of a gateway.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GatewayFlows {
    /// Accelerated, at any time of the run.
    pub accelerated: u64,
    /// Passed as they were, by reason; only reasons that occurred.
    pub passed: Map<String, Value>,
}

/// Connections that are looked at together.
const PAGE: usize = 1024;

/// What the gateways of a network have done in the run that ends now.
pub(crate) fn gateway_reports(net: &mut Network) -> Vec<GatewayReport> {
    let gateways = net.gateways.clone();
    gateways.into_iter().filter_map(|(name, id)| Some(report(name, net.sim.gateway(id)?))).collect()
}

fn report(name: String, gateway: &mut Gateway) -> GatewayReport {
    let of = gateway.report();
    let passed = Why::ALL.into_iter().map(|why| (why.key(), of.counters.passed(why)));
    let kept = Cause::ALL.into_iter().map(|cause| (cause.key(), of.counters.not_forwarded(cause)));
    let mut report = GatewayReport {
        name,
        flows: GatewayFlows { accelerated: of.counters.accelerated, passed: occurred(passed) },
        losses: 0,
        repairs: 0,
        copies: 0,
        acks_withheld: 0,
        held_peak_bytes: of.held_peak.0,
        not_forwarded: occurred(kept),
    };
    let mut next = Some(0);
    while let Some(from) = next {
        let (page, after) = gateway.flows(from, PAGE);
        page.iter().for_each(|flow| report.add(flow));
        next = after;
    }
    while let Some(flow) = gateway.take_closed() {
        report.add(&flow);
    }
    report
}

/// Without those that never happened.
fn occurred(counts: impl Iterator<Item = (&'static str, u64)>) -> Map<String, Value> {
    counts.filter(|(_, n)| *n > 0).map(|(key, n)| (key.to_owned(), Value::from(n))).collect()
}

impl GatewayReport {
    fn add(&mut self, flow: &FlowReport) {
        self.losses += flow.lost;
        self.repairs += flow.repaired;
        self.copies += flow.copied;
        self.acks_withheld += flow.withheld;
    }

    /// In words, on one line.
    pub(crate) fn line(&self) -> String {
        let mut line = format!(
            "gateway {}: {} accelerated{}; ",
            self.name,
            counted(self.flows.accelerated, "flow"),
            by_cause("passed", &self.flows.passed),
        );
        let _ = write!(
            line,
            "{} lost in the hop, {} sent again, {} ahead of losses, {} withheld, at most {} held{}",
            counted(self.losses, "packet"),
            counted(self.repairs, "packet"),
            if self.copies == 1 { "1 copy".to_owned() } else { format!("{} copies", self.copies) },
            counted(self.acks_withheld, "ACK"),
            bytes(self.held_peak_bytes),
            by_cause("not forwarded", &self.not_forwarded),
        );
        line
    }
}

/// ", 3 passed (2 mid stream, 1 signed)"; nothing when there are none.
fn by_cause(what: &str, counts: &Map<String, Value>) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let all: u64 = counts.values().filter_map(Value::as_u64).sum();
    let each: Vec<String> =
        counts.iter().map(|(cause, n)| format!("{n} {}", cause.replace('_', " "))).collect();
    format!(", {all} {what} ({})", each.join(", "))
}

fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// "3.1 MB"
fn bytes(n: u64) -> String {
    let (unit, name) = match n {
        1_000_000.. => (1e6, "MB"),
        1_000.. => (1e3, "kB"),
        _ => (1.0, "B"),
    };
    format!("{} {name}", trim(n as f64 / unit, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_a_line() {
        let mut passed = Map::new();
        passed.insert("mid_stream".into(), Value::from(2));
        passed.insert("signed".into(), Value::from(1));
        let mut kept = Map::new();
        kept.insert("duplicate_ack".into(), Value::from(7));
        let report = GatewayReport {
            name: "gw".into(),
            flows: GatewayFlows { accelerated: 1, passed },
            losses: 1,
            repairs: 2055,
            copies: 1,
            acks_withheld: 9,
            held_peak_bytes: 3_140_000,
            not_forwarded: kept,
        };
        let words = "gateway gw: 1 flow accelerated, 3 passed (2 mid stream, 1 signed); 1 packet lost in the hop, 2055 packets sent again, 1 copy ahead of losses, 9 ACKs withheld, at most 3.14 MB held, 7 not forwarded (7 duplicate ack)";
        assert_eq!(report.line(), words);
    }
}
