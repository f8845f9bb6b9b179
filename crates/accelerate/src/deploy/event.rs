//! What goes into the log of a gateway.

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Info,
    /// Somebody should look.
    Warning,
}

/// Something for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// How much it matters.
    pub level: Level,
    /// What kind, one word.
    pub name: &'static str,
    /// What.
    pub text: String,
}
