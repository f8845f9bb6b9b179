//! Satellite congestion controls, simulated and on real paths.

mod figures;
mod live;
mod probes;
mod proofs;

use super::Part;
use super::validation::{Asked, tables};

pub(super) const PARTS: [Part; 9] = [
    ("proofs", proofs::check),
    ("cells", |_, list| tables(list, &CELLS)),
    ("figures", figures::check),
    ("rate", |_, list| tables(list, &RATE)),
    ("case-l", live::short),
    ("case-w", live::long),
    ("probes", probes::check),
    ("mixed", live::mixed),
    ("cpu", live::cpu),
];

/// Checks against other simulators.
const CELLS: [Asked; 5] = [
    Asked { table: "Random loss, without jitter: vegas", rows: 3, what: "Vegas as the reference sheet says" },
    Asked { table: "Random loss, CUBIC", rows: 6, what: "CUBIC as the reference sheet says" },
    Asked { table: "Random loss, Westwood+", rows: 3, what: "Westwood+ as ns-2's, with what is Linux's own" },
    Asked {
        table: "Random loss, the order of schemes",
        rows: 3,
        what: "Westwood+, Vegas, SACK and Hybla in the order of ns-2 and Hybla's paper",
    },
    Asked { table: "Random loss, BBR", rows: 3, what: "BBR within 6 % of ns-3 at 1e-4, 1e-3, 1e-2" },
];

/// Explicit rate, simulated.
const RATE: [Asked; 5] = [
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
