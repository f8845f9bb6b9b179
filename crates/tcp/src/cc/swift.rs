//! TCP-Swift for satellites (`swift-sat`); not the data-centre protocol of 2020 with the same name.
//!
//! Source: Leung and Yeung, "TCP-Swift: an end-host enhancement scheme for TCP over satellite IP networks",
//! 2004: speedy start, speedy recovery with outstanding segments, and an increment in the window expanding
//! period. An outstanding segment is a low-priority copy of a random unacknowledged segment: it probes for
//! spare capacity and may repair a loss. In the window expanding period each ACK of data adds a segment, in
//! addition to what probe ACKs add (`probing.rs`). This increment does not depend on probes, so after a
//! congestion loss the window is back near W0 one round trip later. Also, probes prove that there is spare
//! capacity, not that it is ours: if several connections lose packets in a full queue, all of them halve, and
//! the probes of each find the capacity that the others released, so that half or more of these probes are
//! acknowledged. Therefore `gated`, the default, applies two checks, in the spirit of RFC 9743 for schemes
//! that share a network; `gated = false` is the paper's scheme.
//!   queue: N = W0 (1 - RTTmin / RTT) is the number of our segments queued when the loss was found (Fu and
//!     Liew, "TCP Veno", 2003). If N >= `backlog` (3, Veno's beta), the loss counts as congestion: probe
//!     ACKs, data ACKs and partial ACKs add nothing to W0/2 in this episode
//!   probes: otherwise data ACKs add segments once at least W0/2 probes and nine in ten of this episode's
//!     probes were acknowledged; nothing adds beyond W0
//! Deviations: those of `probing.rs`; the gate; an ACK of several segments counts once for each of them
//! (`wep_bytes`), which makes no difference if each segment has its own ACK. An RTT that grew for another
//! reason than a queue looks like congestion: the window then stays halved, as in NewReno. If our share of
//! the queue never reaches 3 segments (many connections, a short buffer), only the probes decide.

use super::ProbeCarry;
use super::law::{Algorithm, MAX_PARAMS, Params as _, Values};
use super::probing::{ExpansionRule, Probing, ProbingParams};
use crate::params;
use bentpipe_base::Dscp;

params! {
    /// Parameters of TCP-Swift.
    pub struct SwiftParams {
        /// Data ACKs open the window only after enough probes were acknowledged, and not above the window
        /// before the loss; off: as in the paper.
        gated: bool = true;
        /// Share of this episode's probes that must be acknowledged before data ACKs open the window; at
        /// least half of the window before the loss is needed as well.
        gate: f64 = 0.9, from 0.0, to 1.0;
        /// For `gated`: a loss counts as congestion if at least this many of our segments are queued.
        backlog: f64 = 3.0, from 0.0, to 1e6;
        /// Queues on the path serve probes last. If a scenario does not set it, it follows from the
        /// `discipline` of the queues. Off: no speedy start, and a quarter of the probes, which repair losses
        /// and never open the window.
        assume_priority: bool = true;
        /// Largest window of speedy start in segments.
        probe_cap: f64 = 64.0, from 2.0, to 1e6;
        /// A partial acknowledgment adds a segment, as printed in the paper.
        partial_inc: bool = true;
        /// Data ACKs of the window expanding period count the segments they acknowledge, since receivers may
        /// merge segments. Off: each ACK counts once, as printed in the paper.
        wep_bytes: bool = true;
        /// DSCP of probes; 1 is LE.
        probe_dscp: f64 = 1.0, from 0.0, to 63.0;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    params: SwiftParams::LIST,
    probes: true,
    ..Algorithm::new("swift-sat", |start, values| Box::new(Probing::new(start, switches(values))))
};

/// The scheme of the paper under its own name: the same without the gate.
pub const FAITHFUL: Algorithm = Algorithm {
    params: SwiftParams::LIST.split_at(GATE).1,
    probes: true,
    ..Algorithm::new("swift-faithful", |start, values| {
        let mut all = SwiftParams { gated: false, ..SwiftParams::default() }.values();
        all[GATE..].copy_from_slice(&values[..MAX_PARAMS - GATE]);
        Box::new(Probing::new(start, switches(&all)))
    })
};

/// Number of parameters of the gate; they are the first.
const GATE: usize = 3;

fn switches(values: &Values) -> ProbingParams {
    let p = SwiftParams::of(values);
    ProbingParams {
        carry: ProbeCarry::Random,
        expands: if p.gated {
            ExpansionRule::Gated { share: p.gate, backlog: p.backlog }
        } else {
            ExpansionRule::Always
        },
        partial: p.partial_inc,
        counts_bytes: p.wep_bytes,
        priority: p.assume_priority,
        cap: p.probe_cap as u64,
        mark: Dscp::new(p.probe_dscp as u8).unwrap_or(Dscp::LE),
    }
}
