//! Input texts with positions: the scenario file, and each `--set` of the command line.

use crate::diagnostic::{Diagnostic, Place};
use core::ops::Range;

/// Maximum size of a scenario file in bytes.
pub const MAX_FILE: usize = 16 << 20;

/// Maximum length of a quoted line in a diagnostic, in characters.
const EXCERPT: usize = 140;

/// Text of a scenario file, and its name in diagnostics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    /// Creates a source. `name` is the file name shown in diagnostics.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// Creates a source from the bytes of a file.
    ///
    /// # Errors
    /// Bytes that are not UTF-8, with the position of the first.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self, Box<Diagnostic>> {
        let name = name.into();
        let error = match core::str::from_utf8(bytes) {
            Ok(text) => return Ok(Self { name, text: text.to_owned() }),
            Err(error) => error,
        };
        let at = error.valid_up_to();
        let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
        // All bytes up to `at` are valid, so the lossy text is identical up to there.
        let text = String::from_utf8_lossy(&bytes[..end]);
        Err(Box::new(Diagnostic {
            message: format!("{name} is not UTF-8 text"),
            place: Place::find(&name, &text, at, at + '\u{fffd}'.len_utf8()),
            label: format!("byte 0x{:02x} does not belong to any character", bytes[at]),
            help: vec!["help: save the file as UTF-8".into()],
        }))
    }

    /// The name given to [`Source::new`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A range of bytes in one of the input texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    /// 0 is the file, `n` the n-th `--set` or the n-th word of a command line.
    pub(crate) origin: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// For the value of a parameter: range in the file where it is used.
    pub(crate) used: Option<(u32, u32)>,
}

impl Span {
    /// A range of the scenario file.
    pub(crate) const fn file(range: Range<usize>) -> Self {
        Self { origin: 0, start: range.start as u32, end: range.end as u32, used: None }
    }

    /// A range of `--set` or word `index` of the command line, counted from 0.
    pub(crate) const fn word(index: usize, range: Range<usize>) -> Self {
        Self { origin: index as u32 + 1, ..Self::file(range) }
    }
}

/// All input texts of a run.
pub(crate) struct Sources<'a> {
    file: &'a Source,
    sets: Vec<String>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(file: &'a Source, sets: &[(String, String)]) -> Self {
        Self { file, sets: sets.iter().map(|(name, value)| format!("--set {name}={value}")).collect() }
    }

    /// Sources for words of the command line in place of `--set` options; no span refers to `file`.
    pub(crate) fn of_words(file: &'a Source, words: &[String]) -> Self {
        Self { file, sets: words.to_vec() }
    }

    /// Returns the place of a span, with the text of its line.
    pub(crate) fn place(&self, span: Span) -> Place {
        let range = (span.start as usize, span.end as usize);
        match span.origin.checked_sub(1).and_then(|n| self.sets.get(n as usize)) {
            Some(line) => Place::find("command line", line, range.0, range.1),
            None => Place::find(&self.file.name, &self.file.text, range.0, range.1),
        }
    }

    /// Returns where the value of a parameter is used, as `file:line:column`.
    pub(crate) fn used(&self, span: Span) -> Option<String> {
        let (start, end) = span.used?;
        let place = Place::find(&self.file.name, &self.file.text, start as usize, end as usize);
        Some(format!("{}:{}:{}", place.name, place.line, place.column))
    }
}

/// Returns the spans of name and value in `--set` number `index`, counted from 0.
pub(crate) fn set_spans(index: usize, name: &str, value: &str) -> (Span, Span) {
    let (start, middle) = ("--set ".len(), "--set ".len() + name.len());
    (Span::word(index, start..middle), Span::word(index, middle + 1..middle + 1 + value.len()))
}

impl Place {
    /// Finds the place of bytes `start..end` of `text`. Positions inside a character move back to its start.
    pub fn find(name: &str, text: &str, start: usize, end: usize) -> Self {
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(start), floor(end));
        let line_start = text[..start].rfind('\n').map_or(0, |n| n + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let column = text[line_start..start].chars().count();
        let width = text[start..end.clamp(start, line_end)].trim_end().chars().count().max(1);
        // A very long line is shown from shortly before the place.
        let skip = if line.chars().count() > EXCERPT { column.saturating_sub(EXCERPT / 4) } else { 0 };
        let shown = line.chars().skip(skip).take(EXCERPT);
        Self {
            name: name.to_owned(),
            line: text[..line_start].matches('\n').count() + 1,
            column: column + 1,
            text: shown.map(|c| if c.is_control() { ' ' } else { c }).collect(),
            offset: column - skip,
            width: width.min(EXCERPT - (column - skip).min(EXCERPT - 1)),
        }
    }
}
