//! Events for the log of a gateway.

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Normal operation.
    Info,
    /// Needs attention.
    Warning,
}

/// A log event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Severity.
    pub level: Level,
    /// Kind, one word.
    pub name: &'static str,
    /// Message.
    pub text: String,
}
