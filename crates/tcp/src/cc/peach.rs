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
use super::law::{Law, Params as _, Values};
use super::probing::{Probing, Switches};
use crate::params;

params! {
    /// Parameters of TCP-Peach.
    pub struct PeachParams {
        /// Queues on the path serve probes last. If a scenario does not set it, it follows from the
        /// `discipline` of the queues. Off: no sudden start, and a quarter of the probes, which repair losses
        /// and never open the window.
        assume_priority: bool = true;
        /// Largest window of sudden start in segments.
        probe_cap: f64 = 64.0, from 2.0, to 1e6;
        /// DSCP of probes; 1 is LE.
        probe_dscp: f64 = 1.0, from 0.0, to 63.0;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const LAW: Law = Law {
    params: PeachParams::LIST,
    probes: true,
    ..Law::new("peach", |start, values| Box::new(Probing::new(start, switches(values))))
};

fn switches(values: &Values) -> Switches {
    let p = PeachParams::of(values);
    Switches::of_peach(ProbeCarry::LastSent, p.assume_priority, p.probe_cap, p.probe_dscp)
}
