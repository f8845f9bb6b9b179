//! Changes of a running link by a user.
//!
//! A user's rate, delay, loss, bit error rate and queue capacity replace those of scenario, timeline, trace
//! and orbit until they are reset. Fade, bursts and recurring outages apply to them as to the link's own
//! values: a fade slows down the rate that was set.
//!
//! A change applies to everything that begins at or after its instant. A packet whose transmission has begun
//! is not affected, and nothing in the queue or in flight is lost or reordered. So a change at `t` has the
//! effect of the same change in a timeline at `t`, except on the packet being sent.

mod on_link;

use crate::drop_tail::Capacity;
use crate::dynamics::Change;
use crate::state::State;
use bentpipe_base::{Instant, Probability, Rate};

/// The changes by a user that are in effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByUser {
    /// The values set; `None` where the link has its own value.
    pub change: Change,
    /// End of the current outage of given length, if any.
    pub outage_until: Option<Instant>,
}

/// A user's changes of one direction.
#[derive(Debug)]
pub(crate) struct User {
    change: Change,
    /// End of an outage of given length; in the past if there is none.
    dark_until: Instant,
}

impl User {
    pub(crate) const NOTHING: Self = Self {
        change: Change { rate: None, delay: None, buffer: None, loss: None, ber: None, up: None },
        dark_until: Instant::ZERO,
    };

    pub(crate) const fn rate(&self) -> Option<Rate> {
        self.change.rate
    }

    pub(crate) const fn buffer(&self) -> Option<Capacity> {
        self.change.buffer
    }

    /// Applies the changes at `at`, as a process does; returns until when they hold.
    pub(crate) fn apply(&self, at: Instant, state: &mut State) -> Instant {
        let Change { rate, delay, loss, ber, up, .. } = self.change;
        state.rate = rate.or(state.rate);
        state.one_way = delay.unwrap_or(state.one_way);
        state.loss = loss.map_or(state.loss, Probability::get);
        state.ber = ber.map_or(state.ber, Probability::get);
        state.down = up.map_or(state.down, |up| !up);
        if at < self.dark_until {
            state.down = true;
            return self.dark_until;
        }
        Instant::NEVER
    }
}
