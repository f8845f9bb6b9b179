//! Resolves `[[nodes]]`. In a scenario each stands at the start of a link direction, in a gateway file
//! before the satellite hop.

use super::names::Directions;
use crate::custom::CustomSpec;
use crate::diagnostic::{Fault, Result};
use crate::keys::{Custom, Customs};
use crate::types::Direction;
use std::collections::BTreeSet;

const MAX_CUSTOMS: usize = 1000;

pub(super) fn resolve(given: Option<&Customs>, names: &Directions) -> Result<Vec<(Direction, CustomSpec)>> {
    let place = |keys: &Custom| match &keys.link {
        Some(link) => names.find(link),
        None => Err(Fault::missing(keys.span, "[[nodes]]", "link")),
    };
    each(given, place)
}

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
            return Err(Fault::too_many(keys.span, "nodes", MAX_CUSTOMS));
        }
        if !taken.insert(name.clone()) {
            return Err(Fault::taken(keys.name.span, "nodes", &name));
        }
        let kind = (keys.kind.value.0.as_str(), keys.kind.span);
        all.push((place(keys)?, CustomSpec::new(name, kind, (keys.rest.clone(), keys.span))?));
    }
    Ok(all)
}
