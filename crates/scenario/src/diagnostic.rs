//! Errors that underline the wrong characters and say what to write instead.

use crate::source::{Sources, Span};
pub(crate) use bentpipe_base::names::{listed, nearest};
use core::fmt::Write as _;

/// Maximum length of a message or label, in characters.
const MAX_LINE: usize = 300;

/// One error in a scenario file or on the command line.
///
/// `Display` prints the full message in plain text, without a newline at the end: message, place, the line
/// with the wrong text underlined, and help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render())]
pub struct Diagnostic {
    /// What is wrong, in one line.
    pub message: String,
    /// Where the error is.
    pub place: Place,
    /// Text beside the underline.
    pub label: String,
    /// Help, one line each: allowed values, similar names, where a parameter is used.
    pub help: Vec<String>,
}

/// A place in a text, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, or `command line`.
    pub name: String,
    /// Line number, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The line, or an excerpt of it. Control characters are shown as blanks.
    pub text: String,
    /// Characters of `text` before the underline.
    pub offset: usize,
    /// Length of the underline in characters, at least 1.
    pub width: usize,
}

impl Diagnostic {
    fn render(&self) -> String {
        let place = &self.place;
        let number = place.line.to_string();
        let gutter = " ".repeat(number.len());
        let mut out = format!("{}\n", self.message);
        let _ = writeln!(out, "{gutter}--> {}:{}:{}", place.name, place.line, place.column);
        let _ = writeln!(out, "{gutter} |");
        let _ = writeln!(out, "{number} | {}", place.text);
        let underline = format!("{}{}", " ".repeat(place.offset), "^".repeat(place.width));
        let _ = write!(out, "{gutter} | {underline} {}", self.label);
        out.truncate(out.trim_end().len());
        for line in &self.help {
            let _ = write!(out, "\n{gutter} = {line}");
        }
        out
    }
}

/// An error inside the crate: it has a span, but not the text around it. Boxed to keep `Result` small.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    span: Span,
    message: String,
    label: String,
    help: Vec<String>,
}

pub(crate) type Result<T> = core::result::Result<T, Fault>;

/// Creates a [`Fault`] from a span, a message and a label, both with captured values as in `format!`.
macro_rules! fault {
    ($span:expr, $message:literal) => {
        crate::diagnostic::Fault::new($span, format_args!($message).to_string(), "")
    };
    ($span:expr, $message:literal, $label:literal) => {
        crate::diagnostic::Fault::new(
            $span,
            format_args!($message).to_string(),
            format_args!($label).to_string(),
        )
    };
}

/// Returns a [`fault!`].
macro_rules! bail {
    ($($fault:tt)+) => {
        return Err(crate::diagnostic::fault!($($fault)+))
    };
}

pub(crate) use {bail, fault};

impl Fault {
    pub(crate) fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self(Box::new(Inner { span, message: message.into(), label: label.into(), help: Vec::new() }))
    }

    /// Creates the error for a missing key.
    pub(crate) fn missing(span: Span, whose: &str, key: &str) -> Self {
        Self::new(span, format!("{whose} has no `{key}`"), format!("`{key}` must be given"))
    }

    /// Creates the error for a value of zero.
    pub(crate) fn zero(span: Span, key: &str) -> Self {
        Self::new(span, format!("`{key}` must be more than zero"), "")
    }

    /// Creates the error for more than `most` of something.
    pub(crate) fn too_many(span: Span, what: &str, most: impl core::fmt::Display) -> Self {
        Self::new(span, format!("there are too many {what}"), format!("the limit is {most}"))
    }

    /// Creates the error for a name that is not unique.
    pub(crate) fn taken(span: Span, what: &str, name: &str) -> Self {
        Self::new(span, format!("two {what} are called `{name}`"), "this name is taken")
    }

    /// Creates the error for a name that is not one of `known`.
    pub(crate) fn unknown<'a>(
        span: Span,
        what: &str,
        word: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let message = format!("there is no {what} `{word}`");
        let help = format!("help: {what}s: {}", listed(known.clone()));
        Self::new(span, message, did_you_mean(word, known)).help(help)
    }

    /// Adds a line of help.
    #[must_use]
    pub(crate) fn help(mut self, line: impl Into<String>) -> Self {
        self.0.help.push(line.into());
        self
    }

    /// Looks up the text of the span and returns the diagnostic for the user.
    pub(crate) fn into_diagnostic(self, sources: &Sources<'_>) -> Box<Diagnostic> {
        let Inner { span, message, label, mut help } = *self.0;
        // keys and names from the user may contain line breaks or be very long
        let (message, label) = (shortened(&message, MAX_LINE), shortened(&label, MAX_LINE));
        help.extend(sources.used(span).map(|at| format!("note: used at {at}")));
        Box::new(Diagnostic { message, place: sources.place(span), label, help })
    }
}

/// Returns the text on one line, with at most `most` characters and `...` if there are more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let cut: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut.len() < text.len() { cut + "..." } else { cut }
}

/// Returns `did you mean ...?` if a known word is similar.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |k| format!("did you mean `{k}`?"))
}
