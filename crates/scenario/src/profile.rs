//! Named links: data in `profiles.toml`, read with the same table of keys as everything else.

use crate::diagnostic::{Fault, Result, did_you_mean, listed};
use crate::form::{At, read_table, table};
use crate::keys::DirectionKeys;
use crate::resolve::profile_directions;
use crate::scalars::{Name, Text};
use crate::source::{Source, Span};
use crate::types::DirectionSpec;
use crate::value::{self, Kind, Table, Value};
use std::sync::LazyLock;

/// The data.
const DATA: &str = include_str!("../profiles.toml");

/// A ready-made link.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What `profile = "..."` says.
    pub name: String,
    /// One line.
    pub summary: String,
    /// Its round-trip time in words.
    pub rtt: String,
    /// Where its numbers come from.
    pub source: String,
    /// To the user.
    pub forward: DirectionSpec,
    /// From the user.
    pub backward: DirectionSpec,
}

table! {
    /// The file of profiles.
    struct ProfilesKeys "profiles.toml" {
        required {
            /// The profiles.
            profiles: Vec<At<ProfileKeys>>,
        }
    }
}

table! {
    /// A ready-made link.
    struct ProfileKeys "[[profiles]]" {
        required {
            /// What `profile` says.
            name: Name,
            /// One line.
            summary: Text,
            /// Round-trip time in words.
            rtt: Text,
            /// Where its numbers come from.
            source: Text,
            /// To the user.
            forward: DirectionKeys,
            /// From the user.
            backward: DirectionKeys,
        }
    }
}

/// The file as a tree.
static TREE: LazyLock<Table> =
    LazyLock::new(|| value::parse(&Source::new("profiles.toml", DATA)).expect("profiles.toml is TOML"));

/// Everything resolved.
static ALL: LazyLock<Vec<Profile>> = LazyLock::new(|| resolve().expect("profiles.toml holds profiles"));

/// All named links, in the order in which they are listed.
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

/// The keys of both directions of a profile. Errors about them point at the name that asked for it.
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
        let names = || profiles().iter().map(|p| p.name.as_str());
        return Err(Fault::new(
            name.span,
            format!("there is no profile `{word}`"),
            did_you_mean(word, names()),
        )
        .help(format!("help: profiles: {}", listed(names()))));
    };
    let mut tree = tree.clone();
    move_to(&mut tree, name.span);
    let keys = read_table::<ProfileKeys>(&tree, "profile")?;
    Ok((keys.forward.value, keys.backward.value))
}

/// Says of everything in `value` that it was written at `span`.
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
