//! Runs a scenario. The same scenario gives the same output, byte for byte.

use crate::build::{Network, build};
use crate::flow::{delivered, ends_itself, finished};
use crate::instrument::Instruments;
use crate::observe::{Observe, Sampler};
use crate::record::Record;
use crate::{reference, report};
use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Duration, Instant, NodeId};
use bentpipe_report::{InstrumentReport, Report, rate_bps};
use bentpipe_scenario::{Scenario, Stop};
use std::cell::RefCell;
use std::rc::Rc;

/// Runs `scenario` to its end.
pub fn run(scenario: &Scenario) -> Report {
    observe(scenario, None, |_| None).0
}

/// A trace sink that its owner can access after the run.
pub type SharedSink = Rc<RefCell<dyn Sink>>;

/// Runs `scenario` to its end and records it. `listen` may return an additional sink for the network.
pub fn run_recorded(
    scenario: &Scenario,
    watch: &Observe,
    listen: impl FnOnce(&Network) -> Option<SharedSink>,
) -> (Report, Record) {
    let (report, record) = observe(scenario, Some(watch), listen);
    (report, record.unwrap_or_default())
}

fn observe(
    scenario: &Scenario,
    watch: Option<&Observe>,
    listen: impl FnOnce(&Network) -> Option<SharedSink>,
) -> (Report, Option<Record>) {
    let mut net = build(scenario);
    let mut watchers = Watchers {
        sampler: watch.map(|w| Sampler::new(scenario, &net, w)),
        instruments: Instruments::new(scenario, &mut net),
    };
    let sinks: Vec<SharedSink> =
        watchers.sampler.iter().map(|s| s.recorder() as SharedSink).chain(listen(&net)).collect();
    if !sinks.is_empty() {
        net.sim.world.set_sink(Box::new(Tee(sinks)));
    }
    let end = Instant::ZERO + scenario.duration;
    let (from, to) = scenario.measure.unwrap_or((Instant::ZERO, end));
    let mut pending = Pending::new(scenario, &net);
    watchers.advance(&mut net, &mut pending, from, false);
    pending.strike_off(&net);
    let before = Counts::take(scenario, &mut net);
    watchers.advance(&mut net, &mut pending, to.min(end), true);
    let after = Counts::take(scenario, &mut net);
    let measured_until = if pending.is_over() { net.sim.now() } else { to.min(end) };
    if !pending.is_over() {
        watchers.advance(&mut net, &mut pending, end, true);
    }
    let measured = after.since(&before, measured_until.since(from));
    let record = watchers.sampler.map(|s| s.finish(&mut net));
    let instruments = watchers.instruments.finish(&mut net);
    (report_of(scenario, &mut net, &measured, instruments), record)
}

/// Counters over the measured interval.
struct Counts {
    /// Bytes delivered to the application of each flow.
    delivered: Vec<u64>,
    /// Bytes that each link direction carried, framing included, if the scenario asks for them.
    carried: Vec<u64>,
}

impl Counts {
    fn take(scenario: &Scenario, net: &mut Network) -> Self {
        let carried = if scenario.measure_links { carried(scenario, net) } else { Vec::new() };
        Self { delivered: delivered(net), carried }
    }

    /// Rates since `before`, which was `interval` ago.
    fn since(&self, before: &Self, interval: Duration) -> Measured {
        let rates = |after: &[u64], before: &[u64]| {
            after.iter().zip(before).map(|(a, b)| rate_bps(a - b, interval)).collect()
        };
        Measured {
            goodput_bps: rates(&self.delivered, &before.delivered),
            carried_bps: rates(&self.carried, &before.carried),
        }
    }
}

/// Rates in the measured interval.
struct Measured {
    goodput_bps: Vec<f64>,
    /// Empty if not requested.
    carried_bps: Vec<f64>,
}

