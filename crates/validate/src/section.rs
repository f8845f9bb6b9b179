//! Sections of the page: tables with a common source.

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
    pub groups: &'static [&'static CheckTable],
    /// Makes the checks of all groups.
    pub checks: fn() -> Result<Vec<Check>, String>,
}

impl Section {
    /// The section's checks, in the order of the page; an error if a table of numbers cannot be read.
    ///
    /// # Errors
    /// If a table of numbers cannot be read.
    pub fn all(&self) -> Result<Vec<Check>, String> {
        let mut checks = (self.checks)()?;
        // the stable sort keeps the order within a group
        checks.sort_by_key(|c| self.groups.iter().position(|g| *g == c.group));
        Ok(checks)
    }
}
