//! Exact fast-forward: only while nothing is SACKed, lost or resent.

use super::{Scoreboard, Sent};
use bentpipe_base::shift::Walk;

impl Scoreboard {
    /// Visits the positions of a sender of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { una, next, segs, sacked_ranges, sacked, lost, resent, resent_not_lost, .. } = self;
        walk.position(stream, una);
        walk.position(stream, next);
        let is_clean = sacked_ranges.is_empty() && *sacked + *lost + *resent + *resent_not_lost == 0;
        walk.expect(is_clean, "a loss is being repaired");
        walk.same(&segs.len());
        let Self { marked, resend_hint, longest_delivered, searched, .. } = self;
        walk.same(&(*marked, *resend_hint, *longest_delivered));
        for mark in searched.marks() {
            walk.mark(stream, mark);
        }
    }

    /// Visits the segments outstanding.
    pub(crate) fn shift_segments(&mut self, walk: &mut Walk<'_>, stream: usize) {
        for (i, segment) in self.segs.iter_mut().enumerate() {
            if walk.has_ended() {
                return;
            }
            let Sent { end, sent_at, sacked: _, lost: _, resent: _, resends, copied } = segment;
            walk.position(stream, end);
            walk.time(sent_at);
            self.snapshots.shift(i, walk, stream);
            walk.same(&(*resends, *copied));
        }
    }
}
