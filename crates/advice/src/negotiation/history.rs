//! The granted rate and its course.

use super::{RateChange, RateState};
use bentpipe_base::{Instant, Rate};

/// Most changes that are kept; later ones are only counted.
pub(super) const MOST_CHANGES: usize = 1000;

/// The granted rate, its state and its changes.
#[derive(Clone, Debug)]
pub(super) struct History {
    granted: Option<Rate>,
    state: RateState,
    changes: Vec<RateChange>,
    /// Most changes that are kept.
    pub(super) most: usize,
    count: u64,
}

impl Default for History {
    fn default() -> Self {
        let (granted, state) = (None, RateState::default());
        Self { granted, state, changes: Vec::new(), most: MOST_CHANGES, count: 0 }
    }
}

impl History {
    pub(super) const fn granted(&self) -> Option<Rate> {
        self.granted
    }
    pub(super) const fn state(&self) -> RateState {
        self.state
    }
    pub(super) fn changes(&self) -> &[RateChange] {
        &self.changes
    }
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Records that the rate is `rate` from `at` on.
    pub(super) fn set(&mut self, at: Instant, rate: Rate) {
        let (cause, state) = match self.granted {
            None => ("granted", RateState::Granted),
            Some(before) if rate > before => ("raised", RateState::Granted),
            Some(before) if rate < before => ("reduced", RateState::Reduced),
            Some(_) => return,
        };
        (self.granted, self.state) = (Some(rate), state);
        self.count += 1;
        if self.changes.len() < self.most {
            self.changes.push(RateChange { at, rate, cause });
        }
    }

    /// Records that no rate is granted, and why.
    pub(super) fn clear(&mut self, state: RateState) {
        (self.granted, self.state) = (None, state);
    }
}
