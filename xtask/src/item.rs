//! One line of a result list: what was asked, the figure, and whether it was met.

use std::fmt;

/// How a figure compares with what was asked.
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
    /// What was asked.
    pub what: String,
    /// What was found.
    pub figure: String,
    /// How these compare.
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
