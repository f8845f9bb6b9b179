//! Reports of gateways, and of nodes whose kind is not built in.

use crate::link::Counts;
use crate::words::{bytes, counted, counts_in_words};
use serde::{Deserialize, Serialize};

/// A gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct GatewayReport {
    /// Name.
    pub name: String,
    /// Flows that the gateway has seen.
    pub flows: GatewayFlows,
    /// Packets of accelerated flows sent into the hop for the first time.
    pub forwarded: u64,
    /// Packets detected as lost in the hop.
    pub losses: u64,
    /// Retransmissions of lost packets.
    pub repairs: u64,
    /// Packets sent again because the receiver had no room for them.
    pub resent: u64,
    /// Additional copies sent with the first transmission, before any loss.
    pub copies: u64,
    /// Timeouts of the gateway itself.
    pub timeouts: u64,
    /// Bytes sent again to keep the channels of the hop; only if the gateway was configured to do so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alives: Option<u64>,
    /// Maximum number of bytes held.
    pub held_peak_bytes: u64,
    /// Packets received but not forwarded, by cause; only causes that occurred.
    pub not_forwarded: Counts,
}

/// Flows of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct GatewayFlows {
    /// Flows accelerated at any time of the run.
    pub accelerated: u64,
    /// Flows passed unchanged, by reason; only reasons that occurred.
    pub passed: Counts,
}

impl GatewayReport {
    pub(crate) fn line(&self) -> String {
        format!(
            "gateway {}: {} accelerated{}; of {} {} lost in the hop, {} sent again and {} more that a receiver had no room for, {} ahead of losses{}; at most {} held{}",
            self.name,
            counted(self.flows.accelerated, "flow"),
            by_cause("passed", &self.flows.passed),
            counted(self.forwarded, "packet"),
            self.losses,
            self.repairs,
            self.resent,
            if self.copies == 1 { "1 copy".to_owned() } else { format!("{} copies", self.copies) },
            self.keep_alives.map_or_else(String::new, |n| format!(", {}", counted(n, "keep-alive"))),
            bytes(self.held_peak_bytes),
            by_cause("not forwarded", &self.not_forwarded),
        )
    }
}

/// Formats counts as ", 3 passed (2 mid stream, 1 signed)"; empty if there are none.
fn by_cause(what: &str, counts: &Counts) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let all: u64 = counts.values().sum();
    format!(", {all} {what} ({})", counts_in_words(counts))
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct NodeReport {
    /// Name.
    pub name: String,
    /// Kind of the node.
    pub kind: String,
    /// Counters of the node.
    pub counters: Counts,
}

impl NodeReport {
    pub(crate) fn line(&self) -> String {
        let counted = if self.counters.is_empty() {
            "counts nothing".to_owned()
        } else {
            counts_in_words(&self.counters)
        };
        format!("{} {}: {counted}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_a_line() {
        let passed = [("mid_stream".to_owned(), 2), ("signed".to_owned(), 1)].into();
        let mut report = GatewayReport {
            name: "gw".into(),
            flows: GatewayFlows { accelerated: 1, passed },
            forwarded: 142_943,
            losses: 19,
            repairs: 19,
            resent: 35_406,
            copies: 1,
            timeouts: 0,
            keep_alives: None,
            held_peak_bytes: 3_140_000,
            not_forwarded: [("ack_withheld".to_owned(), 7)].into(),
        };
        let words = "gateway gw: 1 flow accelerated, 3 passed (2 mid stream, 1 signed); of 142943 packets 19 lost in the hop, 19 sent again and 35406 more that a receiver had no room for, 1 copy ahead of losses; at most 3.14 MB held, 7 not forwarded (7 ack withheld)";
        assert_eq!(report.line(), words);
        report.keep_alives = Some(2);
        assert_eq!(report.line(), words.replace("losses;", "losses, 2 keep-alives;"));
    }

    #[test]
    fn a_node_is_a_line() {
        let counters = [("data".to_owned(), 30), ("marked_up".to_owned(), 3)].into();
        let mut report = NodeReport { name: "m".into(), kind: "mark".into(), counters };
        assert_eq!(report.line(), "mark m: 30 data, 3 marked up");
        report.counters.clear();
        assert_eq!(report.line(), "mark m: counts nothing");
    }
}
