//! One thing that was looked at on this machine before a service starts.

use core::fmt;
use serde::Serialize;

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It is as it should be.
    Good,
    /// The service can do without, or with this.
    Lack,
    /// Without this the service does not start.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// What was found.
    pub found: String,
    /// What mends it, a line each.
    pub mends: Vec<String>,
}

impl Finding {
    /// With nothing that mends it.
    pub fn new(name: impl Into<String>, standing: Standing, found: impl Into<String>) -> Self {
        Self { name: name.into(), standing, found: found.into(), mends: Vec::new() }
    }

    /// Something that is as it should be.
    pub fn good(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, Standing::Good, found)
    }

    /// Something that is missing without need.
    pub fn lack(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, Standing::Lack, found)
    }

    /// Something that keeps the service from starting.
    pub fn bad(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, Standing::Bad, found)
    }

    /// Adds a line that mends it.
    #[must_use]
    pub fn mend(mut self, line: impl Into<String>) -> Self {
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
