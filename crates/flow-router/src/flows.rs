//! The table of flows: bounded, ordered by the 5-tuple, with a queue of the times at which flows expire.
//!
//! A tree is used because its worst case does not depend on addresses, which an attacker may choose. It gives
//! the slot of a flow. All that is done for a packet concerns one flow, so the slot that was found last is
//! remembered, and the tree is searched once for a packet. The queue holds for each flow a time not after
//! its expiry: the flow is looked at then and put back if it was active in the meantime, so a packet of a
//! flow costs the queue nothing. Flows without signalling fill at most half of the table, so that they
//! cannot keep out flows that ask. A flow that has ended stays for the idle time: what arrives late of it,
//! such as a segment that is sent again, must not make a new member of its class, which would hold a share
//! for as long.

use crate::charges::Payer;
use crate::flow::{Flow, Phase, Timeouts};
use bentpipe_base::{Addr, Instant, Packet, Proto};
use std::collections::{BTreeMap, BTreeSet};

/// The 5-tuple of a flow into the managed direction. If the ports cannot be read, as with an encrypted
/// payload (RFC 4303), the IPv6 flow label takes their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowKey {
    src: Addr,
    dst: Addr,
    sport: u16,
    dport: u16,
    proto: u8,
}

impl FlowKey {
    /// The flow of a packet.
    pub(crate) fn of(packet: &Packet) -> Self {
        let Packet { src, dst, sport, dport, proto, .. } = *packet;
        match packet.flow_label() {
            Some(label) => Self::labelled(src, dst, label),
            None => Self { src, dst, sport, dport, proto: proto as u8 },
        }
    }

    /// The flow between two addresses with this label.
    pub(crate) const fn labelled(src: Addr, dst: Addr, label: u32) -> Self {
        Self { src, dst, sport: (label >> 16) as u16, dport: label as u16, proto: Proto::Opaque as u8 }
    }

    /// The same flow from another source.
    pub(crate) const fn from(self, src: Addr, sport: u16) -> Self {
        Self { src, sport, ..self }
    }

    /// The flow that a packet of the other direction answers.
    pub(crate) fn reverse_of(packet: &Packet) -> Self {
        let Self { src, dst, sport, dport, proto } = Self::of(packet);
        Self { src: dst, dst: src, sport: dport, dport: sport, proto }
    }

    /// Source and destination.
    pub(crate) const fn addresses(&self) -> [Addr; 2] {
        [self.src, self.dst]
    }
}

/// The available rate that a flow has, bit/s.
fn available(flow: &Flow) -> u64 {
    if flow.phase == Phase::Capable { flow.grant } else { 0 }
}

/// All flows.
#[derive(Debug)]
pub(crate) struct Flows {
    slots: Vec<Option<Flow>>,
    free: Vec<usize>,
    map: BTreeMap<FlowKey, usize>,
    /// The flow that was found last, and its slot.
    found: Option<(FlowKey, usize)>,
    /// Flows that may have expired at a time.
    due: BTreeSet<(Instant, FlowKey)>,
    by_phase: [usize; 4],
    /// Sum of the available rates that flows have, bit/s.
    given: u128,
    most: usize,
    timeouts: Timeouts,
}

