//! Ready-made links from `profiles.toml`, read with the same tables of keys as scenario files.

use crate::diagnostic::{Fault, Result};
use crate::form::{At, read_table, table};
use crate::keys::DirectionKeys;
use crate::resolve::profile_directions;
use crate::scalars::{Name, Text};
use crate::source::{Source, Span};
use crate::types::DirectionSpec;
use crate::value::{self, Kind, Value};
use std::sync::LazyLock;

const DATA: &str = include_str!("../profiles.toml");

/// A ready-made link.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name for `profile = "..."`.
    pub name: String,
    /// Description in one line.
    pub summary: String,
    /// RTT as text.
    pub rtt: String,
    /// Source of the numbers.
    pub source: String,
    /// Direction to the user.
    pub forward: DirectionSpec,
    /// Direction from the user.
    pub backward: DirectionSpec,
}

table! {
    struct ProfileKeys "[[profiles]]" {
        name: Name,
        summary: Text,
        rtt: Text,
        source: Text,
        forward: DirectionKeys,
        backward: DirectionKeys,
    }
}

/// The tables of the file, in the same order as the profiles.
static TABLES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let root = value::parse(&Source::new("profiles.toml", DATA)).expect("profiles.toml is TOML");
    match root.get("profiles").map(|profiles| &profiles.kind) {
        Some(Kind::Array(tables)) => tables.clone(),
        _ => Vec::new(),
    }
});

static ALL: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    TABLES.iter().map(resolve).collect::<Result<_>>().expect("profiles.toml holds profiles")
});

/// Returns all ready-made links, in the order of the file.
pub fn profiles() -> &'static [Profile] {
    &ALL
}

fn resolve(table: &Value) -> Result<Profile> {
    let keys = read_table::<ProfileKeys>(table, "profiles")?;
    let (forward, backward) =
        profile_directions(&keys.name.value.0, table.span, &keys.forward.value, &keys.backward.value)?;
    Ok(Profile {
        name: keys.name.value.0,
        summary: keys.summary.value.0,
        rtt: keys.rtt.value.0,
        source: keys.source.value.0,
        forward,
        backward,
    })
}

/// Returns the keys of both directions of a profile. Errors in them point at `name`.
pub(crate) fn profile_keys(name: &At<Name>) -> Result<(DirectionKeys, DirectionKeys)> {
    let word = &name.value.0;
    let names = profiles().iter().map(|p| p.name.as_str());
    let index = names.clone().position(|name| name == word);
    let index = index.ok_or_else(|| Fault::unknown(name.span, "profile", word, names))?;
    let mut table = TABLES[index].clone();
    set_span(&mut table, name.span);
    let keys = read_table::<ProfileKeys>(&table, "profile")?;
    Ok((keys.forward.value, keys.backward.value))
}

/// Sets the position of `value` and all values in it to `span`.
fn set_span(value: &mut Value, span: Span) {
    value.span = span;
    match &mut value.kind {
        Kind::Table(table) => {
            for entry in &mut table.0 {
                entry.span = span;
                set_span(&mut entry.value, span);
            }
        }
        Kind::Array(items) => items.iter_mut().for_each(|item| set_span(item, span)),
        _ => {}
    }
}
