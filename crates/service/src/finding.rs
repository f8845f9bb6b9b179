//! Results of the checks that are made on this machine before a service starts.

use core::fmt;
use serde::Serialize;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// In order.
    Good,
    /// Not in order, but the service can run.
    Lack,
    /// The service cannot start.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked.
    pub name: String,
    /// Its result.
    pub standing: CheckStatus,
    /// What was found.
    pub found: String,
    /// How to fix it, one line each.
    pub mends: Vec<String>,
}

impl Finding {
    /// A finding without advice.
    pub fn new(name: impl Into<String>, standing: CheckStatus, found: impl Into<String>) -> Self {
        Self { name: name.into(), standing, found: found.into(), mends: Vec::new() }
    }

    /// A check that found no problem.
    pub fn good(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Good, found)
    }

    /// A problem that does not keep the service from running.
    pub fn warning(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Lack, found)
    }

    /// A problem that keeps the service from starting.
    pub fn failure(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Bad, found)
    }

    /// Adds a line of advice.
    #[must_use]
    pub fn with_help(mut self, line: impl Into<String>) -> Self {
        self.mends.push(line.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.found)?;
        self.mends.iter().try_for_each(|mend| write!(f, "\nhelp: {mend}"))
    }
}
