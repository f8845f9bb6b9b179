//! Probe segments.

use serde::{Deserialize, Serialize};

/// Probe segments of a flow whose scheme sends some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct ProbesReport {
    /// How their arrival is known: `option`, `dsack`, `timestamps`, or `none`.
    pub known_by: String,
    /// Probes sent.
    pub sent: u64,
    /// Probes known to have arrived.
    pub acknowledged: u64,
    /// Probes that nothing was heard of in time.
    pub lost: u64,
    /// What the scheme does in place of what it was meant to do, and why; absent if it does that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// What a user should know of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ProbesReport {
    /// Of several flows: their sums, and of the rest what the first says.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        all.cloned().reduce(|a, b| Self {
            sent: a.sent + b.sent,
            acknowledged: a.acknowledged + b.acknowledged,
            lost: a.lost + b.lost,
            ..a
        })
    }

    /// One line.
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
