//! Exact fast-forward of a direction that changes over time.
//!
//! The processes that change it depend on the time only ([`Process`](crate::state::Process)), so neither they
//! nor their random streams are compared. It is enough that no value has changed since the recorded state.

use super::{Sending, Varying};
use crate::change::UserChanges;
use crate::state::State;
use bentpipe_base::Duration;
use bentpipe_base::shift::Walk;

impl Varying {
    /// Visits the state; a service in progress lasts for `lead` from now on.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, lead: Duration) {
        let Self { base: _, state: _, until, value_processes: _, user, impairments: _, errors: _, .. } = self;
        walk.expect(*user == UserChanges::default(), "a link that a user has changed");
        walk.horizon(*until, lead);
        let Self { gap, framing: _, buffers, own_capacity, grants, release, opportunities, sending, .. } =
            self;
        let plain =
            grants.is_none() && release.is_none() && opportunities.is_none() && own_capacity.is_none();
        walk.expect(plain, "access to a link, or a trace of opportunities");
        if let Some(gap) = gap {
            gap.shift(walk);
        }
        walk.same(&buffers.len());
        if let Some((at, _)) = buffers.front() {
            walk.horizon(*at, lead);
        }
        walk.same(&sending.is_some());
        if let Some(Sending { packet, fate, left }) = sending {
            walk.same(&(fate.map(|cause| cause as u8), *left));
            walk.inner(&mut **packet);
        }
        let Self { carry, sending_until, reorder: _, bit_error: _, changes, .. } = self;
        walk.same(&(*changes, *carry));
        walk.past(sending_until);
    }

    /// Counts a change of a value that packets meet.
    pub(super) fn count_change(&mut self, before: &State) {
        let unseen = State { fade_db: before.fade_db, ..self.state };
        self.changes += u64::from(unseen != *before);
    }
}
