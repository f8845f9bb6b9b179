//! What instruments saw.

use crate::number;
use serde::{Deserialize, Serialize};

/// What one instrument saw: a row for each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct InstrumentReport {
    /// Name.
    pub name: String,
    /// `side-channel`, `counters` or `bins`.
    pub kind: String,
    /// What the cells of a row are, unit last; the first is the end of the interval.
    pub columns: Vec<String>,
    /// The rows; null where there was nothing to see.
    #[serde(deserialize_with = "number::rows_or_nan")]
    pub rows: Vec<Vec<f64>>,
}

impl InstrumentReport {
    /// A table without rows.
    pub fn new(name: &str, kind: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|c| (*c).to_owned()).collect();
        Self { name: name.to_owned(), kind: kind.to_owned(), columns, rows: Vec::new() }
    }
}
