//! Samples the running network on the data thread, between turns: the time series of its links, and the
//! scenario's instruments.

use crate::relay::Names;
use bentpipe_base::Instant;
use bentpipe_driver::{Core, LiveNetwork, TurnHook};
use bentpipe_report::InstrumentReport;
use bentpipe_scenario::Scenario;
use bentpipe_sim::{Instruments, Record, RecordOptions, Sampler};
use std::cell::RefCell;
use std::rc::Rc;

/// Takes a sample whenever one is due.
#[derive(Clone, Debug)]
pub struct Samples {
    names: Names,
    watchers: Rc<RefCell<Option<(Sampler, Instruments)>>>,
}

impl Samples {
    /// Prepares sampling before the run.
    pub fn new(scenario: &Scenario, net: &mut LiveNetwork, names: &Names) -> Self {
        let watch = RecordOptions { sequences: 0, ..RecordOptions::default() };
        let watchers = names.with(net, |network| {
            let instruments = Instruments::new(scenario, network);
            (Sampler::new(scenario, network, &watch), instruments)
        });
        Self { names: names.clone(), watchers: Rc::new(RefCell::new(Some(watchers))) }
    }

    /// Returns the samples; `None` when called again.
    pub fn finish(&self, net: &mut LiveNetwork) -> Option<(Record, Vec<InstrumentReport>)> {
        let (sampler, instruments) = self.watchers.borrow_mut().take()?;
        Some(self.names.with(net, |network| (sampler.finish(network), instruments.finish(network))))
    }
}

impl TurnHook for Samples {
    fn on_turn(&mut self, core: &mut Core) -> bool {
        let now = core.net.now();
        if let Some((sampler, instruments)) = self.watchers.borrow_mut().as_mut()
            && now >= sampler.next().min(instruments.next())
        {
            self.names.with(&mut core.net, |network| {
                if now >= instruments.next() {
                    instruments.sample(network);
                }
                if now >= sampler.next() {
                    sampler.sample(network);
                }
            });
        }
        true
    }

    fn next(&self) -> Option<Instant> {
        self.watchers.borrow().as_ref().map(|(sampler, instruments)| sampler.next().min(instruments.next()))
    }
}
