//! Runs a scenario. The same scenario gives the same output, byte for byte.

use crate::build::{Network, build};
use crate::flow::{self, arrived_by, delivered_by, finished_at, is_finite};
use crate::instrument::Instruments;
use crate::observe::{RecordOptions, Sampler};
use crate::record::Record;
use crate::{reference, report};
use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Duration, Instant, NodeId, Size};
use bentpipe_report::{FlowReport, InstrumentReport, Report, rate_bps};
use bentpipe_scenario::{Scenario, Stop};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Least simulated time between two questions of [`run_while`].
const PAUSE: Duration = Duration::from_millis(100);
/// Most questions of a run: a run of days is not slowed down by them.
const MOST_PAUSES: u64 = 1_000_000;

/// How many flows before its report what a flow's sender knows is read, so that memory is waited for once.
const AHEAD: usize = 4;

/// Runs `scenario` to its end.
pub fn run(scenario: &Scenario) -> Report {
    observe(scenario, Watch::default(), |_| None).expect("nothing stops it").0
}

/// Runs `scenario` to its end, and records it if there is a `watch`; also returns how many repetitions were
/// skipped.
pub fn run_skipping(scenario: &Scenario, watch: Option<&RecordOptions>) -> (Report, Option<Record>, u64) {
    let skipped = Cell::new(0);
    let watch = Watch { record: watch, skipped: Some(&skipped), ..Watch::default() };
    let (report, record) = observe(scenario, watch, |_| None).expect("nothing stops it");
    (report, record, skipped.get())
}

/// Runs `scenario` to its end without skipping what repeats itself. The report is the same, to the byte.
pub fn run_each_packet(scenario: &Scenario) -> Report {
    let watch = Watch { each_packet: true, ..Watch::default() };
    observe(scenario, watch, |_| None).expect("nothing stops it").0
}

/// Runs `scenario` to its end with an event for each arrival at each link, and without skipping anything. The
/// report is the same, to the byte.
pub fn run_each_event(scenario: &Scenario) -> Report {
    let watch = Watch { each_packet: true, each_event: true, ..Watch::default() };
    observe(scenario, watch, |_| None).expect("nothing stops it").0
}

/// Runs `scenario`, and records it if there is a `watch`. `go_on` is called after every 100 ms of
/// simulated time; once it returns false the run is abandoned, and there is no report. It changes no
/// result otherwise.
pub fn run_while(
    scenario: &Scenario,
    watch: Option<&RecordOptions>,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<(Report, Option<Record>)> {
    observe(scenario, Watch { record: watch, go_on: Some(go_on), ..Watch::default() }, |_| None)
}

/// A trace sink that its owner can access after the run.
pub type SharedSink = Rc<RefCell<dyn Sink>>;

/// Runs `scenario` to its end and records it. `listen` may return an additional sink for the network.
pub fn run_recorded(
    scenario: &Scenario,
    watch: &RecordOptions,
    listen: impl FnOnce(&Network) -> Option<SharedSink>,
) -> (Report, Record) {
    let watch = Watch { record: Some(watch), ..Watch::default() };
    let (report, record) = observe(scenario, watch, listen).expect("nothing stops it");
    (report, record.unwrap_or_default())
}

/// How a run is watched.
#[derive(Default)]
struct Watch<'a> {
    /// What is recorded.
    record: Option<&'a RecordOptions>,
    /// Asked whether to go on.
    go_on: Option<&'a mut dyn FnMut() -> bool>,
    /// Nothing is skipped.
    each_packet: bool,
    /// Links are not chained.
    each_event: bool,
    /// Told how many repetitions were skipped.
    skipped: Option<&'a Cell<u64>>,
}

fn observe(
    scenario: &Scenario,
    watch: Watch<'_>,
    listen: impl FnOnce(&Network) -> Option<SharedSink>,
) -> Option<(Report, Option<Record>)> {
    let mut net = build(scenario);
    if !watch.each_packet && !watch.record.is_some_and(|record| record.each_packet) {
        net.sim.fast_forward();
    }
    let mut watchers = Watchers {
        sampler: watch.record.map(|w| Sampler::new(scenario, &net, w)),
        instruments: Instruments::new(scenario, &mut net),
        pauses: Pauses::new(scenario.duration, watch.go_on),
    };
    let sinks: Vec<SharedSink> =
        watchers.sampler.iter().map(|s| s.recorder.clone() as SharedSink).chain(listen(&net)).collect();
    if !sinks.is_empty() {
        net.sim.world.set_sink(Box::new(Tee(sinks)));
    }
    if !watch.each_event {
        net.chain();
    }
    let end = Instant::ZERO + scenario.duration;
    let (from, to) = scenario.measure.unwrap_or((Instant::ZERO, end));
    let mut pending = Pending::new(scenario, &net);
    watchers.advance(&mut net, &mut pending, from, false);
    pending.remove_finished(&net);
    let before = counts(scenario, &mut net);
    watchers.advance(&mut net, &mut pending, to.min(end), true);
    let after = counts(scenario, &mut net);
    let measured_until = if pending.is_over() { net.sim.now() } else { to.min(end) };
    if !pending.is_over() {
        watchers.advance(&mut net, &mut pending, end, true);
    }
    if watchers.pauses.stopped {
        return None;
    }
    let interval = measured_until.since(from);
    let rate = |(after, before): (&u64, &u64)| rate_bps(after - before, interval);
    let measured = [0, 1, 2].map(|i: usize| after[i].iter().zip(&before[i]).map(rate).collect());
    watch.skipped.inspect(|skipped| skipped.set(net.sim.skipped()));
    let record = watchers.sampler.map(|s| s.finish(&mut net));
    let instruments = watchers.instruments.finish(&mut net);
    Some((report_of(scenario, net, &measured, instruments), record))
}

