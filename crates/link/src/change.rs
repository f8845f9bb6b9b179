//! Changes of a link's values: by the timeline of a scenario, and by a user of a running link.
//!
//! The timeline is the first process, because it sets the values that the others start from. A user's rate,
//! delay, loss, bit error rate and queue capacity replace those of scenario, timeline, trace and orbit until
//! they are reset. Fade, bursts and recurring outages apply to them as to the link's own values: a fade slows
//! down the rate that was set.
//!
//! A user's change applies to everything that begins at or after its instant. A packet whose transmission has
//! begun is not affected, and nothing in the queue or in flight is lost or reordered. So a change at `t` has
//! the effect of the same change in a timeline at `t`, except on the packet being sent.

use crate::drop_tail::Capacity;
use crate::state::{Process, State};
use bentpipe_base::{Cx, Duration, Instant, Probability, Rate};

/// What the timeline, or a user of a running link, changes at one instant. `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// Rate.
    pub rate: Option<Rate>,
    /// One-way propagation delay.
    pub delay: Option<Duration>,
    /// Capacity of the queue; packets beyond a smaller one stay until they are served.
    pub buffer: Option<Capacity>,
    /// Loss probability per packet.
    pub loss: Option<Probability>,
    /// Bit error rate.
    pub ber: Option<Probability>,
    /// False: everything that is sent is lost.
    pub up: Option<bool>,
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

    /// Applies the change to `state`, which does not contain the queue's capacity.
    fn apply(&self, state: &mut State) {
        state.rate = self.rate.or(state.rate);
        state.one_way = self.delay.unwrap_or(state.one_way);
        state.loss = self.loss.map_or(state.loss, Probability::get);
        state.ber = self.ber.map_or(state.ber, Probability::get);
        state.down = self.up.map_or(state.down, |up| !up);
    }
}

/// The changes of a timeline, in order of time.
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

impl Process for Timeline {
    fn apply(&mut self, at: Instant, _cx: &mut Cx<'_>, state: &mut State) -> Instant {
        while let Some((_, change)) = self.changes.get(self.next).filter(|c| c.0 <= at) {
            self.sum = change.after(self.sum);
            self.next += 1;
        }
        self.sum.apply(state);
        self.changes.get(self.next).map_or(Instant::NEVER, |c| c.0)
    }
}

/// The changes by a user that are in effect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UserChanges {
    /// The values set; `None` where the link has its own value.
    pub change: Change,
    /// End of the current outage of given length, if any.
    pub outage_until: Option<Instant>,
}

impl UserChanges {
    /// Applies the changes at `at`, as a process does; returns until when they hold.
    pub(crate) fn apply(&self, at: Instant, state: &mut State) -> Instant {
        self.change.apply(state);
        let Some(end) = self.outage_until.filter(|end| at < *end) else { return Instant::NEVER };
        state.down = true;
        end
    }
}
