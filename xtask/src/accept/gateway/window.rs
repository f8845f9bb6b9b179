//! Table 2 (1): the gain, over time, beside the simulator.

use crate::accept::List;
use crate::accept::place::Place;

pub(super) fn check(place: &Place, list: &mut List) {
    let _ = (place, list);
}
