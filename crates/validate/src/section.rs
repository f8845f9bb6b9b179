//! Sections of the page: tables with a common source.

use crate::check::Check;
use crate::group::Group;

/// A picture on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// File name in `docs/src/img`.
    pub file: &'static str,
    /// What it shows, for those who cannot see it.
    pub alt: &'static str,
}

/// Tables with a common source.
#[derive(Debug)]
pub struct Section {
    /// Heading.
    pub title: &'static str,
    /// What the source is; may be empty.
    pub intro: &'static str,
    /// Stand before the tables.
    pub pictures: &'static [Picture],
    /// In the order of the page.
    pub groups: &'static [&'static Group],
    /// Makes the checks of all its groups.
    pub checks: fn() -> Result<Vec<Check>, String>,
}

impl Section {
    /// The section's checks in the order of the page.
    ///
    /// # Errors
    /// When a table of numbers cannot be read.
    pub fn all(&self) -> Result<Vec<Check>, String> {
        let mut checks = (self.checks)()?;
        // stable: within a group the order stays
        checks.sort_by_key(|c| self.groups.iter().position(|g| *g == c.group));
        Ok(checks)
    }
}
