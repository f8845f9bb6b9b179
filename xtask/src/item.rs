//! One line of a result list: requirement, figure, and verdict.

use std::fmt;

/// Whether a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Met.
    Pass,
    /// Not met.
    Miss,
    /// Could not be measured here; the figure says why.
    Skipped,
}

impl Verdict {
    /// Met or not.
    pub(crate) const fn of(met: bool) -> Self {
        if met { Self::Pass } else { Self::Miss }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The requirement.
    pub what: String,
    /// The measured figure.
    pub figure: String,
    /// Whether the figure meets the requirement.
    pub verdict: Verdict,
}

impl Item {
    /// A line from its parts.
    pub(crate) fn new(what: impl Into<String>, figure: impl Into<String>, verdict: Verdict) -> Self {
        Self { what: what.into(), figure: figure.into(), verdict }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "PASS",
            Self::Miss => "MISS",
            Self::Skipped => "SKIPPED",
        })
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<64}  {:<50}  {}", self.what, self.figure, self.verdict)
    }
}
