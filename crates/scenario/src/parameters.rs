//! `[parameters]`, `--set`, and the `"$name"` references that they replace.

use crate::diagnostic::{Fault, Result, bail, did_you_mean, fault, listed};
use crate::form::{Form, Read, wrong};
use crate::source::{Span, set_spans};
use crate::types::ParamValue;
use crate::value::{Kind, Table, Value};
use serde_json::json;
use std::collections::BTreeMap;

const MAX_PARAMETERS: usize = 1000;
const MAX_SET: usize = 4096;

/// The declared parameters, with the values of this run.
pub(crate) struct Parameters {
    list: Vec<Parameter>,
    index: BTreeMap<String, usize>,
}

struct Parameter {
    name: String,
    span: Span,
    default: Value,
    set: Option<Value>,
    used: bool,
}

/// `[parameters]` as a key of the file. Its contents are read before all other keys, by [`Parameters`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParameterDeclarations;

impl Parameters {
    /// Reads the declarations and applies `sets`; the last one of a name wins.
    pub(crate) fn read(root: &Table, sets: &[(String, String)]) -> Result<Self> {
        let mut all = Self { list: Vec::new(), index: BTreeMap::new() };
        if let Some(value) = root.get("parameters") {
            let Kind::Table(table) = &value.kind else {
                return Err(wrong(value, "parameters", "a table"));
            };
            if table.0.len() > MAX_PARAMETERS {
                return Err(Fault::too_many(value.span, "parameters", MAX_PARAMETERS));
            }
            for entry in &table.0 {
                check_name(&entry.key, entry.span)?;
                let default = read_default(&entry.key, &entry.value)?;
                all.index.insert(entry.key.clone(), all.list.len());
                let (name, span) = (entry.key.clone(), entry.span);
                all.list.push(Parameter { name, span, default, set: None, used: false });
            }
        }
        for (n, (name, text)) in sets.iter().enumerate() {
            all.set(n, name, text)?;
        }
        Ok(all)
    }

