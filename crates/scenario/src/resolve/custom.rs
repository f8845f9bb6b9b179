//! Resolves `[[nodes]]`. In a scenario each stands at the start of a link direction, in a gateway file
//! before the satellite hop.

use super::names::Directions;
use super::unique_name;
use crate::custom::CustomSpec;
use crate::diagnostic::{Fault, Result, fault};
use crate::keys::Custom;
use crate::types::Direction;
use std::collections::BTreeSet;

const MAX_CUSTOMS: usize = 1000;

pub(super) fn resolve(given: &[Custom], names: &Directions<'_>) -> Result<Vec<(Direction, CustomSpec)>> {
    each(given, |custom| match &custom.keys.link {
        Some(link) => names.find(link),
        None => Err(Fault::missing(custom.span, "[[nodes]]", "link")),
    })
}

pub(crate) fn of_gateway_file(given: &[Custom]) -> Result<Vec<CustomSpec>> {
    let refuse_link = |custom: &Custom| match &custom.keys.link {
        Some(link) => Err(fault!(link.span, "`link` is for scenarios", "here there is one hop: drop this")),
        None => Ok(()),
    };
    Ok(each(given, refuse_link)?.into_iter().map(|((), spec)| spec).collect())
}

fn each<T>(given: &[Custom], place: impl Fn(&Custom) -> Result<T>) -> Result<Vec<(T, CustomSpec)>> {
    let mut taken = BTreeSet::new();
    let mut all = Vec::new();
    for custom in given {
        let name = unique_name(&mut taken, &custom.keys.name, custom.span, ("nodes", MAX_CUSTOMS))?;
        let kind = &custom.keys.kind;
        let kind = (kind.value.0.as_str(), kind.span);
        all.push((place(custom)?, CustomSpec::new(name, kind, (custom.rest.clone(), custom.span))?));
    }
    Ok(all)
}
