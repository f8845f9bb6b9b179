//! Link directions by name.

use crate::diagnostic::{Fault, Result, did_you_mean, listed};
use crate::form::At;
use crate::scalars::Name;
use crate::types::{Direction, LinkSpec};
use std::collections::BTreeMap;

/// All link directions by name.
pub(super) struct Directions(BTreeMap<String, Direction>);

impl Directions {
    pub(super) fn new(links: &[LinkSpec]) -> Self {
        let both = |(n, link): (usize, &LinkSpec)| {
            let direction = |backward| Direction { link: n, backward };
            [(link.name.clone(), direction(false)), (link.reverse_name.clone(), direction(true))]
        };
        Self(links.iter().enumerate().flat_map(both).collect())
    }

    pub(super) fn find(&self, name: &At<Name>) -> Result<Direction> {
        let word = &name.value.0;
        self.0.get(word).copied().ok_or_else(|| {
            let names = || self.0.keys().map(String::as_str);
            Fault::new(name.span, format!("there is no link `{word}`"), did_you_mean(word, names()))
                .help(format!("help: links: {}", listed(names())))
        })
    }
}
