//! `tcp = { scheme = ..., ... }`: a congestion control scheme and its parameters.
//!
//! The parameters come from the table of schemes in `bentpipe_tcp`, so a new scheme needs no change.

use super::tcp::RecoveryKeys;
use crate::diagnostic::Result;
use crate::form::{At, Form, Key, Keys, Read, TableInfo, optional, read_table, required};
use crate::quantity;
use crate::schema::paragraph;
use crate::source::Span;
use crate::value::{Table, Value};
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

/// Number of keys that every scheme has.
const COMMON: usize = 2;

const fn form(range: Range) -> Form {
    match range {
        Range::Number { .. } => Form::Number,
        Range::Switch { .. } => Form::Switch,
        Range::Time { .. } => Form::Quantity(&quantity::TIME),
    }
}

/// The keys: `scheme`, `recovery`, then each distinct parameter name of the built-in schemes.
static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let default = Some("as the scheme");
    let mut keys = vec![
        Key { name: "scheme", form: <Scheme as Read>::FORM, default: None, doc: &["Name of the scheme."] },
        Key { name: "recovery", form: <RecoveryKeys as Read>::FORM, default, doc: &["Loss recovery."] },
    ];
    let schemes = Scheme::all().take(Scheme::NAMES.len());
    for param in schemes.flat_map(|scheme| scheme.growth.algorithm().params) {
        if keys.iter().all(|key| key.name != param.name) {
            let doc = &["A parameter of the scheme, if it has it: see below."];
            keys.push(Key { name: param.name, form: form(param.range), default, doc });
        }
    }
    keys
});

/// Markdown table of the parameters of each scheme, for the reference page.
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

/// A range as text for the reference page.
pub(crate) fn bounds(least: impl core::fmt::Display, most: impl core::fmt::Display) -> String {
    format!("from {least} to {most}")
}

/// Reads a parameter if it is given.
fn read(table: &Table, name: &str, form: Form) -> Result<Option<At<law::Value>>> {
    let Some(given) = table.get(name) else { return Ok(None) };
    let value = match form {
        Form::Switch => law::Value::Switch(Read::read(given, name)?),
        Form::Number => law::Value::Number(Read::read(given, name)?),
        _ => law::Value::Time(Read::read(given, name)?),
    };
    Ok(Some(At { value, span: given.span }))
}

/// Parameters of registered schemes that have no key in `KEYS`.
fn registered() -> impl Iterator<Item = &'static Param> {
    let params = Scheme::all().skip(Scheme::NAMES.len()).flat_map(|scheme| scheme.growth.algorithm().params);
    params.filter(|param| KEYS.iter().all(|key| key.name != param.name))
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
        let mut params = Vec::new();
        let built_in = KEYS.iter().skip(COMMON).map(|key| (key.name, key.form));
        let registered = registered().map(|param| (param.name, form(param.range)));
        for (name, form) in built_in.chain(registered) {
            params.extend(read(table, name, form)?.map(|value| (name, value)));
        }
        Ok(Self { scheme, recovery, params })
    }

    fn more() -> Vec<&'static str> {
        registered().map(|param| param.name).collect()
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
