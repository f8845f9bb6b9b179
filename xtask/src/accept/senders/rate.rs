//! Explicit rate, simulated (5): tables of the validation, by their names.

use super::cells::{Asked, of_the_validation};
use crate::accept::List;
use crate::accept::place::Place;

/// The tables of the line, and how many of their rows are judged.
const LINES: [Asked; 5] = [
    Asked {
        table: "Rate of new payload under a grant",
        rows: 25,
        what: "RTT 10 ms to 1 s, loss 0 to 10 %: within 3 % of the ceiling",
    },
    Asked {
        table: "Rate of new payload when acknowledgments are lost",
        rows: 2,
        what: "10 % of the ACKs lost: costs less than 3 %",
    },
    Asked {
        table: "8 MiB under a grant",
        rows: 1,
        what: "8 MiB, RTT 40 ms, loss 2 %: median of 50 at most 0.83 s",
    },
    Asked {
        table: "Segments before the fallback",
        rows: 1,
        what: "loss 20 %: falls back within 5000 packets",
    },
    Asked { table: "Fallbacks at a loss of 9 %", rows: 1, what: "loss 9 %, a million packets: never" },
];

pub(super) fn check(_: &Place, list: &mut List) {
    for asked in &LINES {
        list.line(5, &of_the_validation(asked));
    }
}
