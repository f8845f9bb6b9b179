//! What can be asked of a gateway while it works.

use super::Gateway;
use crate::counters::Counters;
use crate::flow::Flow;
use crate::report::{FlowReport, GatewayReport};
use bentpipe_base::{Addr, Size};

impl Gateway {
    /// The gateway as a whole.
    pub fn report(&self) -> GatewayReport {
        let passing = self.table.passing();
        GatewayReport {
            counters: self.counters(),
            states: self.table.states(),
            accelerated: self.table.len() - passing.iter().sum::<u32>(),
            awake: self.flows.len(),
            passing,
            held: Size(self.common.memory.payload),
            held_peak: self.common.memory.peak(),
            footprint: Size(self.footprint() as u64),
            fast: self.fast,
            left_alone: self.left_alone,
        }
    }

    /// Bytes that following connections takes; of those that are awake what they have on the heap is not
    /// counted.
    fn footprint(&self) -> usize {
        let awake = self.flows.len() as usize * size_of::<Flow>();
        self.table.footprint() + self.flows.footprint() + self.rests.footprint() + awake
    }

    /// True when nothing is held and nothing waits for the hop: after a planned stop the moment to go.
    pub fn is_drained(&self) -> bool {
        self.common.memory.used == 0 && self.common.shaper.deadline().is_none()
    }

    /// Totals since it began.
    pub fn counters(&self) -> Counters {
        let mut counters = self.common.counters;
        counters.losses = counters.lost.estimate(self.common.shaper.losses.share());
        counters
    }

    /// Connections from number `from` on, at most `most` of them, and the number to go on from. They come in
    /// the order of numbers, and one that is there all the time is in exactly one page.
    pub fn flows(&self, from: u32, most: usize) -> (Vec<FlowReport>, Option<u32>) {
        let mut page = Vec::new();
        for id in self.table.ids(from) {
            if page.len() == most {
                return (page, Some(id));
            }
            if let Some(entry) = self.table.get(id) {
                page.push(entry.report(self.told_by(id), None));
            }
        }
        (page, None)
    }

    /// A connection that has ended, the oldest of those not taken yet.
    pub fn take_closed(&mut self) -> Option<FlowReport> {
        self.ended.pop_front()
    }

    /// Calls `each` with both addresses of every connection: those that a driver must not give away.
    pub(super) fn table_addresses(&self, each: &mut dyn FnMut(Addr)) {
        for entry in self.table.ids(0).filter_map(|id| self.table.get(id)) {
            entry.key.ends().into_iter().for_each(|end| each(end.0));
        }
    }
}
