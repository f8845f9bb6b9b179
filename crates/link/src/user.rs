//! What a user changes on a link that is running.
//!
//! It stands above what the link does by itself: rate, delay, loss, bit errors and the queue's capacity
//! replace what scenario, timeline, trace and orbit say, until they are given back. What the weather makes of
//! a link acts on a user's values as it does on the link's own: a fade slows down the rate that was set,
//! bursts and recurring outages come on top.
//!
//! A change holds from the instant at which it is made, for everything that begins then. A packet whose
//! transmission has begun keeps what it was promised, and nothing in the queue or in flight is lost or
//! changes places. So a change at `t` does what the same change of a timeline does at `t`, except to the
//! packet being sent.

mod on_link;

use crate::drop_tail::Capacity;
use crate::dynamics::Change;
use crate::state::State;
use bentpipe_base::{Instant, Probability, Rate};

/// What a user has changed and not given back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByUser {
    /// What was set; `None` where the link has its own value.
    pub change: Change,
    /// End of an outage of given length that lasts now.
    pub outage_until: Option<Instant>,
}

/// What a user says about a direction.
#[derive(Debug)]
pub(crate) struct User {
    change: Change,
    /// End of an outage of given length; in the past when there is none.
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

    /// As a process does: what holds at `at`, and until when.
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
