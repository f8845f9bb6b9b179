//! Reads single values of figure files.

use super::types::{PrintedValue, Tolerance};
use crate::amount::parse_amount;
use crate::diagnostic::{Fault, Result, bail};
use crate::form::{At, Form, Read, wrong};
use crate::lists::value_text;
use crate::scalars::excerpt;
use crate::source::{MAX_FILE, Span};
use crate::value::{Kind, Value};
use serde_json::json;

const MAX_SETTINGS: usize = 100;

/// The name, path or text of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioText(pub(crate) String);

/// A single value as text.
#[derive(Clone, Debug)]
pub(crate) struct Coordinate(pub(crate) String);

/// A number, with or without a unit.
#[derive(Clone, Debug)]
pub(crate) struct Printed(pub(crate) PrintedValue);

/// The lowest and the highest value.
#[derive(Clone, Debug)]
pub(crate) struct Interval(pub(crate) [At<Printed>; 2]);

/// Names of parameters with their places, and values as `--set` takes them.
#[derive(Clone, Debug)]
pub(crate) struct Settings(pub(crate) Vec<(Span, String, At<String>)>);

fn scalar_schema() -> serde_json::Value {
    json!({ "type": ["string", "number", "boolean"] })
}

impl Read for ScenarioText {
    const FORM: Form = Form::Fixed("name, path or text", || json!({ "type": "string", "minLength": 1 }));

    fn read(value: &Value, key: &str) -> Result<Self> {
        let text = value.text().ok_or_else(|| {
            wrong(value, key, "a name, a path or the text of a scenario")
                .help("help: write scenario = \"window\", or the text in three apostrophes")
        })?;
        if text.trim().is_empty() || text.len() > MAX_FILE {
            bail!(value.span, "`{key}` names no scenario", "write a name such as \"window\"");
        }
        Ok(Self(text.to_owned()))
    }
}

impl Read for Coordinate {
    const FORM: Form = Form::Fixed("value", scalar_schema);

    fn read(value: &Value, key: &str) -> Result<Self> {
        value_text(key, value).map(Self)
    }
}

impl Read for Printed {
    const FORM: Form = Form::Fixed("number or quantity", || json!({ "type": ["string", "number"] }));

    fn read(value: &Value, key: &str) -> Result<Self> {
        let text = value_text(key, value)?;
        match parse_amount(&text) {
            Ok(amount) => Ok(Self(PrintedValue { text, amount })),
            Err(why) => Err(Fault::new(value.span, format!("`{key}`: {why}"), "")),
        }
    }
}

impl Read for Interval {
    const FORM: Form = Form::Fixed(
        "[lowest, highest]",
        || json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": ["string", "number"] } }),
    );

    fn read(value: &Value, key: &str) -> Result<Self> {
        match &value.kind {
            Kind::Array(two) if two.len() == 2 => {
                let read = |v: &Value| Ok(At { value: Printed::read(v, key)?, span: v.span });
                Ok(Self([read(&two[0])?, read(&two[1])?]))
            }
            _ => Err(wrong(value, key, "a list of two values").help("help: write [lowest, highest]")),
        }
    }
}

impl Read for Settings {
    const FORM: Form = Form::Fixed(
        "value for each name",
        || json!({ "type": "object", "additionalProperties": scalar_schema() }),
    );

    fn read(value: &Value, key: &str) -> Result<Self> {
        let Kind::Table(table) = &value.kind else {
            return Err(wrong(value, key, "a table")
                .help("help: write set = { name = value, ... } with names of parameters"));
        };
        if table.0.len() > MAX_SETTINGS {
            return Err(Fault::too_many(value.span, "parameters", MAX_SETTINGS));
        }
        let all = table.0.iter().map(|entry| {
            let set = At { value: value_text(&entry.key, &entry.value)?, span: entry.value.span };
            Ok((entry.span, entry.key.clone(), set))
        });
        all.collect::<Result<_>>().map(Self)
    }
}

impl Read for Tolerance {
    const FORM: Form =
        Form::Fixed("share or quantity", || json!({ "type": "string", "examples": ["5 %", "0.1 Mbit/s"] }));

    fn read(value: &Value, key: &str) -> Result<Self> {
        let help = "help: write a share, as in \"5 %\", or an amount with its unit, as in \"0.1 Mbit/s\"";
        let Some(text) = value.text().map(str::trim) else {
            return Err(wrong(value, key, "a share or an amount in quotes").help(help));
        };
        let amount = parse_amount(text).map_err(|_| {
            let message = format!("`{key}` cannot be \"{}\"", excerpt(text));
            Fault::new(value.span, message, "without a tolerance nothing is checked").help(help)
        })?;
        if amount.value < 0.0 {
            let message = format!("`{key}` is negative");
            return Err(Fault::new(value.span, message, "write how far a mean may be, without a sign"));
        }
        Ok(if text.ends_with('%') { Self::Share(amount.value) } else { Self::Amount(amount) })
    }
}
