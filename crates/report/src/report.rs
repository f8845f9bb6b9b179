//! The whole report. For simulated runs it does not depend on the machine or the wall clock.

use crate::application::TransferReport;
use crate::flow::FlowReport;
use crate::gateway::{GatewayReport, NodeReport};
use crate::link::{InstrumentReport, LinkReport};
use crate::live::LiveReport;
use crate::number;
use crate::rate::FlowRouterReport;
use crate::reference::ReferenceReport;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Version of the format.
const SCHEMA: u32 = 1;

/// The result of a run. Field order is the order of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct Report {
    /// Version of this format.
    #[cfg_attr(test, arbitrary(value = SCHEMA))]
    pub schema: u32,
    /// Title of the scenario. Stores of sweeps omit it, as well as parameters and instruments.
    #[serde(default)]
    pub scenario: String,
    /// bentpipe's version.
    pub version: String,
    /// Seed of all random streams; absent if none was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Simulated time in seconds.
    #[serde(deserialize_with = "number::or_nan")]
    pub simulated_s: f64,
    /// Resolved parameters.
    #[serde(default)]
    #[cfg_attr(test, arbitrary(with = tests::parameters))]
    pub parameters: Map<String, Value>,
    /// Sums over all flows.
    pub total: Total,
    /// Flows.
    pub flows: Vec<FlowReport>,
    /// Transfers over several connections; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransferReport>,
    /// Link directions.
    pub links: Vec<LinkReport>,
    /// Gateways; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayReport>,
    /// Flow routers; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_routers: Vec<FlowRouterReport>,
    /// Nodes whose kind is not built in; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    /// Measurements of instruments; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instruments: Vec<InstrumentReport>,
    /// Comparisons with reference values; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceReport>,
    /// Values of a live run; absent for simulated ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveReport>,
}

/// Sums over all flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct Total {
    /// In-order bytes delivered to applications x 8 / measure interval, bit/s.
    #[serde(deserialize_with = "number::or_nan")]
    pub goodput_bps: f64,
    /// Jain's fairness index of the flows' goodputs; null when nothing was delivered.
    pub jain: Option<f64>,
}

impl Total {
    /// Computes the sums of `flows`.
    pub fn of(flows: &[FlowReport]) -> Self {
        let sum: f64 = flows.iter().map(|f| f.goodput_bps).sum();
        let squares: f64 = flows.iter().map(|f| f.goodput_bps * f.goodput_bps).sum();
        let jain = (squares > 0.0).then(|| sum * sum / (flows.len() as f64 * squares));
        Self { goodput_bps: sum, jain }
    }
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not a report.
    #[error("not a report of bentpipe: {0}")]
    Json(#[from] serde_json::Error),
    /// The report has another format version.
    #[error(
        "the report has format {0}, and this version of bentpipe reads {SCHEMA}: use the version that wrote it"
    )]
    Schema(u32),
}

impl Report {
    /// Goodput in bit/s that is reached for this share of the time, by the first instrument that measures it.
    pub(crate) fn exceeded(&self, share: f64) -> Option<f64> {
        self.instruments.iter().find_map(|instrument| instrument.exceeded(share))
    }

    /// Creates a report of `flows` with their totals. All other fields are empty.
    pub fn new(scenario: &str, flows: Vec<FlowReport>) -> Self {
        Self {
            schema: SCHEMA,
            scenario: scenario.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            total: Total::of(&flows),
            flows,
            ..Self::default()
        }
    }

    /// Formats the report as pretty-printed JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Parses the output of [`Report::to_json`].
    ///
    /// # Errors
    /// Text that is not a report, or has another format version.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let report: Self = serde_json::from_str(text)?;
        if report.schema == SCHEMA { Ok(report) } else { Err(ReadError::Schema(report.schema)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbitrary::{Arbitrary as _, Result, Unstructured};

    /// Random parameters: texts, numbers and switches.
    pub(super) fn parameters(u: &mut Unstructured<'_>) -> Result<Map<String, Value>> {
        let one = |u: &mut Unstructured<'_>| {
            let value = match u.int_in_range(0..=3)? {
                0 => Value::from(String::arbitrary(u)?),
                1 => Value::from(f64::arbitrary(u)?),
                2 => Value::from(u64::arbitrary(u)?),
                _ => Value::from(bool::arbitrary(u)?),
            };
            Ok((String::arbitrary(u)?, value))
        };
        (0..u.int_in_range(0..=5)?).map(|_| one(u)).collect()
    }

    /// Random values in every field, including floats that JSON cannot represent.
    #[test]
    fn what_was_written_is_read_and_written_the_same() {
        let mut state = 1_u64;
        let mut next = || {
            // Marsaglia, "Xorshift RNGs", 2003
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (mut nulls, mut udp, mut live) = (0, 0, 0);
        for _ in 0..200 {
            // all ones is NaN, all zeros is zero or `None`
            let words = (0..4000).map(|_| match next() % 16 {
                0 => u64::MAX,
                1 => 0,
                _ => next(),
            });
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let report = Report::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
            let json = report.to_json();
            assert_eq!(Report::from_json(&json).unwrap_or_else(|e| panic!("{e}: {json}")).to_json(), json);
            nulls += json.matches("null").count();
            udp += report.flows.iter().filter(|f| f.udp().is_some()).count();
            live += usize::from(report.live.is_some());
        }
        assert!(nulls > 1000 && udp > 50 && live > 20, "{nulls} {udp} {live}");
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let refused = |text: &str| Report::from_json(text).unwrap_err().to_string();
        assert!(refused("{}").starts_with("not a report of bentpipe: missing field `schema`"));
        let json = Report { schema: 2, ..Report::default() }.to_json();
        assert!(refused(&json).starts_with("the report has format 2, and this version"));
        let flow = Report::new("", vec![FlowReport::default()]).to_json();
        assert!(refused(&flow.replace("\"tcp\": \"\"", "\"tcp\": null")).contains("a flow has either"));
    }
}
