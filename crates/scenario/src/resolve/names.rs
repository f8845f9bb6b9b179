//! Link directions by name.

use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::scalars::Name;
use crate::types::{Direction, LinkSpec};
use std::collections::BTreeMap;

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
        let names = self.0.keys().map(String::as_str);
        self.0.get(word).copied().ok_or_else(|| Fault::unknown(name.span, "link", word, names))
    }
}
