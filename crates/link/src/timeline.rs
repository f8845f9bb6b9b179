//! The timeline: what a scenario changes at given instants. The first of the processes, since it sets what
//! the others start from.

use crate::dynamics::Change;
use crate::state::{Process, State};
use bentpipe_base::{Cx, Instant, Probability};

/// Changes in order of time.
#[derive(Debug)]
pub(crate) struct Timeline {
    changes: Vec<(Instant, Change)>,
    next: usize,
    /// What the changes so far come to.
    sum: Change,
}

impl Timeline {
    /// Takes the changes in any order; those of one instant act in the order given.
    pub(crate) fn new(changes: &[(Instant, Change)]) -> Self {
        let mut changes = changes.to_vec();
        changes.sort_by_key(|c| c.0);
        Self { changes, next: 0, sum: Change::default() }
    }
}

impl Change {
    /// This change after `earlier`.
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