fn carried(scenario: &Scenario, net: &mut Network) -> Vec<u64> {
    let framing = scenario.links.iter().flat_map(|l| [l.forward.framing, l.backward.framing]);
    let links: Vec<_> = net.links.iter().map(|(_, id)| *id).zip(framing).collect();
    let mut all = Vec::with_capacity(links.len());
    for (id, framing) in links {
        let Some((link, mut cx)) = net.sim.link(id) else { continue };
        let served = link.stats(&mut cx).served;
        all.push(served.bytes.0 + served.packets * framing.0);
    }
    all
}

/// Forwards the trace to several sinks.
struct Tee(Vec<SharedSink>);

impl Sink for Tee {
    fn mask(&self) -> Mask {
        self.0.iter().fold(Mask::default(), |mask, sink| mask.with(sink.borrow().mask()))
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        for sink in &self.0 {
            sink.borrow_mut().event(now, node, event);
        }
    }
}

/// Samplers and instruments, which act at times of their own.
struct Watchers {
    sampler: Option<Sampler>,
    instruments: Instruments,
}

impl Watchers {
    /// Runs the network until `until`, or until no flow is pending if `may_end`, and takes the samples.
    fn advance(&mut self, net: &mut Network, pending: &mut Pending, until: Instant, may_end: bool) {
        loop {
            let sample = self.sampler.as_ref().map_or(Instant::NEVER, Sampler::next);
            let stop = until.min(sample).min(self.instruments.next());
            if may_end {
                advance(net, pending, stop);
            } else {
                net.sim.run_until(stop, |_| false);
            }
            if may_end && pending.is_over() {
                return;
            }
            if self.instruments.next() <= stop {
                self.instruments.look(net);
            }
            if let Some(sampler) = self.sampler.as_mut().filter(|s| s.next() <= stop) {
                sampler.sample(net);
            }
            if stop >= until {
                return;
            }
        }
    }
}

/// Unfinished flows; used only if the run ends with them.
struct Pending {
    ends_early: bool,
    flows: Vec<usize>,
}

impl Pending {
    fn new(scenario: &Scenario, net: &Network) -> Self {
        let finite = |i: &usize| ends_itself(&scenario.flows[*i].app);
        let flows: Vec<usize> = (0..net.flows.len()).filter(finite).collect();
        Self { ends_early: scenario.stop == Stop::Finished && !flows.is_empty(), flows }
    }

    /// Removes finished flows.
    fn strike_off(&mut self, net: &Network) {
        self.flows.retain(|i| !finished(&net.sim, &net.flows[*i]));
    }

    fn is_over(&self) -> bool {
        self.ends_early && self.flows.is_empty()
    }
}

fn advance(net: &mut Network, pending: &mut Pending, until: Instant) {
    if !pending.ends_early {
        net.sim.run_until(until, |_| false);
        return;
    }
    // check a single unfinished flow after each event, not all of them
    while net.sim.now() < until && !pending.flows.is_empty() {
        let flows = net.flows.clone();
        let last = pending.flows[pending.flows.len() - 1];
        net.sim.run_until(until, |sim| finished(sim, &flows[last]));
        pending.strike_off(net);
    }
}

fn report_of(
    scenario: &Scenario,
    net: &mut Network,
    measured: &Measured,
    instruments: Vec<InstrumentReport>,
) -> Report {
    let goodput = &measured.goodput_bps;
    let flows =
        (0..scenario.flows.len()).map(|i| report::flow_report(scenario, net, i, goodput[i])).collect();
    let ran = net.sim.now().since(Instant::ZERO);
    let mut links = report::link_reports(net);
    for (link, carried) in links.iter_mut().zip(&measured.carried_bps) {
        link.carried_bps = Some(*carried);
    }
    let mut report = report::assemble(scenario, ran, flows, links, instruments);
    report.gateways = report::gateway_reports(net);
    report.nodes = report::node_reports(net);
    reference::compare(&mut report, scenario);
    report
}
