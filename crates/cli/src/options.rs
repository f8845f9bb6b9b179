//! Errors in options, shown like errors in files: with the place underlined and what to write instead.

use bentpipe_report::metric;
use bentpipe_scenario::{Diagnostic, Place, Source};
use core::ops::Range;

/// An option on the command line.
#[derive(Clone, Copy)]
pub(crate) struct OptionValue<'a> {
    /// With its leading dashes.
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

impl OptionValue<'_> {
    /// Returns an error in this byte range of the value.
    pub(crate) fn fault(
        self,
        at: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Box<Diagnostic> {
        let before = self.name.len() + 1;
        let line = format!("{} {}", self.name, self.value);
        Box::new(Diagnostic {
            message: message.into(),
            place: Place::find("command line", &line, before + at.start, before + at.end),
            label: label.into(),
            help: Vec::new(),
        })
    }

    /// Returns an error in the whole value.
    pub(crate) fn wrong(self, message: impl Into<String>, label: impl Into<String>) -> Box<Diagnostic> {
        self.fault(0..self.value.len(), message, label)
    }

    /// Returns an error in a metric: it cannot be parsed, or no run will have it.
    pub(crate) fn metric(self, error: &metric::Error) -> Box<Diagnostic> {
        let (message, help) = message_and_help(error);
        let fault = self.fault(faulty_range(self.value, error), message, "");
        Box::new(Diagnostic { help, ..*fault })
    }
}

/// Returns an error in the part `guilty` of a string, which is searched in a file from the position `from`.
/// A string with escapes differs from its source text and is not found; then the position itself is marked.
pub(crate) fn in_file(
    source: &Source,
    (from, text): (usize, &str),
    guilty: &Range<usize>,
    (message, help): (String, Vec<String>),
) -> Box<Diagnostic> {
    let there = source.text()[from..].find(&format!("\"{text}\"")).map(|at| from + at + 1);
    let at = there.map_or(from..from, |at| at + guilty.start..at + guilty.end);
    let place = Place::find(source.name(), source.text(), at.start, at.end);
    Box::new(Diagnostic { message, place, label: String::new(), help })
}

/// Returns the error in one line, and the lines of help.
pub(crate) fn message_and_help(error: &metric::Error) -> (String, Vec<String>) {
    let text = error.to_string();
    let mut lines = text.lines().map(str::to_owned);
    (lines.next().unwrap_or_default(), lines.collect())
}

/// Returns the byte range of a metric that is in error.
pub(crate) fn faulty_range(text: &str, error: &metric::Error) -> Range<usize> {
    let part = match error {
        metric::Error::Unknown { name, .. } | metric::Error::NotInRun { name, .. } => name,
        metric::Error::Syntax { text, .. } => text,
    };
    // skip the metric's own name: it may contain the name of a flow, such as `a` in `goodput[a]`
    let from =
        if matches!(error, metric::Error::NotInRun { .. }) { text.find(['[', '.']).unwrap_or(0) } else { 0 };
    text[from..].find(part.as_str()).map_or(0..text.len(), |at| from + at..from + at + part.len())
}
