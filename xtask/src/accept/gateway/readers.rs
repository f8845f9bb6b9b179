//! Receivers whose application reads slowly, pauses, or stops (3).

use crate::accept::List;
use crate::accept::place::Place;

pub(super) fn check(place: &Place, list: &mut List) {
    let _ = (place, list);
}
