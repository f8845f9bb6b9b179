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

use crate::dynamics::Change;
use crate::link::Link;
use crate::queue::Capacity;
use crate::state::State;
use bentpipe_base::{Cx, Duration, Instant, Probability, Rate};

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

impl Link {
    /// Changes the link now, until [`Link::reset`] or another change of the same values.
    ///
    /// `up = true` ends what took the link down, an outage of [`Link::outage`] or the timeline; not an outage
    /// of the kind that recurs. `name` is the direction's: the stream that losses are drawn from is the one
    /// that it would have had from the start.
    pub fn change(&mut self, cx: &mut Cx<'_>, name: &str, change: &Change) {
        self.act(cx, name, |user| {
            user.change = change.after(user.change);
            if change.up == Some(true) {
                user.dark_until = Instant::ZERO;
            }
        });
    }

    /// From now on everything that is sent is lost, for `length`. It does not shorten an outage that lasts
    /// already.
    pub fn outage(&mut self, cx: &mut Cx<'_>, name: &str, length: Duration) {
        let end = cx.now + length;
        self.act(cx, name, |user| user.dark_until = user.dark_until.max(end));
    }

    /// Gives back everything that [`Link::change`] and [`Link::outage`] have changed: the link is from now on
    /// what it would be without.
    pub fn reset(&mut self, cx: &mut Cx<'_>, name: &str) {
        // a link that nobody has changed stays as fast as it is
        if self.channel.varies() {
            self.act(cx, name, |user| *user = User::NOTHING);
        }
    }

    /// What a user has changed, as it is at `at`.
    pub fn by_user(&mut self, at: Instant) -> ByUser {
        let nothing = ByUser { change: Change::default(), outage_until: None };
        self.channel.changing().map_or(nothing, |varying| {
            let User { change, dark_until } = varying.user;
            ByUser { change, outage_until: Some(dark_until).filter(|end| *end > at) }
        })
    }

    fn act(&mut self, cx: &mut Cx<'_>, name: &str, act: impl FnOnce(&mut User)) {
        let now = cx.now;
        // what would begin now begins under the new conditions
        cx.now = Instant(now.0.saturating_sub(1));
        self.settle(cx);
        cx.now = now;
        if !self.channel.varies() {
            self.channel.start_to_vary(cx, name, self.busy_until);
        }
        let deadline = self.with_changes(|link, varying| {
            link.busy_until = varying.change(now, &mut link.queue, link.busy_until, act);
            link.deadline_varying(varying)
        });
        self.arm(cx, deadline.unwrap_or(Instant::NEVER));
    }
}
