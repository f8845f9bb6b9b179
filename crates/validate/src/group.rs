//! Tables of checks.

/// One table: what it compares, and why its tolerance is what it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// Unique heading.
    pub title: &'static str,
    /// Headings of the leading columns, one for each label of a check.
    pub columns: &'static [&'static str],
    /// Heading of the column with expected values.
    pub expected: &'static str,
    /// What is compared, and the reasons for the tolerance.
    pub intro: &'static str,
    /// The whole table takes about a second, so it is part of the ordinary tests.
    pub fast: bool,
}
