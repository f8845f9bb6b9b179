//! What the gateway must not change: captures before and after it (8).

use super::readers::told;
use super::run::Bed;
use crate::accept::List;

/// Kinds of connections that are looked at.
const KINDS: usize = 6;

pub(super) fn check(bed: &Bed, list: &mut List) {
    told(list, (8, "before and after the gateway"), bed.text(&["untouched"]), KINDS);
}
