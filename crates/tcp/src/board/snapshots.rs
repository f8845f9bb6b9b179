//! What a delivery rate needs of each segment outstanding.
//!
//! Kept apart from the segments, and only if the scheme uses delivery rates: most schemes do not, and it is
//! more than the rest of a segment.

use crate::delivery::Snapshot;
use bentpipe_base::push_back;
use bentpipe_base::shift::Walk;
use std::collections::VecDeque;

/// A snapshot for each segment of the scoreboard, in the same order; none if the scheme does not use them.
#[derive(Clone, Debug)]
pub(super) struct Snapshots {
    wanted: bool,
    of: VecDeque<Snapshot>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { wanted: true, of: VecDeque::new() }
    }
}

impl Snapshots {
    /// Says whether they are wanted, while there are `segments`.
    pub(super) fn keep(&mut self, wanted: bool, segments: usize) {
        self.wanted = wanted;
        self.of.resize(if wanted { segments } else { 0 }, Snapshot::default());
    }

    #[inline]
    pub(super) fn push(&mut self, snapshot: Snapshot) {
        if self.wanted {
            push_back(&mut self.of, snapshot);
        }
    }

    /// Replaces that of segment `i`.
    pub(super) fn set(&mut self, i: usize, snapshot: Snapshot) {
        if let Some(place) = self.of.get_mut(i) {
            *place = snapshot;
        }
    }

    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<Snapshot> {
        self.of.get(i).copied()
    }

    /// Removes that of the oldest segment.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Snapshot> {
        if self.wanted { self.of.pop_front() } else { None }
    }

    /// Removes those of the `segments` oldest; returns the last of them.
    #[inline]
    pub(super) fn take(&mut self, segments: usize) -> Option<Snapshot> {
        if self.wanted { self.of.drain(..segments).next_back() } else { None }
    }

    /// Takes all out.
    pub(super) fn take_all(&mut self) -> Self {
        Self { wanted: self.wanted, of: core::mem::take(&mut self.of) }
    }

    /// Visits that of segment `i`.
    pub(super) fn shift(&mut self, i: usize, walk: &mut Walk<'_>, stream: usize) {
        if let Some(snapshot) = self.of.get_mut(i) {
            snapshot.shift(walk, stream);
        }
    }
}
