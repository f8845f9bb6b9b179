//! TCP-Peach+.
//!
//! Source: Akyildiz, Zhang, Fang, "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks", 2002.
//! Jump start is Peach's sudden start with NIL segments; quick recovery is its rapid recovery with a SACK
//! scoreboard. A NIL segment carries data that is not yet acknowledged: it probes for spare capacity and may
//! repair a loss. The algorithm is in `probing.rs`; data ACKs of the window expanding period grow the window
//! as usual. Deviations: those of `probing.rs`. The paper's order of NIL segments is not known; here the
//! oldest segments that are not SACKed come first, in turn.

use super::ProbeCarry;
use super::law::{Law, Params as _, Values};
use super::probing::{Probing, Switches};
use crate::params;

params! {
    /// Parameters of TCP-Peach+.
    pub struct PeachPlusParams {
        /// Queues on the path serve probes last. If a scenario does not set it, it follows from the
        /// `discipline` of the queues. Off: no jump start, and a quarter of the probes, which repair losses
        /// and never open the window.
        assume_priority: bool = true;
        /// Largest window of jump start in segments.
        probe_cap: f64 = 64.0, from 2.0, to 1e6;
        /// DSCP of probes; 1 is LE.
        probe_dscp: f64 = 1.0, from 0.0, to 63.0;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const LAW: Law = Law {
    params: PeachPlusParams::LIST,
    probes: true,
    ..Law::new("peach-plus", |start, values| Box::new(Probing::new(start, switches(values))))
};

fn switches(values: &Values) -> Switches {
    let p = PeachPlusParams::of(values);
    Switches::of_peach(ProbeCarry::OldestInTurn, p.assume_priority, p.probe_cap, p.probe_dscp)
}
