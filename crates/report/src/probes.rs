//! Report of probe segments.

use serde::{Deserialize, Serialize};

/// Probe segments of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct ProbesReport {
    /// How the sender learns of their arrival: `option`, `dsack`, `timestamps`, or `none`.
    pub known_by: String,
    /// Probes sent.
    pub sent: u64,
    /// Probes known to have arrived.
    pub acknowledged: u64,
    /// Probes not reported within the time limit.
    pub lost: u64,
    /// What the scheme does instead of sending probes, and why; absent without a fallback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Note about the network for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ProbesReport {
    /// Sums the counts of several flows; other fields are those of the first.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        all.cloned().reduce(|a, b| Self {
            sent: a.sent + b.sent,
            acknowledged: a.acknowledged + b.acknowledged,
            lost: a.lost + b.lost,
            ..a
        })
    }

    /// Formats the report as one line of text.
    pub fn in_words(&self) -> String {
        let mut text = match self.known_by.as_str() {
            "none" => "no probes".to_owned(),
            by => format!("{} probes, {} acknowledged ({by})", self.sent, self.acknowledged),
        };
        for more in [&self.fallback, &self.note].into_iter().flatten() {
            text.push_str("; ");
            text.push_str(more);
        }
        text
    }
}
