//! One line of a result list: requirement, figure, and verdict.

use std::fmt;

/// Whether a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Miss,
    /// Could not be measured here; the figure says why.
    Skipped,
}

impl From<bool> for Verdict {
    fn from(met: bool) -> Self {
        if met { Self::Pass } else { Self::Miss }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub what: String,
    /// The measured figure.
    pub figure: String,
    pub verdict: Verdict,
}

impl Item {
    /// A line from its parts; the verdict may be whether the requirement is met.
    pub(crate) fn new(what: impl Into<String>, figure: impl Into<String>, met: impl Into<Verdict>) -> Self {
        Self { what: what.into(), figure: figure.into(), verdict: met.into() }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = format!("{:?}", self.verdict).to_uppercase();
        write!(f, "{:<64}  {:<50}  {verdict}", self.what, self.figure)
    }
}
