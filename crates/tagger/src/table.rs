//! The table of flows: bounded, ordered by key, with a queue of the times at which flows expire.
//!
//! A tree is used because its worst case does not depend on addresses, which an attacker may choose. The
//! queue holds for each flow a time not after its expiry; the flow is looked at then, and put back if it was
//! active in the meantime.

use crate::config::TaggerConfig;
use crate::flow::{Flow, Phase};
use bentpipe_base::{Addr, Instant, Packet};
use std::collections::{BTreeMap, BTreeSet};

/// A flow of segments or datagrams, seen from its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Address and port of the host.
    pub host: (Addr, u16),
    /// Address and port of the peer.
    pub peer: (Addr, u16),
}

impl FlowKey {
    /// The flow of a packet that the host sends.
    pub(crate) const fn from_host(packet: &Packet) -> Self {
        Self { host: (packet.src, packet.sport), peer: (packet.dst, packet.dport) }
    }

    /// The flow of a packet that the peer sends.
    pub(crate) const fn from_peer(packet: &Packet) -> Self {
        Self { host: (packet.dst, packet.dport), peer: (packet.src, packet.sport) }
    }

    pub(crate) const fn addresses(&self) -> [Addr; 2] {
        [self.host.0, self.peer.0]
    }
}

/// All flows.
#[derive(Debug)]
pub(crate) struct Table {
    flows: BTreeMap<FlowKey, Flow>,
    /// Flows that may have expired at a time.
    queue: BTreeSet<(Instant, FlowKey)>,
    /// Flows that are opening, the oldest first.
    opening: BTreeSet<(Instant, FlowKey)>,
    /// Flows that have ended.
    closing: usize,
    /// Flows that came or went since the driver asked last, if it does; true for those that were open and
    /// silent when they were forgotten.
    changed: Option<BTreeMap<FlowKey, bool>>,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self {
            flows: BTreeMap::new(),
            queue: BTreeSet::new(),
            opening: BTreeSet::new(),
            closing: 0,
            changed: None,
        }
    }

    /// Notes from now on which flows come and go.
    pub(crate) fn follow(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// The flows that came or went since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeMap<FlowKey, bool> {
        self.changed.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Flows that came or went, whose addresses are still needed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &FlowKey> {
        self.changed.iter().flat_map(BTreeMap::keys)
    }

    /// Number of flows that have not ended.
    pub(crate) fn open(&self) -> usize {
        self.flows.len() - self.closing
    }

    /// All flows, in the order of their addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&FlowKey, &Flow)> {
        self.flows.iter()
    }

    fn note(&mut self, key: FlowKey, was_open: bool) {
        if let Some(changed) = &mut self.changed {
            changed.insert(key, was_open);
        }
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.flows.get(key)
    }

    /// The flow, to be changed; its phase only by [`Table::set_phase`].
    pub(crate) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        self.flows.get_mut(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &FlowKey> {
        self.flows.keys()
    }

    /// Adds a flow that is opening, in the place of the oldest such flow if there are too many; false if the
    /// table is full.
    pub(crate) fn insert(&mut self, key: FlowKey, flow: Flow, config: &TaggerConfig) -> bool {
        self.remove(&key);
        if self.opening.len() >= config.half_open as usize
            && let Some((_, oldest)) = self.opening.first().copied()
        {
            self.remove(&oldest);
        }
        if self.flows.len() >= config.flows as usize {
            return false;
        }
        self.opening.insert((flow.since, key));
        self.flows.insert(key, flow);
        self.note(key, false);
        self.enqueue(key, config);
        true
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) -> Option<Flow> {
        let flow = self.flows.remove(key)?;
        self.closing -= usize::from(flow.phase == Phase::Closing);
        self.note(*key, false);
        self.opening.remove(&(flow.since, *key));
        self.queue.remove(&(flow.check_at, *key));
        Some(flow)
    }

    /// Sets how far a flow is.
    pub(crate) fn set_phase(&mut self, key: FlowKey, phase: Phase, now: Instant, config: &TaggerConfig) {
        let Some(flow) = self.flows.get_mut(&key).filter(|flow| flow.phase != phase) else { return };
        self.opening.remove(&(flow.since, key));
        self.closing += usize::from(phase == Phase::Closing);
        self.closing -= usize::from(flow.phase == Phase::Closing);
        (flow.phase, flow.since) = (phase, now);
        self.enqueue(key, config);
    }

    /// Makes sure that a flow is looked at when it expires.
    fn enqueue(&mut self, key: FlowKey, config: &TaggerConfig) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let before = flow.check_at;
        flow.check_at = before.min(flow.expires(config.half_open_time, config.idle));
        if flow.check_at < before {
            self.queue.remove(&(before, key));
            self.queue.insert((flow.check_at, key));
        }
    }

    /// Removes a flow that has expired.
    pub(crate) fn remove_expired(&mut self, now: Instant, config: &TaggerConfig) -> Option<(FlowKey, Flow)> {
        while self.next_check() <= now {
            let (_, key) = self.queue.pop_first()?;
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            flow.check_at = Instant::NEVER;
            if flow.expires(config.half_open_time, config.idle) <= now {
                let expired = self.remove(&key)?;
                self.note(key, expired.phase == Phase::Open);
                return Some((key, expired));
            }
            self.enqueue(key, config);
        }
        None
    }

    /// When the next flow has to be looked at.
    pub(crate) fn next_check(&self) -> Instant {
        self.queue.first().map_or(Instant::NEVER, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_advice::negotiation::AskConfig;
    use bentpipe_base::{Duration, IpVersion};

    fn key(port: u16) -> FlowKey {
        FlowKey { host: (Addr(1), port), peer: (Addr(2), 80) }
    }

    fn at(s: u64) -> Instant {
        Instant(s * 1_000_000_000)
    }

    fn config() -> TaggerConfig {
        let (half_open_time, idle) = (Duration::from_secs(3), Duration::from_secs(100));
        TaggerConfig { flows: 3, half_open: 2, half_open_time, idle, ..TaggerConfig::new(Vec::new()) }
    }

    fn insert(table: &mut Table, port: u16, s: u64) -> bool {
        let flow = Flow::new(at(s), &AskConfig::default(), IpVersion::V4, true);
        table.insert(key(port), flow, &config())
    }

    #[test]
    fn the_oldest_handshake_makes_room_and_an_open_flow_does_not() {
        let mut table = Table::new();
        assert!(insert(&mut table, 1, 0) && insert(&mut table, 2, 1) && insert(&mut table, 3, 2));
        assert!(table.get(&key(1)).is_none() && table.len() == 2);
        for port in [2, 3] {
            table.set_phase(key(port), Phase::Open, at(2), &config());
        }
        assert!(insert(&mut table, 4, 2));
        assert!(!insert(&mut table, 5, 2), "the table is full");
        assert!(insert(&mut table, 4, 2), "its own place");
        assert_eq!((table.opening.len(), table.queue.len(), table.keys().count()), (1, 3, 3));
    }

    #[test]
    fn flows_expire_by_phase_and_activity() {
        let (mut table, config) = (Table::new(), config());
        let set = |table: &mut Table, phase, s| table.set_phase(key(2), phase, at(s), &config);
        let expired = |table: &mut Table, s| table.remove_expired(at(s), &config).map(|(key, _)| key);
        insert(&mut table, 1, 0);
        insert(&mut table, 2, 0);
        set(&mut table, Phase::Open, 1);
        assert_eq!((table.next_check(), expired(&mut table, 3)), (at(3), Some(key(1))));
        table.get_mut(&key(2)).unwrap().last = at(50);
        assert_eq!(expired(&mut table, 100), None);
        assert_eq!(table.next_check(), at(150));
        set(&mut table, Phase::Closing, 60);
        assert_eq!((expired(&mut table, 109), expired(&mut table, 110)), (None, Some(key(2))));
        assert_eq!((table.len(), table.next_check()), (0, Instant::NEVER));
    }

    #[test]
    fn what_came_and_went_is_told_to_those_who_ask() {
        let mut table = Table::new();
        insert(&mut table, 1, 0);
        assert_eq!(table.take_changed().len(), 0);
        table.follow();
        insert(&mut table, 2, 0);
        table.remove(&key(1));
        assert_eq!(table.take_changed().into_iter().collect::<Vec<_>>(), [(key(1), false), (key(2), false)]);
        assert_eq!((table.take_changed().len(), table.open()), (0, 1));
        table.set_phase(key(2), Phase::Closing, at(1), &config());
        assert_eq!((table.open(), table.len(), table.changed().count()), (0, 1, 0));
        table.set_phase(key(2), Phase::Open, at(1), &config());
        table.get_mut(&key(2)).unwrap().last = at(1);
        assert!(table.remove_expired(at(200), &config()).is_some());
        assert_eq!((table.open(), table.closing, table.take_changed().get(&key(2))), (0, 0, Some(&true)));
    }
}
