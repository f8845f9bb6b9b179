//! TCP-Peach+.
//!
//! Source: Akyildiz, Zhang, Fang, "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks", 2002.
//! Jump start is Peach's sudden start with NIL segments, quick recovery its rapid recovery on a SACK
//! scoreboard. A NIL segment carries data that is not yet acknowledged: it asks for room and may repair a
//! loss. The law is that of `probing.rs`; data ACKs of the window expanding period grow the window as ever.
//! Deviations: those of `probing.rs`. The order of NIL segments is not known to us: the oldest un-SACKed
//! first, in turn.

use super::ProbeCarry;
use super::law::{Law, Params as _, Values};
use super::probing::{Probing, Switches};
use crate::params;

params! {
    /// What users may set.
    pub struct PeachPlusParams {
        /// Queues on the way serve probes last; a scenario that does not say it has it from the `discipline`
        /// of its queues. Off: no jump start, and a quarter of the probes, which repair and never open the
        /// window.
        assume_priority: bool = true;
        /// Most segments that jump start opens the window to.
        probe_cap: f64 = 64.0, from 2.0, to 1e6;
        /// Differentiated-services code point of probes; 1 is LE.
        probe_dscp: f64 = 1.0, from 0.0, to 63.0;
    }
}

/// For the table of schemes.
pub const LAW: Law = Law {
    params: PeachPlusParams::LIST,
    probes: true,
    ..Law::new("peach-plus", |start, values| Box::new(Probing::new(start, switches(values))))
};

fn switches(values: &Values) -> Switches {
    let p = PeachPlusParams::of(values);
    Switches::of_peach(ProbeCarry::OldestInTurn, p.assume_priority, p.probe_cap, p.probe_dscp)
}