/// Bytes of each flow delivered to the application, and arrived at its host; and bytes that each link
/// direction carried, framing included, if the scenario asks for them.
fn counts(scenario: &Scenario, net: &mut Network) -> [Vec<u64>; 3] {
    let of = |bytes: fn(&Network, usize) -> u64| (0..net.flows.len()).map(|i| bytes(net, i)).collect();
    let [delivered, arrived] = [delivered_by, arrived_by].map(of);
    [delivered, arrived, if scenario.measure_links { carried(scenario, net) } else { Vec::new() }]
}

fn carried(scenario: &Scenario, net: &mut Network) -> Vec<u64> {
    let framing = scenario.links.iter().flat_map(|l| [l.forward.framing, l.backward.framing]);
    let carried = |((_, id), framing): (&(Arc<str>, NodeId), Size)| {
        let (link, mut cx) = net.sim.link(*id)?;
        let served = link.totals(&mut cx).served;
        Some(served.bytes.0 + served.packets * framing.0)
    };
    net.links.iter().zip(framing).filter_map(carried).collect()
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

/// The times at which a run is asked whether to go on.
struct Pauses<'a> {
    go_on: Option<&'a mut dyn FnMut() -> bool>,
    every: Duration,
    next: Instant,
    /// True once the answer was no.
    stopped: bool,
}

impl<'a> Pauses<'a> {
    fn new(length: Duration, go_on: Option<&'a mut dyn FnMut() -> bool>) -> Self {
        let every = PAUSE.max(Duration(length.0 / MOST_PAUSES));
        let next = if go_on.is_some() { Instant::ZERO + every } else { Instant::NEVER };
        Self { go_on, every, next, stopped: false }
    }

    fn ask(&mut self) {
        self.next += self.every;
        self.stopped = self.go_on.as_mut().is_some_and(|go_on| !go_on());
    }
}

/// Sampler and instruments, which take samples at times of their own, and pauses.
struct Watchers<'a> {
    sampler: Option<Sampler>,
    instruments: Instruments,
    pauses: Pauses<'a>,
}

impl Watchers<'_> {
    /// Runs the network until `until`, or until no flow is pending if `may_end`, and takes the samples. Does
    /// nothing more once the run is stopped.
    fn advance(&mut self, net: &mut Network, pending: &mut Pending, until: Instant, may_end: bool) {
        while !self.pauses.stopped {
            let sample = self.sampler.as_ref().map_or(Instant::NEVER, Sampler::next);
            let stop = until.min(sample).min(self.instruments.next()).min(self.pauses.next);
            if pending.advance(net, stop, may_end) {
                return;
            }
            if self.pauses.next <= stop {
                self.pauses.ask();
            }
            if self.instruments.next() <= stop {
                self.instruments.sample(net);
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
        let finite = |i: &usize| is_finite(&scenario.flows[*i].app);
        let flows: Vec<usize> = (0..net.flows.len()).filter(finite).collect();
        Self { ends_early: scenario.stop == Stop::Finished && !flows.is_empty(), flows }
    }

    fn remove_finished(&mut self, net: &Network) {
        self.flows.retain(|i| finished_at(&net.sim, &net.flows[*i]).is_none());
    }

    fn is_over(&self) -> bool {
        self.ends_early && self.flows.is_empty()
    }

    /// Runs the network until `until`, or until no flow is pending if `may_end`; returns true for the latter.
    fn advance(&mut self, net: &mut Network, until: Instant, may_end: bool) -> bool {
        if !(may_end && self.ends_early) {
            net.sim.run_until(until, |_| false);
            return false;
        }
        // check a single unfinished flow after each event, not all of them
        while net.sim.now() < until
            && let Some(last) = self.flows.last()
        {
            let flow = net.flows[*last];
            net.sim.run_until(until, |sim| finished_at(sim, &flow).is_some());
            self.remove_finished(net);
        }
        self.is_over()
    }
}

/// All rates are in bit/s; those `carried` by the link directions are there if requested. The network is
/// freed step by step: with thousands of flows, it and the report together would be the most memory that a
/// run needs.
fn report_of(
    scenario: &Scenario,
    mut net: Network,
    [goodput, arrived, carried]: &[Vec<f64>; 3],
    instruments: Vec<InstrumentReport>,
) -> Report {
    net.sim.end();
    let mut last = None;
    let flow = |(i, (goodput, arrived)): (usize, (&f64, &f64))| {
        flow::touch_sender(&net, i + AHEAD);
        let report = report::flow_report(scenario, &net, (i, *goodput), &mut last);
        flow::free_ends(&mut net, i);
        FlowReport { arrived_bps: Some(*arrived), ..report }
    };
    let flows = goodput.iter().zip(arrived).enumerate().map(flow).collect();
    net.sim.end_hosts();
    let ran = net.sim.now().since(Instant::ZERO);
    let mut links = report::link_reports(&mut net);
    for (link, carried) in links.iter_mut().zip(carried) {
        link.carried_bps = Some(*carried);
    }
    let mut report = report::assemble(scenario, ran, flows, links, instruments);
    report.gateways = report::gateway_reports(&mut net);
    report.flow_routers = report::flow_router_reports(&net);
    report.nodes = report::node_reports(&net);
    reference::compare(&mut report, scenario);
    report
}
