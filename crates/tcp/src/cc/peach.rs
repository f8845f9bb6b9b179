//! TCP-Peach.
//!
//! Source: Akyildiz, Morabito, Palazzo, "TCP-Peach: a new congestion control scheme for satellite IP
//! networks", 2001. Sudden start replaces slow start, rapid recovery replaces fast recovery. A dummy segment
//! is a low-priority copy of the last segment sent: it probes for spare capacity and carries no new data. The
//! algorithm is in `probing.rs`; duplicate ACKs are counted as in NewReno (RFC 6582), and data ACKs of the
//! window expanding period grow the window as usual. Deviations: those of `probing.rs`. In the paper
//! receivers mark ACKs of dummies in reserved bits of the TCP header, which now belong to AccECN (RFC 9768);
//! here the probe option or DSACK identifies them (`probes.rs`). ACKs of dummies have default priority.

use super::ProbeCarry;
use super::law::{Algorithm, Params as _};
use super::probing::{PeachParams, Probing, ProbingParams};

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    params: PeachParams::LIST,
    probes: true,
    ..Algorithm::new("peach", |start, values| {
        let switches = ProbingParams::of_peach(ProbeCarry::LastSent, PeachParams::of(values));
        Box::new(Probing::new(start, switches))
    })
};
