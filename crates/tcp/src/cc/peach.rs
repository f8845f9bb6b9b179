//! TCP-Peach.
//!
//! Source: Akyildiz, Morabito, Palazzo, "TCP-Peach: a new congestion control scheme for satellite IP
//! networks", 2001. Sudden start in place of slow start, rapid recovery in place of fast recovery. A dummy
//! segment is a low-priority copy of the last segment sent: it asks whether there is room, and carries
//! nothing new. The law is that of `probing.rs`; duplicate ACKs are counted as by NewReno (RFC 6582), and
//! data ACKs of the window expanding period grow the window as ever. Deviations: those of `probing.rs`.
//! Receivers mark ACKs of dummies in reserved bits of the TCP header, which today are AccECN's (RFC 9768):
//! here by the probe option or DSACK (`probes.rs`). ACKs of dummies have default priority.

use super::ProbeCarry;
use super::law::{Law, Params as _, Values};
use super::probing::{Probing, Switches};
use crate::params;

params! {
    /// What users may set.
    pub struct PeachParams {
        /// Queues on the way serve probes last; a scenario that does not say it has it from the `discipline`
        /// of its queues. Off: no sudden start, and a quarter of the probes, which repair and never open the
        /// window.
        assume_priority: bool = true;
        /// Most segments that sudden start opens the window to.
        probe_cap: f64 = 64.0, from 2.0, to 1e6;
        /// Differentiated-services code point of probes; 1 is LE.
        probe_dscp: f64 = 1.0, from 0.0, to 63.0;
    }
}

/// For the table of schemes.
pub const LAW: Law = Law {
    params: PeachParams::LIST,
    probes: true,
    ..Law::new("peach", |start, values| Box::new(Probing::new(start, switches(values))))
};

fn switches(values: &Values) -> Switches {
    let p = PeachParams::of(values);
    Switches::of_peach(ProbeCarry::LastSent, p.assume_priority, p.probe_cap, p.probe_dscp)
}
