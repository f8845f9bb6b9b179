//! What a gateway did.

use crate::build::Network;
use crate::text::trim;
use bentpipe_gateway::{Gateway, Why};
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
    /// Packets of accelerated flows sent into the hop for the first time.
    pub forwarded: u64,
    /// Packets that it found lost in the hop.
    pub losses: u64,
    /// Of these, sent again.
    pub repairs: u64,
    /// Packets sent again since the receiver had no room for them.
    pub resent: u64,
    /// Copies sent beyond the first of a packet, ahead of any loss.
    pub copies: u64,
    /// Timeouts of the gateway's own.
    pub timeouts: u64,
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

/// What the gateways of a network have done up to now.
pub(crate) fn gateway_reports(net: &mut Network) -> Vec<GatewayReport> {
    let gateways = net.gateways.clone();
    gateways
        .into_iter()
        .filter_map(|(name, id)| Some(GatewayReport::of(name, net.sim.gateway(id)?)))
        .collect()
}

/// Without those that never happened.
fn occurred(counts: impl Iterator<Item = (&'static str, u64)>) -> Map<String, Value> {
    counts.filter(|(_, n)| *n > 0).map(|(key, n)| (key.to_owned(), Value::from(n))).collect()
}

impl GatewayReport {
    /// Of a gateway, wherever it ran.
    pub fn of(name: String, gateway: &Gateway) -> Self {
        let of = gateway.report();
        let counters = &of.counters;
        let passed = Why::ALL.into_iter().map(|why| (why.key(), counters.passed(why)));
        Self {
            name,
            flows: GatewayFlows { accelerated: counters.accelerated, passed: occurred(passed) },
            forwarded: counters.forwarded,
            losses: counters.losses,
            repairs: counters.repairs,
            resent: counters.resent,
            copies: counters.copies,
            timeouts: counters.timeouts,
            held_peak_bytes: of.held_peak.0,
            not_forwarded: occurred(counters.not_forwarded().into_iter()),
        }
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
            "of {} {} lost in the hop, {} sent again and {} more that a receiver had no room for, {} ahead of losses; at most {} held{}",
            counted(self.forwarded, "packet"),
            self.losses,
            self.repairs,
            self.resent,
            if self.copies == 1 { "1 copy".to_owned() } else { format!("{} copies", self.copies) },
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
        kept.insert("ack_withheld".into(), Value::from(7));
        let report = GatewayReport {
            name: "gw".into(),
            flows: GatewayFlows { accelerated: 1, passed },
            forwarded: 142_943,
            losses: 19,
            repairs: 19,
            resent: 35_406,
            copies: 1,
            timeouts: 0,
            held_peak_bytes: 3_140_000,
            not_forwarded: kept,
        };
        let words = "gateway gw: 1 flow accelerated, 3 passed (2 mid stream, 1 signed); of 142943 packets 19 lost in the hop, 19 sent again and 35406 more that a receiver had no room for, 1 copy ahead of losses; at most 3.14 MB held, 7 not forwarded (7 ack withheld)";
        assert_eq!(report.line(), words);
    }
}
