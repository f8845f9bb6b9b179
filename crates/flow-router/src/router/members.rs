//! Which flows there are, how far each is, and with what limit it takes part in the division.

use super::FlowRouter;
use crate::flow::{Flow, Phase};
use crate::flows::FlowKey;
use bentpipe_base::Instant;

impl FlowRouter {
    /// What the router may give in total, bit/s.
    pub(super) fn capacity(&self) -> u64 {
        (self.config.rate.bps() as f64 * self.config.utilisation) as u64
    }

    /// What a class may reserve, bit/s.
    pub(super) fn reservable(&self, class: usize) -> u64 {
        let share = self.config.classes.get(class).map_or(0.0, |class| class.reservable);
        (self.capacity() as f64 * share) as u64
    }

    /// After a change of the capacity or of a reservation.
    pub(super) fn update_pool(&mut self) {
        self.classes.set_pool(self.capacity().saturating_sub(self.reservations.total()));
    }

    /// Adds a flow; false if the table has no room.
    pub(super) fn add(&mut self, now: Instant, key: FlowKey, phase: Phase, class: usize) -> bool {
        let is_added = self.flows.insert(key, Flow::new(now, phase, class));
        self.counts.flows += u64::from(is_added);
        if is_added && phase == Phase::HalfOpen {
            self.half_open.add(now, key);
        }
        is_added
    }

    /// Removes a flow and frees its share.
    pub(super) fn remove(&mut self, key: &FlowKey) {
        let Some(flow) = self.flows.remove(key) else { return };
        if flow.phase == Phase::HalfOpen {
            self.half_open.remove(flow.since, *key);
        }
        if let Some(limit) = flow.counted {
            self.classes.remove(flow.class, limit);
        }
        self.reservations.lower(*key, 0);
        self.update_pool();
    }

    /// Sets how far a flow is; without a rate it also loses its reservation.
    pub(super) fn set_phase(&mut self, now: Instant, key: FlowKey, phase: Phase) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        if flow.phase == Phase::HalfOpen {
            self.half_open.remove(flow.since, key);
        }
        if phase == Phase::HalfOpen {
            self.half_open.add(now, key);
        }
        if matches!(phase, Phase::Plain | Phase::Closed) {
            flow.forget_rates();
            self.reservations.lower(key, 0);
            self.update_pool();
        }
        self.flows.set_phase(key, phase, now);
        self.recount(&key);
    }

    /// A flow turns out to have no rate: it is one without signalling, or none if it has sent no data.
    pub(super) fn lapse(&mut self, now: Instant, key: FlowKey) {
        let Some(flow) = self.flows.get(&key) else { return };
        if flow.has_sent {
            self.set_phase(now, key, Phase::Plain);
        } else {
            self.remove(&key);
        }
        self.review_trust(now);
    }

    /// A flow ends. It is kept for late packets, without a share.
    pub(super) fn close(&mut self, now: Instant, key: FlowKey) {
        let Some(phase) = self.flows.get(&key).map(|flow| flow.phase) else { return };
        if phase != Phase::Closed {
            self.set_phase(now, key, Phase::Closed);
            self.review_trust(now);
        }
    }

    /// Takes part in the division with the limit that a flow has now.
    pub(super) fn recount(&mut self, key: &FlowKey) {
        self.flows.note_given(key);
        let Some(flow) = self.flows.get_mut(key) else { return };
        let is_member = flow.phase != Phase::HalfOpen || self.half_open.is_member(flow.since, *key);
        let limit = flow.limit(is_member);
        if limit == flow.counted {
            return;
        }
        if let Some(before) = flow.counted {
            self.classes.remove(flow.class, before);
        }
        if let Some(limit) = limit {
            self.classes.add(flow.class, limit);
        }
        flow.counted = limit;
    }

    /// Decides anew which of the flows that wait for a response take part.
    pub(super) fn review_trust(&mut self, now: Instant) {
        let changed = self.half_open.review(now, self.flows.count(Phase::Capable));
        for key in changed {
            self.recount(&key);
        }
    }

    /// Counts a request as answered.
    pub(super) fn note_answer(&mut self, now: Instant, key: &FlowKey) {
        let since = self.flows.get(key).map(|flow| now.since(flow.since));
        self.half_open.note(since);
    }

    /// What a flow is offered that asks for `limit`; `counted` is the limit with which it is a member. Those
    /// that wait for a response may be forged: beyond the members among them they lower no offer to a flow
    /// that has a rate.
    pub(super) fn share_asked(
        &mut self,
        key: &FlowKey,
        class: usize,
        limit: u64,
        counted: Option<u64>,
    ) -> u64 {
        let has_rate = self.flows.get(key).is_some_and(|flow| flow.phase == Phase::Capable);
        let crowd = if has_rate { 0 } else { self.half_open.crowd(counted.is_some()) };
        self.classes.add_many(class, limit, crowd);
        let share = self.classes.share_with(class, limit, counted);
        self.classes.remove_many(class, limit, crowd);
        share
    }

    /// The share of a flow that has a rate, bit/s.
    pub(super) fn share_of(&mut self, key: &FlowKey) -> Option<u64> {
        let flow = self.flows.get(key)?;
        Some(flow.counted.map_or(0, |_| flow.own_limit().min(self.classes.level(flow.class))))
    }
}
