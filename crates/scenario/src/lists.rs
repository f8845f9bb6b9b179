//! Reads lists.

use crate::diagnostic::{Fault, Result, bail, fault};
use crate::form::{At, Form, Read, wrong};
use crate::parameters::reference;
use crate::quantity;
use crate::scalars::Text;
use crate::source::Span;
use crate::value::{Kind, Value};
use bentpipe_base::Duration;
use serde_json::json;
use std::sync::Arc;

const MAX_TEXTS: usize = 100;
const MAX_AXES: usize = 16;
const MAX_VALUES: usize = 1000;
/// Maximum length of an axis value, the same as for `--set`.
const MAX_VALUE: usize = 4096;

/// Name of a parameter, its position, and its values as `--set` takes them.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) values: Vec<String>,
}

/// Returns the items of a list of 1 to `most` items.
pub(crate) fn items<'a>(value: &'a Value, key: &str, wanted: &str, most: usize) -> Result<&'a [Value]> {
    let Kind::Array(items) = &value.kind else { return Err(wrong(value, key, wanted)) };
    if items.is_empty() {
        bail!(value.span, "`{key}` is empty", "it has at least one item");
    }
    if items.len() > most {
        bail!(value.span, "`{key}` is too long", "the limit is {most} items");
    }
    Ok(items)
}

/// A list of at least one text.
impl Read for Vec<String> {
    const FORM: Form = Form::Fixed(
        "list of texts",
        || json!({ "type": "array", "minItems": 1, "items": { "type": "string" } }),
    );

    fn read(value: &Value, key: &str) -> Result<Self> {
        let items = items(value, key, "a list of texts", MAX_TEXTS)?;
        let mut all = Self::with_capacity(items.len());
        for item in items {
            let Text(text) = Text::read(item, key)?;
            if text.trim().is_empty() {
                bail!(item.span, "`{key}` holds an empty text");
            }
            if all.contains(&text) {
                bail!(item.span, "`{key}` says this twice", "drop one of them");
            }
            all.push(text);
        }
        Ok(all)
    }
}

impl Read for Vec<Axis> {
    const FORM: Form = Form::Fixed("list of values for each name", || {
        let value = json!({ "type": ["string", "number", "boolean"] });
        let values = json!({ "type": "array", "minItems": 1, "items": value });
        json!({ "type": "object", "additionalProperties": values })
    });

    fn read(value: &Value, key: &str) -> Result<Self> {
        let Kind::Table(table) = &value.kind else {
            return Err(wrong(value, key, "a table")
                .help("help: write axes = { name = [value, value], ... } with names of parameters"));
        };
        if table.0.is_empty() || table.0.len() > MAX_AXES {
            bail!(value.span, "this is not a set of axes", "a sweep has from 1 to {MAX_AXES} axes");
        }
        let axes = table.0.iter().map(|entry| {
            let name = entry.key.clone();
            Ok(Axis { values: axis_values(&name, &entry.value)?, name, span: entry.span })
        });
        axes.collect()
    }
}

/// Writes all numbers of an axis in one notation, whoever wrote them: with exponents if one of them is below
/// 0.01 (1e-5 and 1e-4, not 1e-5 and 0.0001), and with the fewest digits.
pub(crate) fn one_notation(values: Vec<String>) -> Vec<String> {
    const SMALL: f64 = 1e-2;
    // 0.5 is not 5e-1 to anybody
    const LARGE: f64 = 0.1;
    let number = |text: &str| {
        let is_plain = text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
        // whole numbers stay as they are: counts are no measurements
        let is_whole = text.parse::<i128>().is_ok();
        text.parse::<f64>().ok().filter(|n| is_plain && !is_whole && n.is_finite())
    };
    let has_small = values.iter().filter_map(|text| number(text)).any(|n| n != 0.0 && n.abs() < SMALL);
    let written = |text: String| match number(&text) {
        None => text,
        Some(0.0) => "0".to_owned(),
        Some(n) if has_small && n.abs() < LARGE => format!("{n:e}"),
        Some(n) => format!("{n:?}"),
    };
    values.into_iter().map(written).collect()
}

/// Reads the values of one axis as text.
fn axis_values(name: &str, value: &Value) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let items = items(value, name, "a list of values", MAX_VALUES)?;
    let texts = items.iter().map(|item| value_text(name, item)).collect::<Result<_>>()?;
    for (item, text) in items.iter().zip(one_notation(texts)) {
        if all.contains(&text) {
            bail!(item.span, "axis `{name}` has this value twice", "the same runs would be made again");
        }
        all.push(text);
    }
    Ok(all)
}

/// Reads a single value as the text that `--set` takes. `name` is what it is a value of.
pub(crate) fn value_text(name: &str, item: &Value) -> Result<String> {
    let text = match &item.kind {
        Kind::Text(text) | Kind::Raw(text) => text.clone(),
        Kind::Integer(n) => n.to_string(),
        Kind::Number(n) if n.is_finite() => format!("{n:?}"),
        Kind::Number(_) => return Err(Fault::new(item.span, "this number must be finite", "")),
        Kind::Switch(on) => on.to_string(),
        Kind::Array(_) | Kind::Table(_) => return Err(wrong(item, name, "a list of single values")),
    };
    if reference(&text).is_some() {
        bail!(item.span, "the value of an axis cannot refer to a parameter");
    }
    if text.len() > MAX_VALUE {
        bail!(item.span, "this is too long", "the limit is {MAX_VALUE} bytes");
    }
    Ok(text)
}

