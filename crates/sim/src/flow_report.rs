//! What a report says about one flow.

use crate::app_report;
use crate::build::{Carries, Network};
use crate::flow;
use crate::probe_report;
use crate::report::{FlowContext, FlowReport, LimitedBy, Quantiles};
use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::{FlowSpec, Reader, Scenario};
use bentpipe_tcp::ReceiveBuffer;

/// Reports on flow `i`, whose goodput was `goodput_bps`.
pub(crate) fn flow_report(scenario: &Scenario, net: &mut Network, i: usize, goodput_bps: f64) -> FlowReport {
    let (spec, ends) = (&scenario.flows[i], net.flows[i]);
    let now = net.sim.now();
    let tcp = (ends.carries != Carries::Datagrams).then_some(spec.sender.scheme.name);
    let opening = if tcp.is_some() { 1.0 } else { 0.0 };
    let mut r = FlowReport {
        name: spec.name.clone(),
        tcp,
        start_s: ends.start.as_secs_f64(),
        established_s: None,
        finished_s: flow::finished_at(&net.sim, &ends).map(Instant::as_secs_f64),
        goodput_bps,
        bytes_acked: 0,
        segments_sent: 0,
        retransmits: 0,
        timeouts: 0,
        rtt_ms: Quantiles::default(),
        limited_by: LimitedBy { handshake: opening, ..LimitedBy::default() },
        requests: app_report::requests(&net.sim, &ends),
        telnet: app_report::telnet(&net.sim, &ends),
        udp: app_report::udp(&net.sim, &ends),
        probes: probe_report::probes(scenario, net, i, &ends),
        context: FlowContext::of(spec, ends.path_bps),
    };
    if let ReceiveBuffer::Auto { max, .. } = spec.receiver.receive_buffer
        && let Some(grown) = flow::receiver(net, &ends, |c| c.receiver().window.buffer())
        && grown < max.0
    {
        r.context.receive_window = format!("{}, which could grow up to {max}", rounded(grown));
    }
    let mut shown = 0;
    let _ = flow::sender(net, &ends, |c| {
        let s = c.stats();
        shown = c.path().peer_window.0;
        r.established_s = s.established_at.map(Instant::as_secs_f64);
        r.bytes_acked = s.bytes_acked.0;
        r.segments_sent = s.segments_sent;
        r.retransmits = s.retransmits;
        r.timeouts = s.timeouts;
        r.rtt_ms = Quantiles::of(&s.rtt);
        r.limited_by = shares(&c.limited_by(now));
    });
    if !scenario.gateways.is_empty() {
        r.context.show(spec, shown);
    }
    r
}

impl Quantiles {
    /// Of the times in a histogram.
    pub fn of(times: &Histogram) -> Self {
        let ms = |d: Option<Duration>| d.map(Duration::as_millis_f64);
        Self { min: ms(times.min()), p50: ms(times.quantile(0.5)), p99: ms(times.quantile(0.99)) }
    }
}

impl FlowContext {
    /// The window that the sender was shown, in bytes: with a gateway it is not always the receiver's.
    pub fn show(&mut self, spec: &FlowSpec, shown: u64) {
        let announced = spec.receiver.receive_buffer.max();
        if shown > announced.0 {
            self.receive_window =
                format!("{}, as a gateway shows it in place of {announced}", rounded(shown));
        }
    }

    /// Of a flow on a path that carries `path_bps` bit/s.
    pub fn of(spec: &FlowSpec, path_bps: u64) -> Self {
        Self {
            path_bps,
            receive_window: match spec.receiver.receive_buffer {
                ReceiveBuffer::Fixed(size) => size.to_string(),
                ReceiveBuffer::Auto { max, .. } => format!("up to {max}"),
            },
            slow_reader: spec.reader != Reader::Eager,
            send_buffer: spec.sender.send_buffer.map_or_else(String::new, |s| s.to_string()),
        }
    }
}

/// "194 kB", "1.2 MB".
fn rounded(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{:.0} kB", bytes as f64 / 1e3)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
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
