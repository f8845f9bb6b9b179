//! Records that a driver saves, so that connections survive a restart of the gateway.

use super::Gateway;
use super::sleeping::SleepingFlow;
use crate::report::{FlowReport, State};
use crate::table::persist::{RECORD, Record};
use crate::table::{Class, Entry};
use bentpipe_base::{Cx, Flags, Packet};

/// Result of restoring records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Restored connections.
    pub flows: u32,
    /// Unusable records: torn, or of another version.
    pub damaged: u32,
    /// Records for which there was no room, or whose connection is already known.
    pub refused: u32,
}

impl Gateway {
    /// Returns the record of a connection: none unless its handshake is complete, and it is accelerated or
    /// was, so that its windows must be translated.
    fn record(&self, id: u32) -> Option<Record> {
        let entry = self.table.get(id).filter(|e| e.class == Class::Accelerated)?;
        let persist = self.persist(id)?;
        let names = entry.report(FlowReport::default(), None);
        Some(Record { addrs: names.addrs, ports: names.ports, persist })
    }

    /// Notes that the record of a connection changed.
    pub(super) fn note_change(&mut self, id: u32) {
        if let Some(changed) = self.changed.as_mut().filter(|changed| changed.back() != Some(&id)) {
            changed.push_back(id);
        }
    }

    /// Starts collecting changed records for [`Gateway::take_changed`], which must then be called regularly.
    /// All current records count as changed.
    pub fn keep_journal(&mut self) {
        self.changed = Some(self.table.ids(0).filter(|id| self.record(*id).is_some()).collect());
    }

    /// Returns the next changed record: its number and its new content, all zeros if the record is deleted.
    pub fn take_changed(&mut self) -> Option<(u32, [u8; RECORD])> {
        let id = self.changed.as_mut()?.pop_front()?;
        Some((id, self.record(id).map_or([0; RECORD], |r| r.to_bytes())))
    }

    /// Returns all records, concatenated.
    pub fn save(&self) -> Vec<u8> {
        self.table.ids(0).filter_map(|id| self.record(id)).flat_map(|r| r.to_bytes()).collect()
    }

    /// Restores the connections of an earlier gateway from its records; empty slots are skipped. They pass
    /// with translated windows, unaccelerated, until enough is known of them. The address numbers must stand
    /// for the same addresses as when the records were written.
    pub fn restore(&mut self, cx: &mut Cx<'_>, bytes: &[u8]) -> Restored {
        self.take_key(cx);
        let mut restored = Restored::default();
        for place in bytes.chunks(RECORD) {
            match Record::from_bytes(place) {
                Ok(None) => {}
                Ok(Some(record)) if self.resume(cx, &record) => restored.flows += 1,
                Ok(Some(_)) => restored.refused += 1,
                Err(_) => restored.damaged += 1,
            }
        }
        self.request_wake(cx);
        restored
    }

    fn resume(&mut self, cx: &mut Cx<'_>, record: &Record) -> bool {
        let (key, is_low) = record.key();
        let limits = &self.shared.config.limits;
        if self.table.find(&key).is_some() || !self.table.has_room(Class::Accelerated, limits) {
            return false;
        }
        let mut ack = Packet::default();
        ack.tcp.flags = Flags::ACK;
        let mut entry = Entry::new(key, 0, is_low, &ack, cx.now);
        (entry.class, entry.state) = (Class::Accelerated, State::Established);
        entry.rest = self.sleeping.insert(SleepingFlow::new(record.persist, false));
        let id = self.table.insert(entry);
        self.shared.counters.flows += 1;
        self.note_change(id);
        self.settle(cx, id);
        true
    }
}
