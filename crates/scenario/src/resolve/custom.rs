//! Resolves `[[nodes]]`. In a scenario each stands at the start of a link direction, in a gateway file
//! before the satellite hop.

use super::names::Directions;
use crate::custom::CustomSpec;
use crate::diagnostic::{Fault, Result};
use crate::keys::{Custom, Customs};
use crate::types::Direction;
use std::collections::BTreeSet;

/// Maximum number of `[[nodes]]`.
const MAX_CUSTOMS: usize = 1000;

/// Resolves the nodes of a scenario.
pub(super) fn resolve(given: Option<&Customs>, names: &Directions) -> Result<Vec<(Direction, CustomSpec)>> {
    let place = |keys: &Custom| match &keys.link {
        Some(link) => names.find(link),
        None => Err(Fault::new(keys.span, "[[nodes]] has no `link`", "`link` must be given")),
    };
    each(given, place)
}

/// Resolves the nodes of a gateway file.
pub(crate) fn of_gateway_file(given: Option<&Customs>) -> Result<Vec<CustomSpec>> {
    let place = |keys: &Custom| match &keys.link {
        Some(link) => {
            Err(Fault::new(link.span, "`link` is for scenarios", "here there is one hop: drop this"))
        }
        None => Ok(()),
    };
    Ok(each(given, place)?.into_iter().map(|((), spec)| spec).collect())
}

fn each<T>(given: Option<&Customs>, place: impl Fn(&Custom) -> Result<T>) -> Result<Vec<(T, CustomSpec)>> {
    let mut taken = BTreeSet::new();
    let mut all = Vec::new();
    for keys in given.iter().flat_map(|given| &given.0) {
        let name = keys.name.value.0.clone();
        if all.len() == MAX_CUSTOMS {
            let label = format!("the limit is {MAX_CUSTOMS}");
            return Err(Fault::new(keys.span, "there are too many nodes", label));
        }
        if !taken.insert(name.clone()) {
            let message = format!("two nodes are called `{name}`");
            return Err(Fault::new(keys.name.span, message, "this name is taken"));
        }
        let kind = (keys.kind.value.0.as_str(), keys.kind.span);
        all.push((place(keys)?, CustomSpec::new(name, kind, (keys.rest.clone(), keys.span))?));
    }
    Ok(all)
}
