//! `tcp = { scheme = ..., ... }`: a congestion control scheme and its parameters.
//!
//! The parameters come from the table of schemes in `bentpipe_tcp`, so a new scheme needs no change.

use super::tcp::RecoveryKeys;
use crate::diagnostic::Result;
use crate::form::{At, Form, Key, Keys, Read, TableInfo, optional, read_table, required};
use crate::quantity;
use crate::scalars::SchemeName;
use crate::schema::paragraph;
use crate::source::Span;
use crate::value::{Table, Value};
use bentpipe_tcp::Scheme;
use bentpipe_tcp::cc::law::{self, Param, Range};
use bentpipe_tcp::cc::probing::ASSUME_PRIORITY;
use core::fmt::Write as _;

/// A scheme and the parameters to change.
#[derive(Clone, Debug)]
pub(crate) struct SchemeKeys {
    pub(crate) scheme: At<SchemeName>,
    pub(crate) recovery: Option<At<RecoveryKeys>>,
    /// Parameters given in the file. Whether the scheme has them is checked later.
    pub(crate) params: Vec<(&'static str, At<law::Value>)>,
}

/// Number of keys that every scheme has.
const COMMON: usize = 2;
/// Number of all keys.
const COUNT: usize = COMMON + distinct();

/// True if an earlier entry of the table of schemes has a parameter named like parameter `p` of scheme `s`.
const fn is_known(s: usize, p: usize) -> bool {
    let name = Scheme::algorithm(s).params[p].name;
    let (mut i, mut j) = (0, 0);
    while i < s || j < p {
        if j >= Scheme::algorithm(i).params.len() {
            (i, j) = (i + 1, 0);
            continue;
        }
        if same(Scheme::algorithm(i).params[j].name.as_bytes(), name.as_bytes()) {
            return true;
        }
        j += 1;
    }
    false
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Number of distinct parameter names.
const fn distinct() -> usize {
    let (mut count, mut s) = (0, 0);
    while s < Scheme::NAMES.len() {
        let mut p = 0;
        while p < Scheme::algorithm(s).params.len() {
            count += !is_known(s, p) as usize;
            p += 1;
        }
        s += 1;
    }
    count
}

const fn form(range: Range) -> Form {
    match range {
        Range::Number { .. } => Form::Number,
        Range::Switch { .. } => Form::Switch,
        Range::Time { .. } => Form::Quantity(&quantity::TIME),
    }
}

/// The keys: `scheme`, `recovery`, then each distinct parameter name.
const KEYS: [Key; COUNT] = {
    let mut keys = [const {
        Key {
            name: "recovery",
            form: <RecoveryKeys as Read>::FORM,
            default: Some("as the scheme"),
            doc: &["Loss recovery."],
        }
    }; COUNT];
    keys[0] = Key {
        name: "scheme",
        form: <SchemeName as Read>::FORM,
        default: None,
        doc: &["Name of the scheme."],
    };
    let (mut at, mut s) = (COMMON, 0);
    while s < Scheme::NAMES.len() {
        let params = Scheme::algorithm(s).params;
        let mut p = 0;
        while p < params.len() {
            if !is_known(s, p) {
                keys[at] = Key {
                    name: params[p].name,
                    form: form(params[p].range),
                    default: Some("as the scheme"),
                    doc: &["A parameter of the scheme, if it has it: see below."],
                };
                at += 1;
            }
            p += 1;
        }
        s += 1;
    }
    keys
};

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
fn read(table: &Table, name: &str, form: &Form) -> Result<Option<At<law::Value>>> {
    fn at<T: Read>(table: &Table, name: &str, wrap: fn(T) -> law::Value) -> Result<Option<At<law::Value>>> {
        let given = optional::<T>(table, name)?;
        Ok(given.map(|At { value, span }| At { value: wrap(value), span }))
    }
    match form {
        Form::Switch => at(table, name, law::Value::Switch),
        Form::Number => at(table, name, law::Value::Number),
        _ => at(table, name, law::Value::Time),
    }
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
        keys: &KEYS,
        includes: &[],
        below: Some(parameters),
    };

    fn pick(table: &Table, span: Span, whose: &str) -> Result<Self> {
        let scheme = required(table, "scheme", whose, span)?;
        let recovery = optional(table, "recovery")?;
        let mut params = Vec::new();
        for key in &KEYS[COMMON..] {
            params.extend(read(table, key.name, &key.form)?.map(|value| (key.name, value)));
        }
        for param in registered() {
            params.extend(read(table, param.name, &form(param.range))?.map(|value| (param.name, value)));
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
