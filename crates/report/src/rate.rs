//! Reports of explicit-rate signalling: what a flow was granted, and what flow routers gave.

use crate::number;
use crate::words::{counted, rate};
use serde::{Deserialize, Serialize};

/// The rate that a flow asked for and what it got. Rates count IP packets with headers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct RateReport {
    /// How the question is encoded: `tia-1039`.
    pub encoding: String,
    /// Rate of the first question, bit/s.
    pub asked_bps: u64,
    /// Rate that the sender uses because the network grants it, bit/s; null if there is none, as after a
    /// fallback.
    pub granted_bps: Option<u64>,
    /// `plain`, `asked`, `granted`, `reduced`, `refused`, `fallen-back` or `asking-again`.
    pub state: String,
    /// The first 1000 changes of the granted rate, oldest first.
    pub changes: Vec<RateChangeReport>,
}

/// A change of a granted rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct RateChangeReport {
    /// Time at which the sender learned of it, in seconds since the start of the run.
    #[serde(deserialize_with = "number::or_nan")]
    pub at_s: f64,
    /// The rate from then on, bit/s.
    pub bps: u64,
    /// `granted`, `reduced` or `raised`.
    pub cause: String,
}

impl RateReport {
    /// Formats the report as one line of text.
    pub(crate) fn in_words(&self) -> String {
        let asked = rate(self.asked_bps as f64);
        let granted = self.granted_bps.map_or_else(|| "nothing".to_owned(), |bps| rate(bps as f64));
        let (state, changes) = (self.state.replace('-', " "), counted(self.changes.len() as u64, "change"));
        format!("asked for {asked}, granted {granted} ({}, {state}, {changes})", self.encoding)
    }

    /// Formats the granted rates of several flows; `None` if none of them was granted one.
    pub(crate) fn all_in_words<'a>(all: impl Iterator<Item = &'a Self>) -> Option<String> {
        let mut granted: Vec<u64> = all.filter_map(|rate| rate.granted_bps).collect();
        granted.sort_unstable();
        let (least, most) = (*granted.first()?, *granted.last()?);
        let median = *granted.get(granted.len() / 2)?;
        let [median, least, most] = [median, least, most].map(|bps| rate(bps as f64));
        let flows = counted(granted.len() as u64, "flow");
        Some(format!("granted to {flows}: {median} each (median), {least} to {most}"))
    }
}

/// A flow router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct FlowRouterReport {
    /// Name.
    pub name: String,
    /// Flows for which it had state, with and without signalling.
    pub flows: u64,
    /// Requests that passed: first ones, repeated ones and later ones.
    pub requests: u64,
    /// Requests for a guaranteed or maximum rate that it refused.
    pub refused: u64,
    /// Reservations that it withdrew for a higher priority or because its own rate fell.
    pub preempted: u64,
    /// Reductions that it told to flows, each counted once however often it was repeated.
    pub reductions: u64,
    /// Packets that it dropped because their flow exceeded its rate for longer than allowed.
    pub policed: u64,
    /// Sum of the guaranteed and maximum rates that are reserved at the end, bit/s.
    pub reserved_bps: u64,
    /// Sum of the available rates that flows have at the end, bit/s.
    pub given_bps: u64,
    /// Mean rate of what it forwarded into its direction, from the first packet to the last, bit/s.
    pub used_bps: u64,
    /// Bytes of data at agreed rates by payer, headers included: those without a rule, then each rule of the
    /// router; absent if it has no rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<ChargeReport>,
}

/// What one payer is charged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct ChargeReport {
    /// Prefix of its addresses; `others` for addresses without a rule.
    pub payer: String,
    /// Bytes that it pays as their sender.
    pub sent_bytes: u64,
    /// Bytes that it pays as their receiver.
    pub received_bytes: u64,
}

impl FlowRouterReport {
    pub(crate) fn line(&self) -> String {
        let [reserved, given, used] =
            [self.reserved_bps, self.given_bps, self.used_bps].map(|bps| rate(bps as f64));
        format!(
            "flow router {}: {}, {} ({} refused, {} preempted), {}, {} policed; {reserved} reserved and {given} given at the end, {used} used on average",
            self.name,
            counted(self.flows, "flow"),
            counted(self.requests, "request"),
            self.refused,
            self.preempted,
            counted(self.reductions, "reduction"),
            counted(self.policed, "packet"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(granted_bps: Option<u64>) -> RateReport {
        let change = RateChangeReport { at_s: 0.04, bps: 29_984_000, cause: "granted".into() };
        RateReport {
            encoding: "tia-1039".into(),
            asked_bps: 100_000_000,
            granted_bps,
            state: if granted_bps.is_some() { "granted".into() } else { "fallen-back".into() },
            changes: if granted_bps.is_some() { vec![change] } else { Vec::new() },
        }
    }

    #[test]
    fn a_grant_is_a_line() {
        let words = "asked for 100 Mbit/s, granted 29.984 Mbit/s (tia-1039, granted, 1 change)";
        assert_eq!(granted(Some(29_984_000)).in_words(), words);
        let words = "asked for 100 Mbit/s, granted nothing (tia-1039, fallen back, 0 changes)";
        assert_eq!(granted(None).in_words(), words);
    }

    #[test]
    fn the_grants_of_many_flows_are_a_line() {
        let all = [3_000_000, 1_000_000, 2_000_000].map(|bps| granted(Some(bps)));
        let words = "granted to 3 flows: 2 Mbit/s each (median), 1 Mbit/s to 3 Mbit/s";
        assert_eq!(RateReport::all_in_words(all.iter().chain([&granted(None)])).as_deref(), Some(words));
        assert_eq!(RateReport::all_in_words([granted(None)].iter()), None);
    }

    #[test]
    fn a_flow_router_is_a_line() {
        let report = FlowRouterReport {
            name: "edge".into(),
            flows: 50,
            requests: 53,
            refused: 1,
            preempted: 0,
            reductions: 12,
            policed: 1,
            reserved_bps: 0,
            given_bps: 94_700_000,
            used_bps: 93_000_000,
            charges: Vec::new(),
        };
        let words = "flow router edge: 50 flows, 53 requests (1 refused, 0 preempted), 12 reductions, 1 packet policed; 0 bit/s reserved and 94.7 Mbit/s given at the end, 93 Mbit/s used on average";
        assert_eq!(report.line(), words);
    }
}
