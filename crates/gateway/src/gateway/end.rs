//! How an acceleration ends, and how a connection leaves the table.

use super::Gateway;
use super::rest::Rest;
use crate::config::Config;
use crate::counters::Why;
use crate::report::{End, State};
use crate::table::{Class, NONE};
use bentpipe_base::Cx;

impl Gateway {
    /// Stops accelerating a connection; held packets are sent. If its windows must still be translated the
    /// flow state stays, else only the table entry does.
    pub(super) fn give_up(&mut self, cx: &mut Cx<'_>, id: u32, why: Why) {
        let Some(entry) = self.table.get(id).copied() else { return };
        let Some(persist) = self.persist(id) else { return };
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            flow.release(cx, &mut self.common.shared());
        }
        self.table.update(id, |e| e.why = Some(why));
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
            flow.drop_all(cx, &mut self.common.shared());
            self.common.shaper.forget(id);
        }
        self.rests.remove(entry.rest);
        self.table.update(id, |e| (e.flow, e.rest) = (NONE, NONE));
        if entry.is_ours() && entry.class == Class::Accelerated {
            self.journal.note(id);
        }
    }

    /// Queues the final report of a connection, once.
    fn tell(&mut self, id: u32, end: End) {
        let Some(entry) = self.table.get(id).copied() else { return };
        // a SYN flood must not push out the reports of real connections
        let is_news = self.table.update(id, crate::table::Entry::tell) == Some(true);
        if !is_news || entry.state == State::Opening {
            return;
        }
        let report = entry.report(self.told_by(id), Some(end));
        match entry.why {
            None => self.fast.add(&report),
            Some(Why::Sampled) => self.left_alone.add(&report),
            Some(_) => {}
        }
        if self.ended.len() < self.common.config.limits.reports as usize {
            self.ended.push_back(report);
        } else {
            self.common.counters.reports_lost += 1;
        }
    }

    /// An accelerated connection has ended. Its table entry and what is needed to translate late duplicates
    /// stay for a while.
    pub(super) fn retire(&mut self, cx: &mut Cx<'_>, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            flow.release(cx, &mut self.common.shared());
        }
        self.table.update(id, |e| e.state = State::Closed);
        self.tell(id, End::Closed);
        let persist = self.persist(id);
        self.take_flow(cx, id);
        self.table.update(id, |e| e.why = Some(Why::Ended));
        if entry.class != Class::Passing && !self.table.has_room(Class::Passing, &self.common.config.limits) {
            self.table.remove(id);
            return;
        }
        let rest = persist.map_or(NONE, |persist| self.rests.insert(Rest::of_ended(persist)));
        self.table.update(id, |e| (e.class, e.rest) = (Class::Passing, rest));
        self.arm(cx.now, id);
    }

    /// The idle timeout of a connection has expired.
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, id: u32) {
        let is_over = self.table.get(id).is_some_and(|e| e.state >= State::Closing);
        self.end(cx, id, if is_over { End::Closed } else { End::Idle });
    }

    /// Forgets a connection; held packets are sent first.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, id: u32, end: End) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            flow.release(cx, &mut self.common.shared());
        }
        self.tell(id, end);
        self.take_flow(cx, id);
        self.table.remove(id);
    }

    /// Planned stop: sends everything that is held and accelerates nothing from now on. The gateway may then
    /// be removed, or stay and let everything pass.
    pub fn release_all(&mut self, cx: &mut Cx<'_>) {
        self.common.config.accelerate = false;
        self.release_flows(cx);
        // what passes and waits leaves too: whoever calls this may end the gateway next
        self.common.config.rate = None;
        self.common.shaper.configure(&self.common.config);
        self.finish(cx);
    }

    fn release_flows(&mut self, cx: &mut Cx<'_>) {
        let ids: Vec<u32> = self.table.ids(0).collect();
        for id in ids {
            if self.table.get(id).is_some_and(|e| e.why.is_none()) {
                self.give_up(cx, id, Why::Released);
            }
        }
    }

    /// Changes the configuration without losing a connection. Smaller limits apply to new connections only.
    /// If acceleration is switched off, current connections stop being accelerated.
    pub fn reconfigure(&mut self, cx: &mut Cx<'_>, config: Config) {
        self.take_key(cx);
        self.common.config = config;
        let config = &self.common.config;
        self.common.memory.limit = config.limits.memory.0;
        self.common.shaper.configure(config);
        self.table.rebuild(&config.limits, self.table.key());
        if !config.accelerate {
            self.release_flows(cx);
        }
        self.finish(cx);
    }
}
