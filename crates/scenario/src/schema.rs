//! The table of keys as a JSON schema, for editors that complete and check TOML.

use crate::form::{Form, Key, Keys as _, TableInfo};
use crate::keys::FileKeys;
use serde_json::{Map, Value, json};

/// Text that stands for a parameter.
const PARAMETER: &str = r"\$[A-Za-z0-9_-]+";

/// A number before its unit.
const NUMBER: &str = r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)? *";

/// The JSON schema of scenario files, ending in a newline.
pub fn schema() -> String {
    let mut definitions = Map::new();
    let parameter =
        json!({ "type": "string", "pattern": format!("^{PARAMETER}$"), "description": "A parameter" });
    definitions.insert("parameter".into(), parameter);
    let mut root = table(FileKeys::REF, &mut definitions);
    let mut out = Map::new();
    out.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    out.insert("title".into(), "bentpipe scenario, schema 1".into());
    if let Some(object) = root.as_object_mut() {
        out.append(object);
    }
    out.insert("$defs".into(), definitions.into());
    format!("{:#}\n", Value::Object(out))
}

/// Documentation lines as one paragraph.
pub(crate) fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|l| l.trim()).collect::<Vec<_>>().join(" ")
}

fn table(info: &'static TableInfo, definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    collect(info, definitions, &mut properties, &mut required);
    let mut out = Map::new();
    out.insert("type".into(), "object".into());
    out.insert("description".into(), paragraph(info.doc).into());
    out.insert("properties".into(), properties.into());
    if !required.is_empty() {
        out.insert("required".into(), required.into());
    }
    out.insert("additionalProperties".into(), false.into());
    out.into()
}

fn collect(
    info: &'static TableInfo,
    definitions: &mut Map<String, Value>,
    properties: &mut Map<String, Value>,
    required: &mut Vec<Value>,
) {
    for key in info.keys {
        properties.insert(key.name.into(), property(key, definitions));
        if key.default.is_none() {
            required.push(key.name.into());
        }
    }
    for included in info.includes {
        collect(included, definitions, properties, required);
    }
}

fn property(key: &Key, definitions: &mut Map<String, Value>) -> Value {
    let mut description = paragraph(key.doc);
    if let Some(default) = key.default {
        description = format!("{description} Default: {}.", default.replace('`', ""));
    }
    let mut choices = choices(&key.form, definitions);
    let mut out = Map::new();
    out.insert("description".into(), description.into());
    match (choices.pop(), choices.is_empty()) {
        (Some(Value::Object(mut only)), true) => out.append(&mut only),
        (last, _) => {
            choices.extend(last);
            out.insert("anyOf".into(), choices.into());
        }
    }
    out.into()
}

/// All that a form allows, each as a schema.
fn choices(form: &Form, definitions: &mut Map<String, Value>) -> Vec<Value> {
    let parameter = json!({ "$ref": "#/$defs/parameter" });
    match form {
        Form::Version => vec![json!({ "const": 1 })],
        Form::Text => vec![json!({ "type": "string", "maxLength": 500 })],
        Form::Name => {
            vec![json!({ "type": "string", "pattern": format!("^([A-Za-z0-9._-]{{1,64}}|{PARAMETER})$") })]
        }
        Form::Whole(least, most) => {
            vec![json!({ "type": "integer", "minimum": least, "maximum": most }), parameter]
        }
        Form::Number => vec![json!({ "type": "number" }), parameter],
        Form::Probability => vec![json!({ "type": "number", "minimum": 0, "maximum": 1 }), parameter],
        Form::Switch => vec![json!({ "type": "boolean" }), json!({ "enum": ["on", "off"] }), parameter],
        Form::Quantity(quantity) => {
            let units: Vec<_> = quantity.units.iter().map(|u| u.name).collect();
            let pattern = format!("^({NUMBER}({})|{PARAMETER})$", units.join("|"));
            vec![json!({ "type": "string", "pattern": pattern, "examples": [quantity.example] })]
        }
        Form::Words(words) => vec![json!({ "enum": words }), parameter],
        Form::Table(info) => vec![reference(info, definitions)],
        Form::List(info) => vec![json!({ "type": "array", "items": reference(info, definitions) })],
        Form::Parameters => vec![declarations()],
        Form::Resolved => {
            vec![
                json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
            ]
        }
        Form::Measure(measure) => {
            let units: Vec<_> = measure.units.iter().map(|u| u.0).collect();
            let pattern = format!("^(-?{NUMBER}({})|{PARAMETER})$", units.join("|"));
            vec![json!({ "type": "string", "pattern": pattern, "examples": [measure.example] })]
        }
        Form::Path => vec![json!({ "type": "string", "minLength": 1 })],
        Form::Pairs(a, b) => {
            let items = [a, b].map(|f| json!({ "anyOf": choices(f, definitions) }));
            let pair = json!({ "type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2 });
            vec![json!({ "type": "array", "minItems": 1, "items": pair })]
        }
        Form::Range(of) => {
            let mut all = choices(of, definitions);
            let items = json!({ "anyOf": all });
            all.push(json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": items }));
            all
        }
        Form::Millis => {
            vec![json!({ "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } })]
        }
        Form::Texts => vec![json!({ "type": "array", "minItems": 1, "items": { "type": "string" } })],
        Form::Axes => {
            let values = json!({ "type": "array", "minItems": 1, "items": { "type": ["string", "number", "boolean"] } });
            vec![json!({ "type": "object", "additionalProperties": values })]
        }
        Form::Either(forms) => {
            let mut all: Vec<Value> = Vec::new();
            for choice in forms.iter().flat_map(|f| choices(f, definitions)) {
                if !all.contains(&choice) {
                    all.push(choice);
                }
            }
            all
        }
    }
}

fn declarations() -> Value {
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    let with_doc = json!({
        "type": "object",
        "properties": { "default": scalar, "doc": { "type": "string" } },
        "required": ["default"],
        "additionalProperties": false,
    });
    json!({ "type": "object", "additionalProperties": { "anyOf": [scalar, with_doc] } })
}

/// A reference to a table's definition, which is added when it is not there yet.
fn reference(info: &'static TableInfo, definitions: &mut Map<String, Value>) -> Value {
    let name = plain_title(info);
    if !definitions.contains_key(&name) {
        definitions.insert(name.clone(), Value::Null);
        let definition = table(info, definitions);
        definitions.insert(name.clone(), definition);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// `[[flows]]` is `flows`, `a channel` is `channel`.
pub(crate) fn plain_title(info: &TableInfo) -> String {
    let title = info.title.trim_matches(['[', ']']);
    title.split(' ').next_back().unwrap_or(title).to_owned()
}