impl Flows {
    pub(crate) fn new(most: u32, timeouts: Timeouts) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            map: BTreeMap::new(),
            found: None,
            due: BTreeSet::new(),
            by_phase: [0; 4],
            given: 0,
            most: most as usize,
            timeouts,
        }
    }

    /// Flows are looked at as the old times said, so shorter ones apply from each flow's next look on.
    pub(crate) const fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.timeouts = timeouts;
    }

    fn slot(&self, key: &FlowKey) -> Option<usize> {
        match self.found {
            Some((found, slot)) if found == *key => Some(slot),
            _ => self.map.get(key).copied(),
        }
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.slots.get(self.slot(key)?)?.as_ref()
    }

    /// The flow, to be changed; its phase only by [`Flows::set_phase`].
    pub(crate) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        let slot = self.slot(key)?;
        self.found = Some((*key, slot));
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(crate) fn forget_payers(&mut self) {
        self.slots.iter_mut().flatten().for_each(|flow| flow.payer = Payer::default());
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &FlowKey> {
        self.map.keys()
    }

    /// Counts what a flow has been given since its phase or its grant has changed.
    pub(crate) fn note_given(&mut self, key: &FlowKey) {
        let Some(flow) = self.get_mut(key) else { return };
        let (before, given) = (flow.given, available(flow));
        flow.given = given;
        self.given = self.given - u128::from(before) + u128::from(given);
    }

    /// Sum of the available rates that flows have, bit/s.
    pub(crate) fn given(&self) -> u64 {
        debug_assert_eq!(
            self.given,
            self.slots.iter().flatten().map(|flow| u128::from(available(flow))).sum::<u128>(),
            "what flows have"
        );
        u64::try_from(self.given).unwrap_or(u64::MAX)
    }

    /// How many flows are in a phase.
    pub(crate) const fn count(&self, phase: Phase) -> usize {
        self.by_phase[phase as usize]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty() && self.due.is_empty()
    }

    /// Adds a flow that is not in the table; false if there is no room.
    pub(crate) fn insert(&mut self, key: FlowKey, flow: Flow) -> bool {
        let without = self.by_phase[Phase::Plain as usize] + self.by_phase[Phase::Closed as usize];
        let is_crowded = flow.phase == Phase::Plain && without >= self.most.div_ceil(2);
        if self.map.len() >= self.most || is_crowded {
            return false;
        }
        self.by_phase[flow.phase as usize] += 1;
        let slot = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(slot) {
            Some(place) => *place = Some(flow),
            None => self.slots.push(Some(flow)),
        }
        self.map.insert(key, slot);
        self.schedule(key);
        true
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) -> Option<Flow> {
        let slot = self.map.remove(key)?;
        self.found = self.found.filter(|(found, _)| found != key);
        let flow = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        self.by_phase[flow.phase as usize] -= 1;
        self.given -= u128::from(flow.given);
        self.due.remove(&(flow.check_at, *key));
        Some(flow)
    }

    /// Sets how far a flow is.
    pub(crate) fn set_phase(&mut self, key: FlowKey, phase: Phase, now: Instant) {
        let Some(flow) = self.get_mut(&key) else { return };
        let before = core::mem::replace(&mut flow.phase, phase);
        flow.since = now;
        self.by_phase[before as usize] -= 1;
        self.by_phase[phase as usize] += 1;
        self.schedule(key);
    }

    /// Makes sure that a flow is looked at when it expires, after something changed that may let it expire
    /// earlier than before.
    pub(crate) fn schedule(&mut self, key: FlowKey) {
        let timeouts = self.timeouts;
        let Some(flow) = self.get_mut(&key) else { return };
        let at = flow.expires(&timeouts);
        if at < flow.check_at {
            let before = core::mem::replace(&mut flow.check_at, at);
            self.due.remove(&(before, key));
            self.due.insert((at, key));
        }
    }

    /// Returns a flow that has expired, which must then be removed or get another phase.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Option<FlowKey> {
        while let Some((at, key)) = self.due.first().copied()
            && at <= now
        {
            self.due.pop_first();
            let timeouts = self.timeouts;
            let Some(flow) = self.get_mut(&key) else { continue };
            flow.check_at = Instant::NEVER;
            if flow.expires(&timeouts) <= now {
                return Some(key);
            }
            self.schedule(key);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;

    fn key(n: u32) -> FlowKey {
        FlowKey::of(&Packet { src: Addr(n), ..Packet::default() })
    }

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn flows(most: u32) -> Flows {
        let timeouts = Timeouts {
            half_open: Duration::from_millis(3),
            idle: Duration::from_millis(10),
            maximum: Duration::from_millis(2),
        };
        Flows::new(most, timeouts)
    }

    fn flow(phase: Phase) -> Flow {
        Flow::new(at(0), phase, 0)
    }

    #[test]
    fn a_packet_back_belongs_to_the_flow_it_answers() {
        let there = Packet { src: Addr(1), sport: 10, dst: Addr(2), dport: 20, ..Packet::default() };
        let back = Packet { src: Addr(2), sport: 20, dst: Addr(1), dport: 10, ..Packet::default() };
        assert_eq!(FlowKey::of(&there), FlowKey::reverse_of(&back));
        assert_ne!(FlowKey::of(&there), FlowKey::of(&back));
        assert_ne!(FlowKey::of(&there), FlowKey::of(&Packet { proto: Proto::Udp, ..there }));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_half_for_flows_that_ask() {
        let mut flows = flows(4);
        assert!(flows.insert(key(1), flow(Phase::Plain)) && flows.insert(key(2), flow(Phase::Plain)));
        assert!(!flows.insert(key(3), flow(Phase::Plain)));
        assert!(flows.insert(key(3), flow(Phase::HalfOpen)) && flows.insert(key(4), flow(Phase::HalfOpen)));
        assert!(!flows.insert(key(5), flow(Phase::HalfOpen)));
        flows.set_phase(key(1), Phase::Capable, at(0));
        assert!(flows.remove(&key(4)).is_some() && flows.remove(&key(4)).is_none());
        assert!(flows.insert(key(5), flow(Phase::Plain)));
        assert_eq!((flows.by_phase, flows.keys().count()), ([1, 1, 2, 0], 4));
    }

    #[test]
    fn an_active_flow_is_put_off_and_a_silent_one_expires() {
        let mut flows = flows(4);
        flows.insert(key(1), flow(Phase::Plain));
        flows.insert(key(2), flow(Phase::Plain));
        flows.get_mut(&key(1)).unwrap().last = at(8);
        assert_eq!(flows.take_expired(at(9)), None);
        assert_eq!(flows.take_expired(at(10)), Some(key(2)));
        flows.remove(&key(2));
        assert_eq!(flows.take_expired(at(17)), None);
        assert_eq!(flows.take_expired(at(18)), Some(key(1)));
        // given another phase instead
        flows.set_phase(key(1), Phase::HalfOpen, at(18));
        assert_eq!((flows.take_expired(at(20)), flows.take_expired(at(21))), (None, Some(key(1))));
        flows.remove(&key(1));
        assert!(flows.is_empty() && flows.due.is_empty());
    }

    #[test]
    fn a_phase_that_expires_earlier_is_looked_at_earlier() {
        let mut flows = flows(4);
        flows.insert(key(1), flow(Phase::Plain));
        flows.set_phase(key(1), Phase::HalfOpen, at(1));
        assert_eq!((flows.take_expired(at(3)), flows.due.len()), (None, 1));
        assert_eq!(flows.take_expired(at(4)), Some(key(1)));
    }
}
