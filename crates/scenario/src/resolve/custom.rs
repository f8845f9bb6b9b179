//! `[[nodes]]`: each at the beginning of a direction of a link.

use super::names::Directions;
use crate::custom::CustomSpec;
use crate::diagnostic::{Fault, Result};
use crate::keys::Customs;
use std::collections::BTreeSet;

/// Most of them.
const MAX_CUSTOMS: usize = 1000;

pub(super) fn resolve(given: Option<&Customs>, names: &Directions) -> Result<Vec<CustomSpec>> {
    let given = given.map_or(&[][..], |given| &given.0);
    let mut taken = BTreeSet::new();
    let mut all = Vec::new();
    for (n, node) in given.iter().enumerate() {
        let keys = &node.value;
        let name = keys.name.value.0.clone();
        if n == MAX_CUSTOMS {
            return Err(Fault::new(
                node.span,
                "there are too many nodes",
                format!("the limit is {MAX_CUSTOMS}"),
            ));
        }
        if !taken.insert(name.clone()) {
            let message = format!("two nodes are called `{name}`");
            return Err(Fault::new(keys.name.span, message, "this name is taken"));
        }
        let kind = (keys.kind.value.0.as_str(), keys.kind.span);
        all.push(CustomSpec::new(name, kind, names.find(&keys.link)?, (keys.rest.clone(), node.span))?);
    }
    Ok(all)
}
