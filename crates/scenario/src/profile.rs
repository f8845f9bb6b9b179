//! Ready-made links from `profiles.toml`, read with the same tables of keys as scenario files.

use crate::diagnostic::{Fault, Result};
use crate::form::{At, read_table, table};
use crate::keys::DirectionKeys;
use crate::resolve::profile_directions;
use crate::scalars::{Name, Text};
use crate::source::{Source, Span};
use crate::types::DirectionSpec;
use crate::value::{self, Kind, Table, Value};
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
    /// Keys of `profiles.toml`.
    struct ProfilesKeys "profiles.toml" {
        profiles: Vec<At<ProfileKeys>>,
    }

    struct ProfileKeys "[[profiles]]" {
        name: Name,
        summary: Text,
        rtt: Text,
        source: Text,
        forward: DirectionKeys,
        backward: DirectionKeys,
    }
}

static TREE: LazyLock<Table> =
    LazyLock::new(|| value::parse(&Source::new("profiles.toml", DATA)).expect("profiles.toml is TOML"));

static ALL: LazyLock<Vec<Profile>> = LazyLock::new(|| resolve().expect("profiles.toml holds profiles"));

/// Returns all ready-made links, in the order in which they are listed.
pub fn profiles() -> &'static [Profile] {
    &ALL
}

fn resolve() -> Result<Vec<Profile>> {
    let root = Value { span: Span::file(0..0), kind: Kind::Table(TREE.clone()) };
    let keys = read_table::<ProfilesKeys>(&root, "profiles.toml")?;
    let profile = |given: At<ProfileKeys>| {
        let keys = given.value;
        let (forward, backward) =
            profile_directions(&keys.name.value.0, given.span, &keys.forward.value, &keys.backward.value)?;
        Ok(Profile {
            name: keys.name.value.0,
            summary: keys.summary.value.0,
            rtt: keys.rtt.value.0,
            source: keys.source.value.0,
            forward,
            backward,
        })
    };
    keys.profiles.value.into_iter().map(profile).collect()
}

/// Returns the keys of both directions of a profile. Errors in them point at `name`.
pub(crate) fn find(name: &At<Name>) -> Result<(DirectionKeys, DirectionKeys)> {
    let word = &name.value.0;
    let trees = match TREE.get("profiles").map(|v| &v.kind) {
        Some(Kind::Array(trees)) => &trees[..],
        _ => &[],
    };
    let called = |tree: &Value| match &tree.kind {
        Kind::Table(table) => table.get("name").and_then(Value::text).is_some_and(|n| n == word),
        _ => false,
    };
    let Some(tree) = trees.iter().find(|tree| called(tree)) else {
        let names = profiles().iter().map(|p| p.name.as_str());
        return Err(Fault::unknown(name.span, "profile", word, names));
    };
    let mut tree = tree.clone();
    move_to(&mut tree, name.span);
    let keys = read_table::<ProfileKeys>(&tree, "profile")?;
    Ok((keys.forward.value, keys.backward.value))
}

/// Sets the position of `value` and all values in it to `span`.
fn move_to(value: &mut Value, span: Span) {
    value.span = span;
    match &mut value.kind {
        Kind::Table(table) => {
            for entry in &mut table.0 {
                entry.span = span;
                move_to(&mut entry.value, span);
            }
        }
        Kind::Array(items) => items.iter_mut().for_each(|item| move_to(item, span)),
        _ => {}
    }
}
