//! Generates the JSON schema from the tables of keys, for editors with TOML completion and checks.

use crate::form::{Form, Key, Keys as _, TableInfo};
use crate::gateway_file::MAX_ITEMS;
use crate::keys::FileKeys;
use core::ops::RangeInclusive;
use serde_json::{Map, Value, json};

/// Pattern of a text that refers to a parameter.
const PARAMETER: &str = r"\$[A-Za-z0-9_-]+";

/// Pattern of a number before its unit.
const NUMBER: &str = r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)? *";

/// Returns the JSON schema of scenario files, ending in a newline.
pub fn schema() -> String {
    document(FileKeys::REF, "bentpipe scenario, schema 1", true)
}

/// Definitions of tables by name, and whether values can be parameters.
struct Definitions {
    all: Map<String, Value>,
    parameters: bool,
}

impl Definitions {
    /// Returns a pattern for a text that matches `pattern` completely, or is a parameter.
    fn pattern(&self, pattern: &str) -> String {
        if self.parameters { format!("^({pattern}|{PARAMETER})$") } else { format!("^({pattern})$") }
    }

    /// Returns the schema of a text that matches `pattern` completely, or is a parameter.
    fn text(&self, pattern: &str, example: &str) -> Vec<Value> {
        vec![json!({ "type": "string", "pattern": self.pattern(pattern), "examples": [example] })]
    }
}

/// Returns the schema of files with the keys of `root`, ending in a newline.
pub(crate) fn document(root: &'static TableInfo, title: &str, parameters: bool) -> String {
    let mut definitions = Definitions { all: Map::new(), parameters };
    if parameters {
        let parameter =
            json!({ "type": "string", "pattern": format!("^{PARAMETER}$"), "description": "A parameter" });
        definitions.all.insert("parameter".into(), parameter);
    }
    let mut properties = table(root, &mut definitions);
    let mut out = Map::new();
    out.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    out.insert("title".into(), title.into());
    out.append(&mut properties);
    out.insert("$defs".into(), definitions.all.into());
    format!("{:#}\n", Value::Object(out))
}

/// Joins lines of documentation to one paragraph.
pub(crate) fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|l| l.trim()).collect::<Vec<_>>().join(" ")
}

fn table(info: &'static TableInfo, definitions: &mut Definitions) -> Map<String, Value> {
    let keys = info.all_keys();
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), property(key, definitions))).collect();
    let required: Vec<_> = keys.iter().filter(|key| key.default.is_none()).map(|key| key.name).collect();
    let mut out = Map::new();
    out.insert("type".into(), "object".into());
    out.insert("description".into(), paragraph(info.doc).into());
    out.insert("properties".into(), properties.into());
    if !required.is_empty() {
        out.insert("required".into(), required.into());
    }
    out.insert("additionalProperties".into(), false.into());
    out
}

fn property(key: &Key, definitions: &mut Definitions) -> Value {
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

/// Returns the alternatives that a form allows, each as a schema.
fn choices(form: &Form, definitions: &mut Definitions) -> Vec<Value> {
    let parameter = definitions.parameters.then(|| json!({ "$ref": "#/$defs/parameter" }));
    let or = |one: Value| -> Vec<Value> { [one].into_iter().chain(parameter.clone()).collect() };
    match form {
        Form::Fixed(_, schema) => vec![schema()],
        Form::Scalar(_, schemas) => schemas().into_iter().chain(parameter.clone()).collect(),
        Form::Name => {
            vec![json!({ "type": "string", "pattern": definitions.pattern("[A-Za-z0-9._-]{1,64}") })]
        }
        Form::Whole(least, most) => or(json!({ "type": "integer", "minimum": least, "maximum": most })),
        Form::Quantity(quantity) => {
            let units: Vec<_> = quantity.units.iter().map(|u| u.name).collect();
            definitions.text(&format!("{NUMBER}({})", units.join("|")), quantity.example)
        }
        Form::Words(words) => or(json!({ "enum": words })),
        Form::Table(info) => vec![reference(info, definitions)],
        Form::List(info) => vec![json!({ "type": "array", "items": reference(info, definitions) })],
        Form::OpenList(info) => vec![open_list(info, definitions)],
        Form::Measure(measure) => {
            let units: Vec<_> = measure.units.iter().map(|u| u.0).collect();
            definitions.text(&format!("-?{NUMBER}({})", units.join("|")), measure.example)
        }
        Form::Pairs(a, b) => {
            let items = [a, b].map(|f| json!({ "anyOf": choices(f, definitions) }));
            let pair = json!({ "type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2 });
            vec![json!({ "type": "array", "minItems": 1, "items": pair })]
        }
        Form::Range(of) => one_or_list(of, 2..=2, definitions),
        Form::Special(special) => definitions.text(special.pattern, special.example),
        Form::Many(of) => one_or_list(of, 1..=MAX_ITEMS, definitions),
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

/// Returns the schema of a list of tables that may have keys beyond those of `info`.
fn open_list(info: &'static TableInfo, definitions: &mut Definitions) -> Value {
    let items = reference(info, definitions);
    if let Some(Value::Object(table)) = definitions.all.get_mut(&plain_title(info)) {
        table.insert("additionalProperties".into(), true.into());
    }
    json!({ "type": "array", "items": items })
}

/// Returns the schemas of a value, or of a list of `count` values.
fn one_or_list(of: &Form, count: RangeInclusive<usize>, definitions: &mut Definitions) -> Vec<Value> {
    let mut all = choices(of, definitions);
    let items = json!({ "anyOf": all });
    all.push(json!({ "type": "array", "minItems": count.start(), "maxItems": count.end(), "items": items }));
    all
}

/// Returns a reference to the definition of a table, and adds the definition if it is missing.
fn reference(info: &'static TableInfo, definitions: &mut Definitions) -> Value {
    let name = plain_title(info);
    if !definitions.all.contains_key(&name) {
        definitions.all.insert(name.clone(), Value::Null);
        let definition = table(info, definitions);
        definitions.all.insert(name.clone(), definition.into());
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Turns `[[flows]]` into `flows` and `a channel` into `channel`.
pub(crate) fn plain_title(info: &TableInfo) -> String {
    let title = info.title.trim_matches(['[', ']']);
    title.split(' ').next_back().unwrap_or(title).to_owned()
}