    fn set(&mut self, n: usize, name: &str, text: &str) -> Result<()> {
        let (name_span, span) = set_spans(n, name, text);
        if name.len() + text.len() > MAX_SET {
            bail!(name_span, "this is too long", "the limit is {MAX_SET} bytes");
        }
        let Some(at) = self.index.get(name) else { return Err(self.unknown(name, name_span)) };
        self.list[*at].set = Some(Value { span, kind: Kind::Raw(text.trim().to_owned()) });
        Ok(())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|p| p.name.as_str())
    }

    pub(crate) fn unknown(&self, name: &str, span: Span) -> Fault {
        let allowed = match self.list.len() {
            0 => "help: the file declares no parameters".to_owned(),
            _ => format!("help: parameters: {}", listed(self.names())),
        };
        let shown = crate::scalars::excerpt(name);
        Fault::new(span, format!("there is no parameter `{shown}`"), did_you_mean(name, self.names()))
            .help(allowed)
    }

    /// Replaces `"$name"` by the value everywhere except in the declarations.
    pub(crate) fn substitute(&mut self, root: &mut Table) -> Result<()> {
        for entry in &mut root.0 {
            if !matches!(entry.key.as_str(), "parameters" | "resolved" | "sweep") {
                self.replace(&mut entry.value)?;
            }
        }
        Ok(())
    }

    fn replace(&mut self, value: &mut Value) -> Result<()> {
        match &mut value.kind {
            Kind::Table(table) => table.0.iter_mut().try_for_each(|e| self.replace(&mut e.value)),
            Kind::Array(items) => items.iter_mut().try_for_each(|v| self.replace(v)),
            Kind::Text(text) => {
                let Some(name) = reference(text) else { return Ok(()) };
                let Some(at) = self.index.get(name) else { return Err(self.unknown(name, value.span)) };
                let parameter = &mut self.list[*at];
                parameter.used = true;
                let used = Some((value.span.start, value.span.end));
                *value = parameter.set.as_ref().unwrap_or(&parameter.default).clone();
                value.span.used = used;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns an error for an unused parameter: it is a mistake, and `--set` would have no effect.
    pub(crate) fn check_used(&self) -> Result<()> {
        let Some(Parameter { name, span, .. }) = self.list.iter().find(|p| !p.used) else { return Ok(()) };
        Err(fault!(*span, "parameter `{name}` is never used", "write \"${name}\" somewhere, or drop it"))
    }

    /// Returns names and values for reports.
    pub(crate) fn resolved(&self) -> Vec<(String, ParamValue)> {
        self.list.iter().map(|p| (p.name.clone(), p.value())).collect()
    }
}

impl Parameter {
    /// Returns the value. One from `--set` is converted to the type of the default if possible.
    fn value(&self) -> ParamValue {
        let default = to_param_value(&self.default);
        let Some(Value { kind: Kind::Raw(text), .. }) = &self.set else { return default };
        let number = text.parse().ok().filter(|n: &f64| n.is_finite());
        match (default, text.parse(), number, text.as_str()) {
            (ParamValue::Integer(_), Ok(n), _, _) => ParamValue::Integer(n),
            (ParamValue::Integer(_) | ParamValue::Number(_), _, Some(n), _) => ParamValue::Number(n),
            (ParamValue::Switch(_), _, _, "true" | "on") => ParamValue::Switch(true),
            (ParamValue::Switch(_), _, _, "false" | "off") => ParamValue::Switch(false),
            _ => ParamValue::Text(text.clone()),
        }
    }
}

/// Converts a single value for reports.
fn to_param_value(value: &Value) -> ParamValue {
    match &value.kind {
        Kind::Integer(n) => i64::try_from(*n).map_or(ParamValue::Number(*n as f64), ParamValue::Integer),
        Kind::Number(n) => ParamValue::Number(*n),
        Kind::Switch(on) => ParamValue::Switch(*on),
        Kind::Text(text) | Kind::Raw(text) => ParamValue::Text(text.clone()),
        Kind::Array(_) | Kind::Table(_) => ParamValue::Text(String::new()),
    }
}

/// Returns `name` if the text is exactly `$name`.
pub(crate) fn reference(text: &str) -> Option<&str> {
    text.strip_prefix('$').filter(|name| !name.is_empty() && name.chars().all(in_name))
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn check_name(name: &str, span: Span) -> Result<()> {
    let label = if name.is_empty() || name.len() > 64 {
        "it has from 1 to 64 characters"
    } else if name.chars().all(in_name) {
        return Ok(());
    } else {
        "it is made of letters a-z and A-Z, digits, `-` and `_`"
    };
    Err(Fault::new(span, "this is not a name for a parameter", label))
}

/// Reads the default from `name = default` or `name = { default = .., doc = ".." }`.
fn read_default(name: &str, value: &Value) -> Result<Value> {
    let default = match &value.kind {
        Kind::Table(table) => {
            if let Some(entry) = table.0.iter().find(|e| !matches!(e.key.as_str(), "default" | "doc")) {
                let message = format!("unknown key `{}` in parameter `{name}`", entry.key);
                let hint = did_you_mean(&entry.key, ["default", "doc"]);
                return Err(
                    Fault::new(entry.span, message, hint).help("help: a parameter has the keys default, doc")
                );
            }
            if let Some(doc) = table.get("doc").filter(|d| !matches!(d.kind, Kind::Text(_))) {
                return Err(wrong(doc, "doc", "text in quotes"));
            }
            let message = || format!("parameter `{name}` has no default");
            let missing = || Fault::new(value.span, message(), "`default` must be given");
            table.get("default").ok_or_else(missing)?
        }
        _ => value,
    };
    match &default.kind {
        Kind::Array(_) | Kind::Table(_) => {
            Err(wrong(default, name, "a single value").help("help: parameters are text, numbers or switches"))
        }
        Kind::Text(text) if reference(text).is_some() => {
            Err(Fault::new(default.span, "a default cannot refer to another parameter", ""))
        }
        Kind::Text(text) if text.len() > MAX_SET => {
            Err(Fault::new(default.span, "this is too long", format!("the limit is {MAX_SET} bytes")))
        }
        _ => Ok(default.clone()),
    }
}

impl Read for ParameterDeclarations {
    const FORM: Form = Form::Fixed("name and default of each", || {
        let scalar = json!({ "type": ["string", "number", "boolean"] });
        let with_doc = json!({
            "type": "object",
            "properties": { "default": scalar, "doc": { "type": "string" } },
            "required": ["default"],
            "additionalProperties": false,
        });
        json!({ "type": "object", "additionalProperties": { "anyOf": [scalar, with_doc] } })
    });

    fn read(_: &Value, _: &str) -> Result<Self> {
        Ok(Self)
    }
}

/// `[resolved]`.
impl Read for Vec<(String, ParamValue)> {
    const FORM: Form = Form::Fixed(
        "name and value of each",
        || json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
    );

    fn read(value: &Value, key: &str) -> Result<Self> {
        let Kind::Table(table) = &value.kind else { return Err(wrong(value, key, "a table")) };
        let mut all = Self::with_capacity(table.0.len());
        for entry in &table.0 {
            check_name(&entry.key, entry.span)?;
            match &entry.value.kind {
                Kind::Array(_) | Kind::Table(_) => {
                    return Err(wrong(&entry.value, &entry.key, "a single value"));
                }
                Kind::Number(n) if !n.is_finite() => {
                    bail!(entry.value.span, "this number must be finite");
                }
                _ => all.push((entry.key.clone(), to_param_value(&entry.value))),
            }
        }
        Ok(all)
    }
}
