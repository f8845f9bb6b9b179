//! Runs a scenario: pure, same value in, same bytes out.

use crate::build::{FlowEnds, Network, build};
use crate::report::{FlowContext, FlowReport, LimitedBy, LinkReport, QueueReport, Report, RttReport, Total};
use crate::world::Simulation;
use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::{App, FlowSpec, ParamValue, Reader, Scenario, Stop};
use bentpipe_tcp::{Connection, ReceiveBuffer};
use serde_json::{Map, Value};

/// Runs `scenario` to its end.
pub fn run(scenario: &Scenario) -> Report {
    let mut net = build(scenario);
    let end = Instant::ZERO + scenario.duration;
    let (from, to) = scenario.measure.unwrap_or((Instant::ZERO, end));
    let mut pending = Pending::new(scenario, &net);
    net.sim.run_until(from, |_| false);
    let before = received(&mut net);
    advance(&mut net, &mut pending, to.min(end));
    let after = received(&mut net);
    let measured_until = if pending.is_over() { net.sim.now() } else { to.min(end) };
    if !pending.is_over() {
        advance(&mut net, &mut pending, end);
    }
    let interval = measured_until.since(from);
    let delivered: Vec<u64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
    report(scenario, &mut net, &delivered, interval)
}

/// Transfers that have not finished; only looked at when the run ends with them.
struct Pending {
    ends_early: bool,
    flows: Vec<usize>,
}

impl Pending {
    fn new(scenario: &Scenario, net: &Network) -> Self {
        let finite = |i: &usize| matches!(scenario.flows[*i].app, App::Transfer(_));
        let flows: Vec<usize> = (0..net.flows.len()).filter(finite).collect();
        Self { ends_early: scenario.stop == Stop::Finished && !flows.is_empty(), flows }
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
    // one unfinished flow is asked after each event, not all of them
    while net.sim.now() < until && !pending.flows.is_empty() {
        let flows = net.flows.clone();
        let last = pending.flows[pending.flows.len() - 1];
        net.sim.run_until(until, |sim| finished(sim, &flows[last]));
        pending.flows.retain(|i| !finished(&net.sim, &net.flows[*i]));
    }
}

/// True when the sender has the acknowledgment of its last data byte.
fn finished(sim: &Simulation, flow: &FlowEnds) -> bool {
    let host = sim.peek_host(flow.from.0);
    let conn = host.and_then(|h| h.connection(flow.from.2, (flow.to.1, flow.to.2)));
    conn.is_some_and(|c| c.stats().finished_at.is_some())
}

fn received(net: &mut Network) -> Vec<u64> {
    let flows = net.flows.clone();
    flows.iter().map(|f| receiver(net, f, |c| c.received() - c.readable()).unwrap_or(0)).collect()
}

fn sender<T>(net: &mut Network, f: &FlowEnds, look: impl FnOnce(&Connection) -> T) -> Option<T> {
    let (host, _) = net.sim.host(f.from.0)?;
    host.connection(f.from.2, (f.to.1, f.to.2)).map(look)
}

fn receiver<T>(net: &mut Network, f: &FlowEnds, look: impl FnOnce(&Connection) -> T) -> Option<T> {
    let (host, _) = net.sim.host(f.to.0)?;
    host.connection(f.to.2, (f.from.1, f.from.2)).map(look)
}

fn report(scenario: &Scenario, net: &mut Network, delivered: &[u64], interval: Duration) -> Report {
    let goodputs: Vec<f64> = delivered.iter().map(|d| per_second(*d, interval)).collect();
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|g| g * g).sum();
    let jain = (squares > 0.0).then(|| sum * sum / (goodputs.len() as f64 * squares));
    let flows = (0..scenario.flows.len()).map(|i| flow_report(scenario, net, i, goodputs[i])).collect();
    let links = link_reports(net);
    Report {
        schema: 1,
        scenario: scenario.title.clone(),
        version: env!("CARGO_PKG_VERSION"),
        seed: scenario.seed,
        simulated_s: net.sim.now().as_secs_f64(),
        parameters: scenario.parameters.iter().map(|(k, v)| (k.clone(), json(v))).collect(),
        total: Total { goodput_bps: sum, jain },
        flows,
        links,
    }
}

