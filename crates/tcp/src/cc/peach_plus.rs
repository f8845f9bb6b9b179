//! TCP-Peach+.
//!
//! Source: Akyildiz, Zhang, Fang, "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks", 2002.
//! Jump start is Peach's sudden start with NIL segments; quick recovery is its rapid recovery with a SACK
//! scoreboard. A NIL segment carries data that is not yet acknowledged: it probes for spare capacity and may
//! repair a loss. The algorithm is in `probing.rs`; data ACKs of the window expanding period grow the window
//! as usual. Deviations: those of `probing.rs`. The paper's order of NIL segments is not known; here the
//! oldest segments that are not SACKed come first, in turn.

use super::ProbeCarry;
use super::law::{Algorithm, Params as _};
use super::probing::{PeachParams, Probing, ProbingParams};

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    params: PeachParams::LIST,
    probes: true,
    ..Algorithm::new("peach-plus", |start, values| {
        let switches = ProbingParams::of_peach(ProbeCarry::OldestInTurn, PeachParams::of(values));
        Box::new(Probing::new(start, switches))
    })
};
