//! `bentpipe scenarios`: the scenarios that come with the program.

use crate::outcome::Failure;
use crate::shipped;
use core::fmt::Write as _;
use serde_json::{Value, json};

/// What to do with the list.
const HINTS: &str = "
Run one:           bentpipe sim sharing --set tcp=bbr
Begin your own:    bentpipe scenarios sharing > mine.toml
";

pub(crate) fn list(as_json: bool) -> String {
    let all: Vec<(&str, &str)> =
        shipped::names().filter_map(|name| Some((name, shipped::title(name)?))).collect();
    if as_json {
        let object = |(name, title): &(&str, &str)| json!({ "name": name, "title": title });
        return format!("{:#}\n", Value::Array(all.iter().map(object).collect()));
    }
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, title) in all {
        let _ = writeln!(out, "{name:width$}  {title}");
    }
    out + HINTS
}

/// Returns the text of a scenario.
pub(crate) fn text(name: &str) -> Result<String, Failure> {
    let source = shipped::scenario(name).map_err(|(near, _)| {
        let near = if near.is_empty() { near } else { format!(": {near}") };
        Failure::input(format!("there is no scenario `{name}`{near}\nhelp: bentpipe scenarios lists them"))
    })?;
    Ok(source.text().to_owned())
}