fn per_second(bytes: u64, interval: Duration) -> f64 {
    if interval.is_zero() { 0.0 } else { bytes as f64 * 8.0 / interval.as_secs_f64() }
}

fn json(value: &ParamValue) -> Value {
    match value {
        ParamValue::Text(t) => Value::from(t.as_str()),
        ParamValue::Number(n) => Value::from(*n),
        ParamValue::Integer(n) => Value::from(*n),
        ParamValue::Switch(b) => Value::from(*b),
    }
}

fn flow_report(scenario: &Scenario, net: &mut Network, i: usize, goodput_bps: f64) -> FlowReport {
    let (spec, ends) = (&scenario.flows[i], net.flows[i]);
    let now = net.sim.now();
    let mut r = FlowReport {
        name: spec.name.clone(),
        tcp: spec.sender.scheme.name,
        start_s: ends.start.as_secs_f64(),
        established_s: None,
        finished_s: None,
        goodput_bps,
        bytes_acked: 0,
        segments_sent: 0,
        retransmits: 0,
        timeouts: 0,
        rtt_ms: RttReport { min: None, p50: None, p99: None },
        limited_by: LimitedBy { handshake: 1.0, ..LimitedBy::default() },
        context: context(spec, ends.path_bps),
    };
    let _ = sender(net, &ends, |c| {
        let s = c.stats();
        r.established_s = s.established_at.map(Instant::as_secs_f64);
        r.finished_s = s.finished_at.map(Instant::as_secs_f64);
        r.bytes_acked = s.bytes_acked.0;
        r.segments_sent = s.segments_sent;
        r.retransmits = s.retransmits;
        r.timeouts = s.timeouts;
        let ms = |d: Option<Duration>| d.map(Duration::as_millis_f64);
        r.rtt_ms =
            RttReport { min: ms(s.rtt.min()), p50: ms(s.rtt.quantile(0.5)), p99: ms(s.rtt.quantile(0.99)) };
        r.limited_by = shares(&c.limited_by(now));
    });
    r
}

fn context(spec: &FlowSpec, path_bps: u64) -> FlowContext {
    FlowContext {
        path_bps,
        receive_window: match spec.receiver.receive_buffer {
            ReceiveBuffer::Fixed(size) => size.to_string(),
            ReceiveBuffer::Auto { max, .. } => format!("up to {max}"),
        },
        slow_reader: spec.reader != Reader::Eager,
        send_buffer: spec.sender.send_buffer.map_or_else(String::new, |s| s.to_string()),
    }
}

/// Times -> shares; a flow that has not begun counts as handshake.
fn shares(spent: &[Duration; 7]) -> LimitedBy {
    let total: f64 = spent.iter().map(|d| d.as_secs_f64()).sum();
    if total <= 0.0 {
        return LimitedBy { handshake: 1.0, ..LimitedBy::default() };
    }
    let share = |i: usize| spent[i].as_secs_f64() / total;
    LimitedBy {
        handshake: share(0),
        application: share(1),
        send_buffer: share(2),
        receiver_window: share(3),
        congestion_window: share(4),
        pacing: share(5),
        recovery: share(6),
    }
}

fn link_reports(net: &mut Network) -> Vec<LinkReport> {
    let run = net.sim.now().since(Instant::ZERO);
    let links = net.links.clone();
    let mut reports = Vec::with_capacity(links.len());
    for (name, id) in links {
        let Some((link, mut cx)) = net.sim.link(id) else { continue };
        let s = link.stats(&mut cx);
        reports.push(LinkReport {
            name,
            utilisation: s.utilisation(run),
            packets: s.served.packets,
            drops: s
                .drops()
                .map(|(cause, n)| (cause.key().to_string(), Value::from(n)))
                .collect::<Map<_, _>>(),
            queue_packets: QueueReport { mean: s.queue_mean(run), peak: s.queue_peak },
        });
    }
    reports
}
