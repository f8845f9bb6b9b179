//! Sources of expected numbers, one section of the page each.

pub mod asymmetry;
pub mod formulas;
pub mod kaband;
pub mod parallel;
pub mod rate;
pub mod simulators;
pub mod study;
pub mod winds;

use crate::check::{Check, CheckTable};

/// Tables with a common source.
#[derive(Debug)]
pub struct Section {
    /// Heading.
    pub title: &'static str,
    /// Description of the source; may be empty.
    pub intro: &'static str,
    /// Pictures in front of the tables: file name in `docs/src/img`, and alternative text.
    pub pictures: &'static [(&'static str, &'static str)],
    /// The tables, in order.
    pub tables: &'static [&'static CheckTable],
    /// Makes the checks of all tables.
    pub checks: fn() -> Vec<Check>,
}

impl Section {
    /// Returns the section's checks, in the order of the page.
    pub fn all(&self) -> Vec<Check> {
        let mut checks = (self.checks)();
        // the stable sort keeps the order within a table
        checks.sort_by_key(|c| self.tables.iter().position(|g| *g == c.table));
        checks
    }
}

/// All sections, in the order of the page.
pub static SECTIONS: [&Section; 8] = [
    &simulators::SECTION,
    &kaband::SECTION,
    &study::SECTION,
    &winds::SECTION,
    &asymmetry::SECTION,
    &rate::SECTION,
    &parallel::SECTION,
    &formulas::SECTION,
];
