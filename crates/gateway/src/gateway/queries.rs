//! Queries of a running gateway.

use super::Gateway;
use crate::counters::Counters;
use crate::flow::Flow;
use crate::report::{FlowReport, GatewayReport};
use bentpipe_base::Size;

impl Gateway {
    /// Returns the report of the whole gateway.
    pub fn report(&self) -> GatewayReport {
        let passing = self.table.passing;
        GatewayReport {
            counters: self.counters(),
            states: self.table.states,
            accelerated: self.table.len() - passing.iter().sum::<u32>(),
            awake: self.flows.len(),
            passing,
            held: Size(self.shared.memory.payload),
            held_peak: self.shared.memory.peak(),
            footprint: Size(self.footprint() as u64),
            windows: self.census.classes(),
            more_clients: self.census.is_full,
            hop_rtt: self.census.hop_rtt.or(self.shared.config.rtt),
            fair_share: self.shared.shaper.fair_share(),
            fast: self.fast,
            control_group: self.left_alone,
        }
    }

    /// Memory used for tracking connections. Heap memory inside active flows is not counted.
    fn footprint(&self) -> usize {
        let awake = self.flows.len() as usize * size_of::<Flow>();
        self.table.footprint()
            + self.flows.footprint()
            + self.sleeping.footprint()
            + awake
            + self.census.footprint()
    }

    /// True if nothing is held or waits for the hop: a stopped gateway can then be removed.
    pub fn is_drained(&self) -> bool {
        self.shared.memory.used == 0 && self.shared.shaper.deadline().is_none()
    }

    /// Totals since the gateway started.
    pub fn counters(&self) -> Counters {
        let mut counters = self.shared.counters;
        counters.losses = counters.lost.estimate(self.shared.shaper.losses.share());
        counters
    }

    /// Returns the connections from number `from` on, at most `most`, and the number at which the next page
    /// starts. They are ordered by number. A connection that exists throughout appears in exactly one page.
    pub fn flows(&self, from: u32, most: usize) -> (Vec<FlowReport>, Option<u32>) {
        let mut page = Vec::new();
        for id in self.table.ids(from) {
            if page.len() == most {
                return (page, Some(id));
            }
            if let Some(entry) = self.table.get(id) {
                page.push(entry.report(self.flow_report(id), None));
            }
        }
        (page, None)
    }

    /// Returns the oldest unfetched report of an ended connection.
    pub fn take_closed(&mut self) -> Option<FlowReport> {
        self.ended.pop_front()
    }
}
