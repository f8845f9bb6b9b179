//! How an acceleration ends, and how a connection leaves the table.

use super::Gateway;
use super::rest::Rest;
use crate::config::Config;
use crate::counters::Why;
use crate::report::{End, State};
use crate::table::{Class, NONE};
use bentpipe_base::Cx;

impl Gateway {
    /// Stops accelerating a connection: what is held goes on. Where windows must still be translated it stays with us, else only its name does.
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

    /// Takes the acceleration of a connection away, which has nothing left to send.
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

    /// Tells of a connection, once.
    fn tell(&mut self, id: u32, end: End) {
        let Some(entry) = self.table.get(id).copied() else { return };
        // a flood must not push out the reports of connections that were
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

    /// An accelerated connection is over. Its name stays for a while, so that late copies of its packets are known, and what it takes to translate them.
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

    /// Nothing came for too long.
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, id: u32) {
        let is_over = self.table.get(id).is_some_and(|e| e.state >= State::Closing);
        self.end(cx, id, if is_over { End::Closed } else { End::Idle });
    }

    /// Forgets a connection; what it holds goes on first.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, id: u32, end: End) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if let Some(flow) = self.flows.get_mut(entry.flow) {
            flow.release(cx, &mut self.common.shared());
        }
        self.tell(id, end);
        self.take_flow(cx, id);
        self.table.remove(id);
    }

    /// Planned stop: everything that is held goes on, and nothing is accelerated any more. The gateway may then go, or stay and let everything pass.
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

    /// Works differently from now on, without losing a connection. Smaller limits hold for those that come; a gateway that is told not to accelerate gives
    /// up those it has.
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
