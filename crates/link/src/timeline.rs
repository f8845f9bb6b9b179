//! The timeline: changes of a scenario at given instants. It is the first process, because it sets the values
//! that the others start from.

use crate::dynamics::Change;
use crate::state::{Process, State};
use bentpipe_base::{Cx, Instant, Probability};

/// Changes in order of time.
#[derive(Debug)]
pub(crate) struct Timeline {
    changes: Vec<(Instant, Change)>,
    next: usize,
    /// All changes so far, combined.
    sum: Change,
}

impl Timeline {
    /// Takes the changes in any order; changes at the same instant apply in the order given.
    pub(crate) fn new(changes: &[(Instant, Change)]) -> Self {
        let mut changes = changes.to_vec();
        changes.sort_by_key(|c| c.0);
        Self { changes, next: 0, sum: Change::default() }
    }
}

impl Change {
    /// Combines two changes; the values of this one replace those of `earlier`.
    pub(crate) fn after(self, earlier: Self) -> Self {
        Self {
            rate: self.rate.or(earlier.rate),
            delay: self.delay.or(earlier.delay),
            buffer: self.buffer.or(earlier.buffer),
            loss: self.loss.or(earlier.loss),
            ber: self.ber.or(earlier.ber),
            up: self.up.or(earlier.up),
        }
    }
}

impl Process for Timeline {
    fn apply(&mut self, at: Instant, _cx: &mut Cx<'_>, state: &mut State) -> Instant {
        while let Some((_, change)) = self.changes.get(self.next).filter(|c| c.0 <= at) {
            self.sum = change.after(self.sum);
            self.next += 1;
        }
        if self.sum.rate.is_some() {
            state.rate = self.sum.rate;
        }
        state.one_way = self.sum.delay.unwrap_or(state.one_way);
        state.loss = self.sum.loss.map_or(state.loss, Probability::get);
        state.ber = self.sum.ber.map_or(state.ber, Probability::get);
        state.down = self.sum.up == Some(false);
        self.changes.get(self.next).map_or(Instant::NEVER, |c| c.0)
    }
}
