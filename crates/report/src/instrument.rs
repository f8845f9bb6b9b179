//! Measurements of instruments.

use crate::number;
use serde::{Deserialize, Serialize};

/// Measurements of one instrument: one row per interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct InstrumentReport {
    /// Name.
    pub name: String,
    /// `side-channel`, `counters` or `bins`.
    pub kind: String,
    /// Names of the columns, unit last. The first is the end of the interval.
    pub columns: Vec<String>,
    /// The rows; null where nothing could be measured.
    #[serde(deserialize_with = "number::rows_or_nan")]
    pub rows: Vec<Vec<f64>>,
}

impl InstrumentReport {
    /// Creates a table without rows.
    pub fn new(name: &str, kind: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|c| (*c).to_owned()).collect();
        Self { name: name.to_owned(), kind: kind.to_owned(), columns, rows: Vec::new() }
    }
}
