//! Parses TOML text into a tree of values with their positions.

use crate::diagnostic::{Fault, Result, bail};
use crate::source::{MAX_FILE, Source, Span};
use std::borrow::Cow;
use toml::de::{DeTable, DeValue};
use toml_parser::lexer::TokenKind;

/// Maximum nesting of arrays and inline tables, and of dots in a key. Scenario files need four.
const MAX_DEPTH: usize = 16;
/// Keys whose values are lists of tables.
const LISTS: [&str; 11] = [
    "hosts",
    "routers",
    "links",
    "gateways",
    "flow_routers",
    "middleboxes",
    "flows",
    "timeline",
    "instruments",
    "captures",
    "rules",
];

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Text(String),
    /// Text from `--set`. The key that uses it determines its type.
    Raw(String),
    Integer(i128),
    Number(f64),
    Switch(bool),
    Array(Vec<Value>),
    Table(Table),
}

/// Entries in file order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) Vec<Entry>);

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Span,
    pub(crate) value: Value,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|e| e.key == key).map(|e| &e.value)
    }
}

impl Value {
    /// Returns the name of the type of the value, for errors.
    pub(crate) fn called(&self) -> &'static str {
        match self.kind {
            Kind::Text(_) | Kind::Raw(_) => "text",
            Kind::Integer(_) | Kind::Number(_) => "a bare number",
            Kind::Switch(_) => "a switch",
            Kind::Array(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }

    /// Returns quoted text, or text from `--set`.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) | Kind::Raw(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text, or a bare number as text; empty for other types.
    pub(crate) fn number_text(&self) -> Cow<'_, str> {
        match &self.kind {
            Kind::Text(text) | Kind::Raw(text) => text.trim().into(),
            Kind::Integer(n) => n.to_string().into(),
            Kind::Number(n) => n.to_string().into(),
            _ => "".into(),
        }
    }
}

pub(crate) fn parse(source: &Source) -> Result<Table> {
    let text = source.text();
    if text.len() > MAX_FILE {
        let message = format!("the file is longer than {} MiB", MAX_FILE >> 20);
        return Err(Fault::new(Span::file(0..0), message, ""));
    }
    check_depth(text)?;
    let root = DeTable::parse(text).map_err(|error| syntax(text, &error))?;
    table(root.get_ref())
}

/// Returns an error for deep nesting. The parser limits its own recursion, but code that visits or drops the
/// result must not overflow the stack.
fn check_depth(text: &str) -> Result<()> {
    let (mut depth, mut dots) = (0_usize, 0_usize);
    for token in toml_parser::Source::new(text).lex() {
        match token.kind() {
            TokenKind::LeftCurlyBracket | TokenKind::LeftSquareBracket => depth += 1,
            TokenKind::RightCurlyBracket | TokenKind::RightSquareBracket => depth = depth.saturating_sub(1),
            TokenKind::Dot => dots += 1,
            TokenKind::Equals | TokenKind::Comma | TokenKind::Newline => dots = 0,
            _ => {}
        }
        if depth.max(dots) > MAX_DEPTH {
            let span = Span::file(token.span().start()..token.span().end());
            bail!(span, "tables and lists are nested too deeply", "the limit is {MAX_DEPTH}");
        }
    }
    Ok(())
}

/// Replaces a syntax error of the parser by a clearer one where possible.
fn syntax(text: &str, error: &toml::de::Error) -> Fault {
    let range = error.span().unwrap_or(0..0);
    let word = text.get(range.clone()).unwrap_or("").trim();
    let fault = |label: &str| Fault::new(Span::file(range.clone()), "this is not TOML", label);
    let message = error.message();
    if message.starts_with("string values must be quoted") {
        return match word {
            "" => fault("a value is missing here"),
            "on" => fault("a switch is `true`, or `\"on\"` in quotes"),
            "off" => fault("a switch is `false`, or `\"off\"` in quotes"),
            _ => fault(&format!("text and quantities stand in quotes: \"{word}\"")),
        };
    }
    if message.starts_with("unexpected key or value, expected newline")
        && let Some(written) = unquoted(text, range.start)
    {
        return fault(&format!("text stands in quotes: \"{written}\""));
    }
    if message == "duplicate key" {
        let label = format!("`{word}` was given before");
        let twice = Fault::new(Span::file(range), "a key is given twice", label);
        let help = format!("help: to add another one, write [[{word}]]");
        return if LISTS.contains(&word) { twice.help(help) } else { twice };
    }
    fault(message)
}

/// Returns the value of the line in which the parser found more than one word at `at`, if it is text without
/// quotes. A comment is not part of it.
fn unquoted(text: &str, at: usize) -> Option<&str> {
    let begin = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(begin..)?.lines().next()?;
    let value = line.split_once('=')?.1.split('#').next()?.trim();
    let plain = value.starts_with(char::is_alphabetic) && !value.contains(['"', '\'', '\\', '[', '{']);
    plain.then_some(value)
}

fn table(source: &DeTable<'_>) -> Result<Table> {
    let mut entries = Vec::with_capacity(source.len());
    for (key, item) in source {
        let (span, value) = (Span::file(key.span()), value(item.get_ref(), item.span())?);
        entries.push(Entry { key: key.get_ref().to_string(), span, value });
    }
    entries.sort_by_key(|e| e.span.start);
    Ok(Table(entries))
}

fn value(source: &DeValue<'_>, range: core::ops::Range<usize>) -> Result<Value> {
    let span = Span::file(range);
    let kind = match source {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(n) => match i128::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Kind::Integer(n),
            Err(_) => return Err(Fault::new(span, "this number is too large", "")),
        },
        DeValue::Float(n) => match n.as_str().parse() {
            Ok(n) => Kind::Number(n),
            Err(_) => return Err(Fault::new(span, "this is not a number", "")),
        },
        DeValue::Boolean(on) => Kind::Switch(*on),
        DeValue::Datetime(_) => {
            bail!(span, "nothing here is a date", "write a time with a unit, such as \"500 s\"");
        }
        DeValue::Array(items) => {
            Kind::Array(items.iter().map(|v| value(v.get_ref(), v.span())).collect::<Result<_>>()?)
        }
        DeValue::Table(entries) => Kind::Table(table(entries)?),
    };
    Ok(Value { span, kind })
}
