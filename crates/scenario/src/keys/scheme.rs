//! `tcp = { scheme = ..., ... }`: a congestion control scheme and its parameters.
//!
//! The parameters come from the table of schemes in `bentpipe_tcp`, so a new scheme needs no change here.

use super::tcp::RecoveryKeys;
use crate::diagnostic::Result;
use crate::form::{At, Form, Key, Keys, Read, TableInfo, optional, read_table, required};
use crate::schema::paragraph;
use crate::source::Span;
use crate::value::{Table, Value};
use bentpipe_base::Duration;
use bentpipe_tcp::Scheme;
use bentpipe_tcp::cc::law::{self, Param, Range};
use bentpipe_tcp::cc::probing::ASSUME_PRIORITY;
use core::fmt::Write as _;
use std::sync::LazyLock;

/// A scheme and the parameters to change.
#[derive(Clone, Debug)]
pub(crate) struct SchemeKeys {
    pub(crate) scheme: At<Scheme>,
    pub(crate) recovery: Option<At<RecoveryKeys>>,
    /// Parameters given in the file. Whether the scheme has them is checked later.
    pub(crate) params: Vec<(&'static str, At<law::Value>)>,
}

const fn form(range: Range) -> Form {
    match range {
        Range::Number { .. } => f64::FORM,
        Range::Switch { .. } => bool::FORM,
        Range::Time { .. } => Duration::FORM,
    }
}

/// Returns the parameters of `schemes`. A name comes once for each scheme that has it.
fn params(schemes: impl Iterator<Item = Scheme>) -> impl Iterator<Item = &'static Param> {
    schemes.flat_map(|scheme| scheme.growth.algorithm().params)
}

/// The keys: `scheme`, `recovery`, then each distinct parameter name of the built-in schemes.
static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let default = Some("as the scheme");
    let mut keys = vec![
        Key { name: "scheme", form: <Scheme as Read>::FORM, default: None, doc: &["Name of the scheme."] },
        Key { name: "recovery", form: <RecoveryKeys as Read>::FORM, default, doc: &["Loss recovery."] },
    ];
    for param in params(Scheme::all().take(Scheme::NAMES.len())) {
        if keys.iter().all(|key| key.name != param.name) {
            let doc = &["A parameter of the scheme, if it has it: see below."];
            keys.push(Key { name: param.name, form: form(param.range), default, doc });
        }
    }
    keys
});

/// Returns a Markdown table of the parameters of each scheme, for the reference page.
fn parameters() -> String {
    let mut out = String::from("Parameters of the schemes that have some:\n\n");
    out.push_str("| scheme | key | value | default | meaning |\n|---|---|---|---|---|\n");
    for scheme in Scheme::all() {
        for Param { name, doc, range } in scheme.growth.algorithm().params {
            let (value, default) = match *range {
                Range::Number { least, most, default } => (bounds(least, most), default.to_string()),
                // the default depends on the queue disciplines on the path
                Range::Switch { .. } if *name == ASSUME_PRIORITY => {
                    ("switch".to_owned(), "as the queues".to_owned())
                }
                Range::Switch { default } => ("switch".to_owned(), default.to_string()),
                Range::Time { least, most, default } => (bounds(least, most), format!("\"{default}\"")),
            };
            let _ =
                writeln!(out, "| {} | `{name}` | {value} | `{default}` | {} |", scheme.name, paragraph(doc));
        }
    }
    out
}

/// Returns a range as text for the reference page and for errors.
pub(crate) fn bounds(least: impl core::fmt::Display, most: impl core::fmt::Display) -> String {
    format!("from {least} to {most}")
}

fn read(value: &Value, param: &Param) -> Result<law::Value> {
    match param.range {
        Range::Number { .. } => Read::read(value, param.name).map(law::Value::Number),
        Range::Switch { .. } => Read::read(value, param.name).map(law::Value::Switch),
        Range::Time { .. } => Read::read(value, param.name).map(law::Value::Time),
    }
}

impl Keys for SchemeKeys {
    const INFO: TableInfo = TableInfo {
        title: "tcp",
        doc: &["A scheme and what to change about it."],
        keys: || KEYS.as_slice(),
        includes: &[],
        below: Some(parameters),
    };

    fn pick(table: &Table, span: Span, whose: &str) -> Result<Self> {
        let scheme = required(table, "scheme", whose, span)?;
        let recovery = optional(table, "recovery")?;
        let mut given: Vec<(&'static str, At<law::Value>)> = Vec::new();
        for param in params(Scheme::all()) {
            // of parameters with the same name, the first determines the type
            let value = table.get(param.name).filter(|_| given.iter().all(|(name, _)| *name != param.name));
            if let Some(value) = value {
                given.push((param.name, At { value: read(value, param)?, span: value.span }));
            }
        }
        Ok(Self { scheme, recovery, params: given })
    }

    fn more() -> Vec<&'static str> {
        let names = params(Scheme::all().skip(Scheme::NAMES.len())).map(|param| param.name);
        names.filter(|name| KEYS.iter().all(|key| key.name != *name)).collect()
    }

    fn over(self, _base: &Self) -> Self {
        self // a scheme replaces another one as a whole
    }
}

impl Read for SchemeKeys {
    const FORM: Form = Form::Table(<Self as Keys>::REF);

    fn read(value: &Value, key: &str) -> Result<Self> {
        read_table(value, key)
    }
}
