//! Which segment a probe copies.
//!
//! Sources: TCP-Peach (the last sent), TCP-Peach+ (the unacknowledged, in an order that the paper leaves
//! open), TCP-Swift (at random among the unacknowledged). Never copied: SACKed segments (except for Peach),
//! and a SYN or FIN without data. At random: each of the segments copied least has equal probability.
//! Segments are kept in bags by how often they were copied. `SplitMix64` (Steele, Lea, Flood, 2014) draws
//! one from the lowest bag, and it moves one bag up. Acknowledged segments are removed when drawn, or when
//! they may be more than half of all; a segment enters the first bag once. So a choice costs O(log of the
//! bags), however large the window is.

use crate::board::Scoreboard;
use crate::cc::ProbeCarry;
use crate::range_set::RangeSet;
use std::collections::BTreeMap;

/// Acknowledged segments are removed once the bags hold this many more than twice the outstanding segments.
const SLACK: usize = 64;

/// State of the choice. A segment is identified by its end, which a partial acknowledgment does not change.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopySelector {
    /// Where the segment copied last ends: the next in turn comes after it.
    last_copied_end: u64,
    /// No longer chosen as the newest: was chosen before, or is SACKed.
    done: RangeSet,
    /// Number of copies -> segments.
    segments_by_copies: BTreeMap<u32, Vec<u64>>,
    /// Segments in all bags.
    held: usize,
    /// Segments up to here have entered a bag.
    known: u64,
    /// State of the random generator.
    random: u64,
}

impl CopySelector {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: seed, ..Self::default() }
    }

    /// Returns the stream range to copy next: data not yet acknowledged, neither SYN nor FIN.
    pub(crate) fn choose(
        &mut self,
        board: &Scoreboard,
        carry: ProbeCarry,
        data_end: u64,
    ) -> Option<(u64, u64)> {
        let i = match carry {
            ProbeCarry::LastSent => (0..board.len()).rev().find(|i| has_data(board, *i, data_end)),
            ProbeCarry::OldestInTurn => self.in_turn(board, data_end),
            ProbeCarry::Random => self.at_random(board, data_end),
            ProbeCarry::NewestOnce => self.newest(board, data_end),
        }?;
        let segment = board.get(i)?;
        self.last_copied_end = segment.end;
        Some((board.start_of(i).max(1), segment.end.min(data_end)))
    }

    /// Returns the next un-SACKed segment after the one copied last; the oldest follows the newest.
    fn in_turn(&self, board: &Scoreboard, data_end: u64) -> Option<usize> {
        let first = board.index_above(self.last_copied_end);
        let open = |i: &usize| is_open(board, *i, data_end);
        (first..board.len()).find(open).or_else(|| (0..first.min(board.len())).find(open))
    }

    /// Returns the newest segment with data that is neither SACKed nor was returned here before.
    fn newest(&mut self, board: &Scoreboard, data_end: u64) -> Option<usize> {
        let mut end = board.next();
        while end > board.una().max(1) {
            if let Some((left, _)) = self.done.containing(end - 1) {
                end = left;
                continue;
            }
            let i = board.index_above(end - 1);
            let start = board.start_of(i);
            self.done.insert(start, end);
            if is_open(board, i, data_end) {
                return Some(i);
            }
            end = start;
        }
        None
    }

    /// Returns one of the un-SACKed segments copied least, each with equal probability.
    fn at_random(&mut self, board: &Scoreboard, data_end: u64) -> Option<usize> {
        for i in board.index_above(self.known)..board.len() {
            if let Some(segment) = board.get(i) {
                self.put(0, segment.end);
            }
        }
        self.known = board.next();
        loop {
            let draw = self.draw();
            let mut lowest = self.segments_by_copies.first_entry()?;
            let copies = *lowest.key();
            let bag = lowest.get_mut();
            let end = bag.swap_remove((draw % bag.len() as u64) as usize);
            if bag.is_empty() {
                lowest.remove();
            }
            self.held -= 1;
            if end <= board.una() {
                continue;
            }
            let i = board.index_above(end - 1);
            if is_open(board, i, data_end) {
                self.put(copies.saturating_add(1), end);
                return Some(i);
            }
        }
    }

    fn put(&mut self, copies: u32, end: u64) {
        self.segments_by_copies.entry(copies).or_default().push(end);
        self.held += 1;
    }

    const fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::cc::standard::splitmix64(self.random)
    }

    /// Removes acknowledged segments.
    pub(crate) fn prune(&mut self, board: &Scoreboard) {
        let una = board.una();
        self.done.remove_below(una);
        if self.held > 2 * board.len() + SLACK {
            self.segments_by_copies.retain(|_, bag| {
                bag.retain(|end| *end > una);
                !bag.is_empty()
            });
            self.held = self.segments_by_copies.values().map(Vec::len).sum();
        }
    }
}

/// True if segment `i` carries data, not only a SYN or a FIN.
fn has_data(board: &Scoreboard, i: usize, data_end: u64) -> bool {
    board.get(i).is_some_and(|s| board.start_of(i).max(1) < s.end.min(data_end))
}

/// The same, and it is not SACKed.
fn is_open(board: &Scoreboard, i: usize, data_end: u64) -> bool {
    has_data(board, i, data_end) && board.get(i).is_some_and(|s| !s.sacked)
}

#[cfg(test)]
#[path = "pick_tests.rs"]
mod tests;
