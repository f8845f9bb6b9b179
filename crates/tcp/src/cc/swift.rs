//! TCP-Swift for satellites (`swift-sat`); not the data-centre protocol of 2020 that has the same name.
//!
//! Source: Leung and Yeung, "TCP-Swift: an end-host enhancement scheme for TCP over satellite IP networks",
//! 2004: speedy start, speedy recovery with outstanding segments, and an increment in the window expanding
//! period. An outstanding segment is a low-priority copy of a segment that is not yet acknowledged, picked at
//! random: it asks for room and may repair a loss. In the window expanding period each ACK of data adds a
//! segment, on top of what probe ACKs add (`probing.rs`). That increment does not depend on probes: after a
//! congestion loss the window is back near W0 a round trip later. And what probes prove is room, not whose:
//! where several connections lost in a full queue, all of them halve, and the probes of one find the room
//! that the others gave up as well; half of them and more come back. So `gated`, the default, asks two
//! things, as RFC 9743 has it for schemes that share a network; `gated = false` is the paper's.
//!   the queue: N = W0 (1 - RTTmin / RTT) segments of ours waited when the loss was found (Fu and Liew, "TCP
//!              Veno", 2003). N >= `backlog` (3, Veno's beta) is congestion:
//!              neither probe ACKs nor data ACKs nor partial ACKs add to W0/2 in this episode
//!   the probes: else data ACKs add once at least W0/2 and nine in ten of this episode's probes came back;
//!               and nothing adds beyond W0
//! Deviations: those of `probing.rs`; the choice of modes; an ACK of several segments counts for each of them
//! (`wep_bytes`), which is the same where each has its own. A round trip that grew for another reason than a
//! queue looks like congestion: the window then stays halved, as NewReno's does. So small a share of a queue
//! that N never comes to 3 (many connections, a short buffer) leaves the decision to the probes.

use super::ProbeCarry;
use super::law::{Law, MAX_PARAMS, Params as _, Values};
use super::probing::{Expands, Probing, Switches};
use crate::params;
use bentpipe_base::Dscp;

params! {
    /// What users may set.
    pub struct SwiftParams {
        /// Data ACKs open the window only once enough probes came back, and not above the window before the
        /// loss; off is the paper.
        gated: bool = true;
        /// How many: the share of those sent, beside the half of the window before the loss that it takes
        /// anyway.
        gate: f64 = 0.9, from 0.0, to 1.0;
        /// Segments of ours waiting in queues at a loss from which on it is congestion, and the window stays
        /// halved; for `gated`.
        backlog: f64 = 3.0, from 0.0, to 1e6;
        /// Queues on the way serve probes last; a scenario that does not say it has it from the `discipline`
        /// of its queues. Off: no speedy start, and a quarter of the probes, which repair and never open the
        /// window.
        assume_priority: bool = true;
        /// Most segments that speedy start opens the window to.
        probe_cap: f64 = 64.0, from 2.0, to 1e6;
        /// A partial acknowledgment adds a segment, as printed.
        partial_inc: bool = true;
        /// Data ACKs of the window expanding period count the segments they acknowledge: receivers merge
        /// segments. Off, each ACK counts once, as printed.
        wep_bytes: bool = true;
        /// Differentiated-services code point of probes; 1 is LE.
        probe_dscp: f64 = 1.0, from 0.0, to 63.0;
    }
}

/// For the table of schemes.
pub const LAW: Law = Law {
    params: SwiftParams::LIST,
    probes: true,
    ..Law::new("swift-sat", |start, values| Box::new(Probing::new(start, switches(values))))
};

/// The paper's, by a name of its own: the same without the gate.
pub const FAITHFUL: Law = Law {
    params: SwiftParams::LIST.split_at(GATE).1,
    probes: true,
    ..Law::new("swift-faithful", |start, values| {
        let mut all = SwiftParams { gated: false, ..SwiftParams::default() }.values();
        all[GATE..].copy_from_slice(&values[..MAX_PARAMS - GATE]);
        Box::new(Probing::new(start, switches(&all)))
    })
};

/// Parameters of the gate, the first of all.
const GATE: usize = 3;

fn switches(values: &Values) -> Switches {
    let p = SwiftParams::of(values);
    Switches {
        carry: ProbeCarry::Random,
        expands: if p.gated { Expands::Gated { share: p.gate, backlog: p.backlog } } else { Expands::Always },
        partial: p.partial_inc,
        counts_bytes: p.wep_bytes,
        priority: p.assume_priority,
        cap: p.probe_cap as u64,
        mark: Dscp::new(p.probe_dscp as u8).unwrap_or(Dscp::LE),
    }
}
