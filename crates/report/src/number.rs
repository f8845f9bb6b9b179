//! Non-finite numbers: JSON has no notation for them, so they are written as `null` and read as NaN.

use serde::{Deserialize, Deserializer};

/// Reads a field: `#[serde(deserialize_with = "number::or_nan")]`.
pub(crate) fn or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// Reads an optional field: null is NaN, an absent field is `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    or_nan(from).map(Some)
}

/// Reads the rows of a table.
pub(crate) fn rows_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<f64>>, D::Error> {
    let rows = Vec::<Vec<Option<f64>>>::deserialize(from)?;
    let row = |row: Vec<Option<f64>>| row.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect();
    Ok(rows.into_iter().map(row).collect())
}
