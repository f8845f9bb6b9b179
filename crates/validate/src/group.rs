//! Tables of checks, and the sections of the page they stand in.

use crate::check::Check;

/// One table: what it compares, and why its tolerance is what it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// Heading, unique.
    pub title: &'static str,
    /// Headings of the leading columns, one for each label of a check.
    pub columns: &'static [&'static str],
    /// Heading of the column of expected values.
    pub expected: &'static str,
    /// What is compared, and the reason for the tolerance.
    pub intro: &'static str,
    /// The whole table takes a second or so: a part of the ordinary tests.
    pub fast: bool,
}

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