const MAX_PAIRS: usize = 100_000;
const MAX_NUMBERS: usize = 500_000;

/// A list of at least one pair: `[[time, value], ...]`.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<A, B>(pub(crate) Vec<(At<A>, At<B>)>);

/// One value, or `[lowest, highest]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinMax<T> {
    pub(crate) min: T,
    pub(crate) max: T,
}

/// Times in whole milliseconds, in increasing order: a mahimahi trace.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityTimes(pub(crate) Arc<[Duration]>);

/// Path of a file that the caller reads.
#[derive(Clone, Debug)]
pub(crate) struct Path(pub(crate) String);

/// Describes the values in a list or range, for errors.
fn form_in_words(form: &Form) -> String {
    crate::reference::form(form).replace(['`', '"'], "")
}

impl<A: Read, B: Read> Read for Pairs<A, B> {
    const FORM: Form = Form::Pairs(&A::FORM, &B::FORM);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let pair = format!("[{}, {}]", form_in_words(&A::FORM), form_in_words(&B::FORM));
        let items = items(value, key, &format!("a list of pairs {pair}"), MAX_PAIRS)?;
        let pairs = items.iter().map(|item| match &item.kind {
            Kind::Array(two) if two.len() == 2 => Ok((
                At { value: A::read(&two[0], key)?, span: two[0].span },
                At { value: B::read(&two[1], key)?, span: two[1].span },
            )),
            _ => Err(fault!(item.span, "`{key}` is a list of pairs {pair}", "this is not a pair")),
        });
        pairs.collect::<Result<_>>().map(Self)
    }
}

impl<T: Read + Copy + PartialOrd> Read for MinMax<T> {
    const FORM: Form = Form::Range(&T::FORM);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let Kind::Array(items) = &value.kind else {
            return T::read(value, key).map(|v| Self { min: v, max: v });
        };
        let [least, most] = &items[..] else {
            let message = format!("`{key}` is one {0}, or a list of two", form_in_words(&T::FORM));
            return Err(Fault::new(value.span, message, "write [lowest, highest]"));
        };
        let range = Self { min: T::read(least, key)?, max: T::read(most, key)? };
        if range.min <= range.max {
            return Ok(range);
        }
        Err(Fault::new(most.span, format!("`{key}` ends below its beginning"), "write [lowest, highest]"))
    }
}

impl Read for OpportunityTimes {
    const FORM: Form = Form::Fixed(
        "list of whole milliseconds",
        || json!({ "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } }),
    );

    fn read(value: &Value, key: &str) -> Result<Self> {
        let mut all: Vec<Duration> = Vec::new();
        for item in items(value, key, "a list of whole milliseconds", MAX_NUMBERS)? {
            let Kind::Integer(n) = item.kind else {
                return Err(wrong(item, key, "a list of whole milliseconds"));
            };
            let time = millis(n).map_err(|why| Fault::new(item.span, format!("`{key}` is {why}"), ""))?;
            if all.last().is_some_and(|last| *last > time) {
                bail!(item.span, "`{key}` goes back in time", "this is earlier");
            }
            all.push(time);
        }
        if all.last().is_none_or(|last| last.is_zero()) {
            bail!(value.span, "`{key}` ends at 0", "the last instant is its length");
        }
        Ok(Self(all.into()))
    }
}

/// Converts milliseconds to a time in the range that a scenario allows.
pub(crate) fn millis(n: i128) -> core::result::Result<Duration, &'static str> {
    match u64::try_from(n).ok().and_then(|n| n.checked_mul(1_000_000)) {
        Some(ns) if ns <= quantity::YEAR => Ok(Duration(ns)),
        _ if n < 0 => Err("negative"),
        _ => Err("more than a year"),
    }
}

impl Read for Path {
    const FORM: Form = Form::Fixed("path of a file", || json!({ "type": "string", "minLength": 1 }));

    fn read(value: &Value, key: &str) -> Result<Self> {
        let text = value.text().ok_or_else(|| wrong(value, key, "the path of a file, in quotes"))?;
        if text.is_empty() || text.len() > MAX_VALUE || text.chars().any(char::is_control) {
            bail!(value.span, "`{key}` is not a path", "it is one line of 1 to {MAX_VALUE} bytes");
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_axis_have_one_notation() {
        for (written, read) in [
            ("1e-5 0.0001 0.01", "1e-5 1e-4 1e-2"),
            ("1e-05 0.0001 0.0", "1e-5 1e-4 0"),
            ("0.00015 1 2", "1.5e-4 1 2"),
            ("0.001 0.01 0.50", "1e-3 1e-2 0.5"),
            ("1e-2 0.50", "0.01 0.5"),
            ("1 2 4", "1 2 4"),
            ("-0.0005 nan inf 5kB", "-5e-4 nan inf 5kB"),
        ] {
            let values = written.split(' ').map(str::to_owned).collect();
            assert_eq!(one_notation(values).join(" "), read);
        }
    }
}
