//! Which segment a probe copies.
//!
//! Sources: TCP-Peach (the last sent), TCP-Peach+ (the unacknowledged, in an order that the paper leaves
//! open), TCP-Swift (at random among the unacknowledged). Never copied: what is SACKed (but for Peach), and
//! what carries no data: a SYN or FIN alone. At random: of the segments copied least, each with equal
//! probability. Segments stand in bags by how often they were copied; one is drawn from the lowest bag, by
//! `SplitMix64` (Steele, Lea, Flood, 2014), and moves one bag up. What was acknowledged meanwhile is thrown
//! away when it is drawn, or when more than half of all may be such; a segment enters its first bag once. So
//! a choice costs O(log of the bags), however large the window is.

use crate::board::Scoreboard;
use crate::cc::ProbeCarry;
use crate::range_set::RangeSet;
use std::collections::BTreeMap;

/// Segments in bags beyond twice those outstanding before any is looked at.
const SLACK: usize = 64;

/// What was copied, as far as choosing depends on it. A segment is named by where it ends, which an
/// acknowledgment of a part of it does not change.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    /// Where the segment copied last ends: the next in turn comes after it.
    turn: u64,
    /// What is not given out as the newest any more: it was, or is SACKed.
    done: RangeSet,
    /// How often copied -> segments.
    bags: BTreeMap<u32, Vec<u64>>,
    /// Segments in all bags.
    held: usize,
    /// Segments up to here came into a bag.
    known: u64,
    /// State of the choice at random.
    random: u64,
}

impl Pick {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { turn: 0, done: RangeSet::EMPTY, bags: BTreeMap::new(), held: 0, known: 0, random: seed }
    }

    /// The stream range to copy next: data not yet acknowledged, neither SYN nor FIN.
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
        self.turn = segment.end;
        Some((board.start_of(i).max(1), segment.end.min(data_end)))
    }

    /// The next un-SACKed segment after the one copied last, from the oldest again after the newest.
    fn in_turn(&self, board: &Scoreboard, data_end: u64) -> Option<usize> {
        let first = board.index_above(self.turn);
        let open = |i: &usize| is_open(board, *i, data_end);
        (first..board.len()).find(open).or_else(|| (0..first.min(board.len())).find(open))
    }

    /// The newest segment with data that is neither SACKed nor was ever given out here.
    fn newest(&mut self, board: &Scoreboard, data_end: u64) -> Option<usize> {
        let mut end = board.next();
        while end > board.una().max(1) {
            if let Some((left, _)) = self.done.containing(end - 1) {
                end = left;
                continue;
            }
            let i = board.index_above(end - 1);
            let start = board.start_of(i);
            self.done.insert(start, end, |_, _| ());
            if is_open(board, i, data_end) {
                return Some(i);
            }
            end = start;
        }
        None
    }

    /// Each of the un-SACKed segments copied least with equal probability.
    fn at_random(&mut self, board: &Scoreboard, data_end: u64) -> Option<usize> {
        for i in board.index_above(self.known)..board.len() {
            if let Some(segment) = board.get(i) {
                self.put(0, segment.end);
            }
        }
        self.known = board.next();
        loop {
            let draw = self.draw();
            let mut lowest = self.bags.first_entry()?;
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
        self.bags.entry(copies).or_default().push(end);
        self.held += 1;
    }

    const fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::cc::standard::mix(self.random)
    }

    /// Forgets what is acknowledged.
    pub(crate) fn tidy(&mut self, board: &Scoreboard) {
        let una = board.una();
        self.done.remove_below(una);
        if self.held > 2 * board.len() + SLACK {
            self.bags.retain(|_, bag| {
                bag.retain(|end| *end > una);
                !bag.is_empty()
            });
            self.held = self.bags.values().map(Vec::len).sum();
        }
    }
}

/// Segment `i` carries data, not only a SYN or a FIN.
fn has_data(board: &Scoreboard, i: usize, data_end: u64) -> bool {
    board.get(i).is_some_and(|s| board.start_of(i).max(1) < s.end.min(data_end))
}

/// The same, and it is not known to have arrived.
fn is_open(board: &Scoreboard, i: usize, data_end: u64) -> bool {
    has_data(board, i, data_end) && board.get(i).is_some_and(|s| !s.sacked)
}

#[cfg(test)]
#[path = "pick_tests.rs"]
mod tests;
