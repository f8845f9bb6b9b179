//! Exact fast-forward: only while nothing is repaired.
//!
//! What an episode begins with is set when it begins, and the result of an acknowledgment with the next one,
//! so neither is part of the state.

use super::Recovery;
use crate::cc::Episode;
use bentpipe_base::shift::Walk;

impl Recovery {
    /// Visits the state of a sender of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { params: _, limited_transmit: _, linux: _, sack: _, episode, recover, dup_acks, .. } = self;
        walk.expect(*episode == Episode::Open, "a loss is being repaired");
        walk.mark(stream, recover);
        walk.same(dup_acks);
        let Self { dup_ack_credit, forced_resend, partial_seen, early_checks_left, limited_sent, .. } = self;
        walk.expect(forced_resend.is_none(), "a retransmission");
        walk.same(&(*dup_ack_credit, *limited_sent));
        walk.same(&(*partial_seen, *early_checks_left));
        let Self { reductions: _, linux_delivered: _, mss, rack, frto, rescue, .. } = self;
        walk.same(mss);
        rack.shift(walk, stream);
        walk.expect(!frto.is_active() && rescue.is_none(), "a loss is being repaired");
        let Self { ecn_reduction_end, result: _, .. } = self;
        walk.expect(ecn_reduction_end.is_none(), "a mark reduces the window");
    }
}
