//! Names that the sources of expected numbers use.

pub(crate) use crate::check::{Check, CheckTable, Tolerance};
pub(crate) use crate::job::Job;
pub(crate) use crate::quantity::Quantity;
pub(crate) use crate::reading::Reading;

/// The number at the start of a label.
pub(crate) fn number(label: &str) -> f64 {
    label.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(f64::NAN)
}
