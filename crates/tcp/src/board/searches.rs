//! Incremental searches of the scoreboard.
//!
//! RFC 6675 asks with each acknowledgment which segments are lost, and with each segment sent which is next
//! (section 4, IsLost and NextSeg). A search from the start would cost n steps for each of n segments in a
//! window with many holes. So each search remembers how far it has come.

use super::Scoreboard;

/// How far each search has come: later acknowledgments, marks and transmissions never make a segment below
/// that position match.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SearchProgress {
    /// Segments that end at or below this are SACKed or marked lost.
    marked: u64,
    /// Segments that end at or below this are SACKed, lost or were resent.
    touched: u64,
    /// Segments that end at or below this are SACKed or were resent.
    resent: u64,
}

impl SearchProgress {
    /// The positions up to which the searches have come.
    pub(super) const fn marks(&mut self) -> [&mut u64; 3] {
        [&mut self.marked, &mut self.touched, &mut self.resent]
    }
}

impl Scoreboard {
    /// Marks what is not SACKed and ends at or below `position` as lost: the gaps between SACKed ranges.
    pub fn mark_below(&mut self, position: u64) {
        let mut i = self.index_above(self.searched.marked);
        while let Some(seg) = self.segs.get(i)
            && seg.end <= position
        {
            if seg.sacked {
                i = self.index_beyond_range(i);
                continue;
            }
            self.mark_lost(i, false);
            i += 1;
        }
        self.searched.marked = self.searched.marked.max(position.min(self.next));
    }

    /// Returns the first segment that begins below `top`, is neither SACKed nor lost and was never resent.
    pub fn first_untouched(&mut self, top: u64) -> Option<usize> {
        let mut i = self.index_above(self.searched.touched);
        let found = loop {
            match self.segs.get(i) {
                Some(_) if self.start_of(i) >= top => break None,
                Some(seg) if seg.sacked => i = self.index_beyond_range(i),
                Some(seg) if !seg.lost && seg.resends == 0 => break Some(i),
                Some(_) => i += 1,
                None => break None,
            }
        };
        self.searched.touched = if i == 0 { self.una } else { self.start_of(i) };
        found
    }

    /// Returns the last segment that is not SACKed and was never resent.
    pub fn last_never_resent(&mut self) -> Option<usize> {
        let least = self.index_above(self.searched.resent);
        let mut above = self.segs.len();
        while above > least {
            let i = above - 1;
            let seg = &self.segs[i];
            if seg.sacked {
                let range = self.sacked_ranges.containing(self.start_of(i));
                above = range.map_or(i, |r| self.index_above(r.0)).min(i);
            } else if seg.resends == 0 {
                return Some(i);
            } else {
                above = i;
            }
        }
        self.searched.resent = self.next;
        None
    }

    /// Returns the index of the segment after the SACKed range that contains segment `i`.
    pub(crate) fn index_beyond_range(&self, i: usize) -> usize {
        let end = self.segs[i].end;
        let beyond = self.sacked_ranges.containing(end - 1).map_or(end, |r| r.1);
        self.index_above(beyond.saturating_sub(1)).max(i) + 1
    }
}
