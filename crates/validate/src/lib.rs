//! Compares bentpipe with other simulators and with closed forms.
//!
//! A [`Check`] is one number: the runs that yield it, what it should be, and how far off it may be. [`cases::all`] makes the
//! checks against measured numbers, [`closed::all`] those against formulas; [`judge`] runs what they need and says how
//! each came out. [`page`] and [`figures`] write it down. All of it depends on the committed scenario files only, never on
//! the machine or the number of its threads.

pub mod cases;
pub mod check;
pub mod closed;
pub mod figures;
pub mod group;
pub mod job;
pub mod page;
pub mod reference;
pub mod stats;
mod svg;

pub use check::{Check, Expected, Judged, Quantity, Tolerance, Verdict, judge};
pub use group::Group;
pub use job::{Change, File, Job, Observed};

/// Every check.
///
/// # Errors
/// When the table of measured numbers cannot be read.
pub fn all() -> Result<Vec<Check>, String> {
    let mut checks = cases::all(&reference::rows()?);
    checks.extend(closed::all());
    checks.sort_by_key(|c| c.group); // stable: within a group the order stays
    Ok(checks)
}

/// The checks that take seconds: everything deterministic.
///
/// # Errors
/// When the table of measured numbers cannot be read.
pub fn fast() -> Result<Vec<Check>, String> {
    let mut checks = all()?;
    checks.retain(|c| c.group.is_fast());
    Ok(checks)
}
