//! Sections of the page: tables with a common source.

use crate::check::Check;
use crate::group::Group;

/// A picture on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// File name in `docs/src/img`.
    pub file: &'static str,
    /// Alternative text.
    pub alt: &'static str,
}

/// Tables with a common source.
#[derive(Debug)]
pub struct Section {
    /// Heading.
    pub title: &'static str,
    /// Description of the source; may be empty.
    pub intro: &'static str,
    /// Pictures in front of the tables.
    pub pictures: &'static [Picture],
    /// The tables, in order.
    pub groups: &'static [&'static Group],
    /// Makes the checks of all groups.
    pub checks: fn() -> Result<Vec<Check>, String>,
}

impl Section {
    /// The section's checks, in the order of the page.
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
