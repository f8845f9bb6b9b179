//! Searches of the scoreboard that go on where they ended.
//!
//! RFC 6675 asks with each acknowledgment which segments are lost, and with each segment sent which is next
//! (section 4, IsLost and NextSeg). Looked for from the start, in a window of n segments with many holes that
//! costs n for each of n segments. So each search remembers how far it has come.

use super::Scoreboard;

/// How far searches have come which find nothing there again, whatever else is acknowledged, marked or sent:
/// else each acknowledgment of a large window would begin anew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Searched {
    /// All that ends at or below this and is not SACKed is marked lost.
    marked: u64,
    /// All that ends at or below this is SACKed, lost or was sent again.
    touched: u64,
    /// All that ends at or below this is SACKed or was sent again.
    resent: u64,
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

    /// The first segment that begins below `top` and is neither SACKed nor lost, nor was ever sent again.
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

    /// The last segment that is not SACKed and was never sent again.
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

    /// The segment after the SACKed range that segment `i` lies in.
    fn index_beyond_range(&self, i: usize) -> usize {
        let end = self.segs[i].end;
        let beyond = self.sacked_ranges.containing(end - 1).map_or(end, |r| r.1);
        self.index_above(beyond.saturating_sub(1)).max(i) + 1
    }
}
