//! Looks at the network while it runs: the series of its links, and what the scenario's instruments see. Done on the data thread, between turns.

use crate::network::Net;
use crate::relay::{Attendant, Core};
use bentpipe_base::Instant;
use bentpipe_report::InstrumentReport;
use bentpipe_scenario::Scenario;
use bentpipe_sim::{Instruments, Observe, Record, Sampler};
use std::cell::RefCell;
use std::rc::Rc;

/// Takes a sample whenever one is due.
#[derive(Clone, Debug)]
pub struct Samples(Rc<RefCell<Option<Watchers>>>);

#[derive(Debug)]
struct Watchers {
    sampler: Sampler,
    instruments: Instruments,
}

impl Samples {
    /// Before the run.
    pub fn new(scenario: &Scenario, net: &mut Net) -> Self {
        let watch = Observe { sequences: 0, ..Observe::default() };
        let instruments = Instruments::new(scenario, &mut net.network);
        let sampler = Sampler::new(scenario, &net.network, &watch);
        Self(Rc::new(RefCell::new(Some(Watchers { sampler, instruments }))))
    }

    /// What was seen; once.
    pub fn finish(&self, net: &mut Net) -> Option<(Record, Vec<InstrumentReport>)> {
        let Watchers { sampler, instruments } = self.0.borrow_mut().take()?;
        Some((sampler.finish(&mut net.network), instruments.finish(&mut net.network)))
    }
}

impl Attendant for Samples {
    fn attend(&mut self, core: &mut Core) -> bool {
        if let Some(watchers) = self.0.borrow_mut().as_mut() {
            let now = core.net.now();
            if now >= watchers.instruments.next() {
                watchers.instruments.look(&mut core.net.network);
            }
            if now >= watchers.sampler.next() {
                watchers.sampler.sample(&mut core.net.network);
            }
        }
        true
    }

    fn next(&self) -> Option<Instant> {
        self.0.borrow().as_ref().map(|w| w.sampler.next().min(w.instruments.next()))
    }
}
