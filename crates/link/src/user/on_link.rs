//! Changes of a running link by a user.

use super::{ByUser, User};
use crate::dynamics::Change;
use crate::link::Link;
use bentpipe_base::{Cx, Duration, Instant};

impl Link {
    /// Changes the link now, until [`Link::reset`] or another change of the same values.
    ///
    /// `up = true` ends an outage of [`Link::outage`] or of the timeline, but not a recurring one. `name` is
    /// the name of the direction: it selects the random stream of losses, as it does for a link built with
    /// losses.
    pub fn change(&mut self, cx: &mut Cx<'_>, name: &str, change: &Change) {
        self.act(cx, name, |user| {
            user.change = change.after(user.change);
            if change.up == Some(true) {
                user.dark_until = Instant::ZERO;
            }
        });
    }

    /// Loses everything that is sent during `length` from now on. Does not shorten an outage in progress.
    pub fn outage(&mut self, cx: &mut Cx<'_>, name: &str, length: Duration) {
        let end = cx.now + length;
        self.act(cx, name, |user| user.dark_until = user.dark_until.max(end));
    }

    /// Undoes everything that [`Link::change`] and [`Link::outage`] have changed.
    pub fn reset(&mut self, cx: &mut Cx<'_>, name: &str) {
        // a link without changes stays constant, and as fast as before
        if self.channel.varies() {
            self.act(cx, name, |user| *user = User::NOTHING);
        }
    }

    /// Returns the changes by a user that are in effect at `at`.
    pub fn by_user(&mut self, at: Instant) -> ByUser {
        let nothing = ByUser { change: Change::default(), outage_until: None };
        self.channel.changing().map_or(nothing, |varying| {
            let User { change, dark_until } = varying.user;
            ByUser { change, outage_until: Some(dark_until).filter(|end| *end > at) }
        })
    }

    fn act(&mut self, cx: &mut Cx<'_>, name: &str, act: impl FnOnce(&mut User)) {
        let now = cx.now;
        // a transmission that would begin now begins under the new conditions
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
