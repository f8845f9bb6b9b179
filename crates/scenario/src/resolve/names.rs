//! Link directions by name.

use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::scalars::Name;
use crate::types::{Direction, LinkSpec};
use std::cell::OnceCell;
use std::collections::BTreeMap;

pub(super) struct Directions<'a> {
    links: &'a [LinkSpec],
    /// Made with the first search: most scenarios with many links have none.
    by_name: OnceCell<BTreeMap<&'a str, Direction>>,
}

impl<'a> Directions<'a> {
    pub(super) const fn new(links: &'a [LinkSpec]) -> Self {
        Self { links, by_name: OnceCell::new() }
    }

    fn by_name(&self) -> &BTreeMap<&'a str, Direction> {
        let both = |(n, link): (usize, &'a LinkSpec)| {
            let direction = |backward| Direction { link: n, backward };
            [(&*link.name, direction(false)), (&*link.reverse_name, direction(true))]
        };
        self.by_name.get_or_init(|| self.links.iter().enumerate().flat_map(both).collect())
    }

    pub(super) fn find(&self, name: &At<Name>) -> Result<Direction> {
        let (all, word) = (self.by_name(), &*name.value.0);
        all.get(word).copied().ok_or_else(|| Fault::unknown(name.span, "link", word, all.keys().copied()))
    }
}
