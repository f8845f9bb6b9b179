//! How acceleration of a connection ends, and how a connection leaves the table.

use super::Gateway;
use super::sleeping::SleepingFlow;
use crate::config::Config;
use crate::counters::PassReason;
use crate::report::{EndReason, State};
use crate::table::{Class, Entry, NONE};
use bentpipe_base::Cx;

impl Gateway {
    /// Stops accelerating a connection; held packets are sent. If its windows must still be translated the
    /// flow state is kept, else only the table entry.
    pub(super) fn give_up(&mut self, cx: &mut Cx<'_>, id: u32, why: PassReason) {
        let Some(entry) = self.table.get(id).copied() else { return };
        let Some(persist) = self.persist(id) else { return };
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            flow.release(cx, &mut self.shared);
        }
        self.table.update(id, |e| e.pass_reason = Some(why));
        if persist.is_transparent() {
            self.take_flow(cx, id);
            if entry.class == Class::Accelerated {
                self.pass_on(cx, id);
            }
        }
        self.settle(cx, id);
    }

    /// Frees the flow state of a connection that has nothing left to send.
    fn take_flow(&mut self, cx: &mut Cx<'_>, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if let Some(mut flow) = self.flows.remove(entry.flow) {
            flow.drop_all(cx, &mut self.shared);
            self.shared.shaper.forget(id);
        }
        self.keep_alive.forget(cx, Some(id));
        self.sleeping.remove(entry.rest);
        self.table.update(id, |e| (e.flow, e.rest) = (NONE, NONE));
        if entry.needs_translation() && entry.class == Class::Accelerated {
            self.note_change(id);
        }
    }

    /// Queues the final report of a connection, once.
    fn report_end(&mut self, id: u32, end: EndReason) {
        let Some(entry) = self.table.get(id).copied() else { return };
        // a SYN flood must not push out the reports of real connections
        let is_news = self.table.update(id, Entry::mark_reported) == Some(true);
        if !is_news || entry.state == State::Opening {
            return;
        }
        let report = entry.report(self.flow_report(id), Some(end));
        match entry.pass_reason {
            None => self.fast.add(&report),
            Some(PassReason::Sampled) => self.left_alone.add(&report),
            Some(_) => {}
        }
        if self.ended.len() < self.shared.config.limits.reports as usize {
            self.ended.push_back(report);
        } else {
            self.shared.counters.reports_lost += 1;
        }
    }

    /// Handles the end of an accelerated connection. The state that late duplicates need is kept for a while.
    pub(super) fn retire(&mut self, cx: &mut Cx<'_>, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            flow.release(cx, &mut self.shared);
        }
        self.table.update(id, |e| e.state = State::Closed);
        self.report_end(id, EndReason::Closed);
        let persist = self.persist(id);
        self.take_flow(cx, id);
        self.table.update(id, |e| e.pass_reason = Some(PassReason::Ended));
        if entry.class != Class::Passing && !self.table.has_room(Class::Passing, &self.shared.config.limits) {
            self.table.remove(id);
            return;
        }
        let rest = persist.map_or(NONE, |persist| self.sleeping.insert(SleepingFlow::new(persist, true)));
        self.table.update(id, |e| (e.class, e.rest) = (Class::Passing, rest));
        self.arm(cx.now, id);
    }

    /// Forgets a connection; held packets are sent first.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, id: u32, end: EndReason) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            flow.release(cx, &mut self.shared);
        }
        self.report_end(id, end);
        self.take_flow(cx, id);
        self.table.remove(id);
    }

    /// Planned stop: sends everything that is held and accelerates nothing from now on. The gateway may then
    /// be removed, or stay and let everything pass.
    pub fn release_all(&mut self, cx: &mut Cx<'_>) {
        self.shared.config.accelerate = false;
        self.release_flows(cx);
        self.keep_alive.forget(cx, None);
        // passing packets that are queued are sent too, since the caller may stop the gateway next
        self.shared.config.rate = None;
        self.shared.shaper.configure(&self.shared.config);
        self.finish(cx);
    }

    fn release_flows(&mut self, cx: &mut Cx<'_>) {
        let ids: Vec<u32> = self.table.ids(0).collect();
        for id in ids {
            if self.table.get(id).is_some_and(|e| e.pass_reason.is_none()) {
                self.give_up(cx, id, PassReason::Released);
            }
        }
    }

    /// Changes the configuration without losing a connection. Smaller limits apply to new connections only.
    /// If acceleration is switched off, current connections stop being accelerated.
    pub fn reconfigure(&mut self, cx: &mut Cx<'_>, config: Config) {
        self.take_key(cx);
        self.shared.config = config;
        let config = &self.shared.config;
        self.shared.memory.limit = config.limits.memory.0;
        self.shared.shaper.configure(config);
        self.table.rebuild(&config.limits, self.table.key);
        if !config.accelerate {
            self.release_flows(cx);
        }
        self.finish(cx);
    }
}
