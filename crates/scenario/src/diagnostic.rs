//! Errors that point at the guilty characters and say what to write instead.

use crate::source::{Sources, Span};
pub(crate) use bentpipe_base::names::{listed, nearest};
use core::fmt::Write as _;

/// One error in a scenario file or on the command line.
///
/// Its `Display` is the whole picture, in plain text and without a newline at the end:
/// message, place, the line with the offending text underlined, and help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render())]
pub struct Diagnostic {
    /// What is wrong, in one line.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Said beside the underline.
    pub label: String,
    /// What is allowed, what was probably meant, where a parameter is used: one line each.
    pub help: Vec<String>,
}

/// A place in a text, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, or `command line`.
    pub name: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The line, or what fits of it; control characters are shown as blanks.
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

/// An error on its way up: it knows a span, not yet the text around it.
///
/// Boxed inside, so that the good path stays small.
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

impl Fault {
    pub(crate) fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self(Box::new(Inner { span, message: message.into(), label: label.into(), help: Vec::new() }))
    }

    /// Adds a line of help.
    #[must_use]
    pub(crate) fn help(mut self, line: impl Into<String>) -> Self {
        self.0.help.push(line.into());
        self
    }

    /// Adds a line of help if there is one.
    #[must_use]
    pub(crate) fn maybe(self, line: Option<String>) -> Self {
        match line {
            Some(line) => self.help(line),
            None => self,
        }
    }

    /// With the texts at hand, what the user sees.
    pub(crate) fn place(self, sources: &Sources<'_>) -> Box<Diagnostic> {
        let Inner { span, message, label, mut help } = *self.0;
        let (message, label) = (one_line(&message), one_line(&label));
        help.extend(sources.used(span).map(|at| format!("note: used at {at}")));
        Box::new(Diagnostic { message, place: sources.place(span), label, help })
    }
}

/// Keys and names are the user's: they may hold line breaks, or the whole rest of the file.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut cut: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut.len() < text.len() {
        cut += "...";
    }
    cut
}

/// `did you mean ...?`, when something is near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |k| format!("did you mean `{k}`?"))
}
