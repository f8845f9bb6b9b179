//! TCP-Peach and TCP-Peach+.
//!
//! Source of Peach: Akyildiz, Morabito, Palazzo, "TCP-Peach: a new congestion control scheme for satellite IP
//! networks", 2001. Sudden start replaces slow start, rapid recovery replaces fast recovery. A dummy segment
//! is a low-priority copy of the last segment sent: it probes for spare capacity and carries no new data. The
//! algorithm is in `probing.rs`; duplicate ACKs are counted as in NewReno (RFC 6582), and data ACKs of the
//! window expanding period grow the window as usual. Deviations: those of `probing.rs`. In the paper
//! receivers mark ACKs of dummies in reserved bits of the TCP header, which now belong to AccECN (RFC 9768);
//! here the probe option or DSACK identifies them (`probes.rs`). ACKs of dummies have default priority.
//!
//! Source of Peach+: Akyildiz, Zhang, Fang, "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks",
//! 2002. Jump start is sudden start with NIL segments; quick recovery is rapid recovery with a SACK
//! scoreboard. A NIL segment carries data that is not yet acknowledged: it probes for spare capacity and may
//! repair a loss. Deviation: the paper's order of NIL segments is not known; here the oldest segments that
//! are not SACKed come first, in turn.

use super::ProbeCarry;
use super::law::{Algorithm, Params as _};
use super::probing::{PeachParams, Probing, ProbingParams};

/// Peach's entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    probes: true,
    ..Algorithm::of::<PeachParams>("peach", |start, values| {
        Box::new(Probing::new(start, ProbingParams::of_peach(ProbeCarry::LastSent, PeachParams::of(values))))
    })
};

/// The entry of Peach+.
pub const PLUS: Algorithm = Algorithm {
    probes: true,
    ..Algorithm::of::<PeachParams>("peach-plus", |start, values| {
        let params = ProbingParams::of_peach(ProbeCarry::OldestInTurn, PeachParams::of(values));
        Box::new(Probing::new(start, params))
    })
};
