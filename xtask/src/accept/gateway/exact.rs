//! Every byte, and every end (4).

use crate::accept::List;
use crate::accept::place::Place;

pub(super) fn check(place: &Place, list: &mut List) {
    let _ = (place, list);
}
