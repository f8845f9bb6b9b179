//! Idle connections.
//!
//! The state of an active accelerated connection is large: estimators, cache, handshake data. Most
//! connections are idle most of the time. Then nothing is held and nothing is in flight, so a [`SavedState`]
//! is enough, and the rest of the state is freed after a while. The next packet restores the connection,
//! which continues as a sender does after an idle period: its measurements of the path are outdated by then
//! (RFC 2861, section 2). A connection that is restored from the record of an earlier gateway is also stored
//! like this until its first packet, but then data may be in flight.

use super::Gateway;
use crate::flow::Flow;
use crate::report::FlowReport;
use crate::table::persist::SavedState;
use crate::table::{Class, NONE};
use bentpipe_base::{Cx, Duration, Size};

/// A connection with nothing held is put to sleep after this idle time.
pub(super) const AFTER: Duration = Duration::from_secs(10);

/// The state kept of a connection that sleeps or has slept.
#[derive(Debug, Default)]
pub(super) struct SleepingFlow {
    persist: SavedState,
    /// Nothing is in flight, and the window edges are exact.
    is_exact: bool,
    /// Counters from before it slept.
    losses: u64,
    timeouts: u64,
    swallowed: u64,
    held_peak: Size,
}

impl SleepingFlow {
    /// A state without earlier counters: of a connection that has ended (exact), or of one that an earlier
    /// gateway accelerated (not exact).
    pub(super) fn new(persist: SavedState, is_exact: bool) -> Self {
        Self { persist, is_exact, ..Self::default() }
    }

    fn add_to(&self, report: &mut FlowReport) {
        report.losses += self.losses;
        report.timeouts += self.timeouts;
        report.duplicates_dropped += self.swallowed;
        report.held_peak = report.held_peak.max(self.held_peak);
    }
}

impl Gateway {
    /// Returns the flow's part of the report of a connection.
    pub(super) fn flow_report(&self, id: u32) -> FlowReport {
        let Some(entry) = self.table.get(id) else { return FlowReport::default() };
        let share = self.shared.shaper.losses.share();
        let mut report = self.flows.get(entry.flow).map(|f| f.report(share)).unwrap_or_default();
        if let Some(rest) = self.sleeping.get(entry.rest) {
            rest.add_to(&mut report);
            if entry.flow == NONE {
                report.hop_rtt = rest.persist.hop_rtt;
            }
        }
        report
    }

    /// Returns the state that is needed to pass the packets of a connection correctly; none if none is
    /// needed.
    pub(super) fn persist(&self, id: u32) -> Option<SavedState> {
        let entry = self.table.get(id)?;
        let awake = self.flows.get(entry.flow).map(|f| f.persist());
        awake.or_else(|| self.sleeping.get(entry.rest).map(|r| r.persist))
    }

    /// Puts a connection to sleep if possible; returns true if it did.
    pub(super) fn sleep(&mut self, cx: &mut Cx<'_>, id: u32) -> bool {
        let Some(entry) = self.table.get(id).copied() else { return false };
        let may =
            entry.class == Class::Accelerated && entry.pass_reason.is_none() && entry.last + AFTER <= cx.now;
        if !may || !self.flows.get(entry.flow).is_some_and(|f| f.is_at_rest()) {
            return false;
        }
        let FlowReport { losses, timeouts, duplicates_dropped: swallowed, held_peak, .. } =
            self.flow_report(id);
        let Some(mut flow) = self.flows.remove(entry.flow) else { return false };
        let rest =
            SleepingFlow { persist: flow.persist(), is_exact: true, losses, timeouts, swallowed, held_peak };
        flow.drop_all(cx, &mut self.shared);
        self.keep_alive.forget(cx, Some(id));
        let place = match self.sleeping.get_mut(entry.rest) {
            Some(before) => {
                *before = rest;
                entry.rest
            }
            None => self.sleeping.insert(rest),
        };
        self.table.update(id, |e| (e.flow, e.rest) = (NONE, place));
        self.note_change(id);
        self.arm(cx.now, id);
        true
    }

    /// Restores the full state of a sleeping connection.
    pub(super) fn wake(&mut self, id: u32) {
        let Some(entry) = self.table.get(id).copied().filter(|e| e.flow == NONE) else { return };
        let Some(rest) = self.sleeping.get(entry.rest) else { return };
        let mut flow = Flow::resume(&rest.persist, rest.is_exact, &self.shared.config);
        if let Some(why) = entry.pass_reason {
            flow.only_pass(why);
        }
        let flow = self.flows.insert(Box::new(flow));
        self.table.update(id, |e| e.flow = flow);
    }
}
