//! What a report says about one flow.

use crate::app_report;
use crate::build::{Carries, Network};
use crate::flow;
use crate::probe_report::{self, ProbesReport};
use crate::report::{FallbackReport, FlowContext, FlowReport, LimitedBy, Quantiles};
use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Duration, Instant};
use bentpipe_scenario::{FlowSpec, Reader, Scenario};
use bentpipe_tcp::cc::Fallback;
use bentpipe_tcp::{Connection, ReceiveBuffer};

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
        opened_s: None,
        goodput_bps,
        steady_bps: None,
        bytes_acked: 0,
        segments_sent: 0,
        retransmits: 0,
        copies: None,
        timeouts: 0,
        rtt_ms: Quantiles::default(),
        limited_by: LimitedBy { handshake: opening, ..LimitedBy::default() },
        fallback: None,
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
        shown = c.path().peer_window.0;
        r.sender(c, now);
    });
    if !scenario.gateways.is_empty() {
        r.context.show(spec, shown);
    }
    r
}

impl FallbackReport {
    fn of(fallback: Fallback) -> Self {
        let Fallback { to, why, at, segments } = fallback;
        Self { to, why, at_s: at.as_secs_f64(), after_segments: segments }
    }
}

impl FlowReport {
    /// A connection that runs outside of scenarios, from its sender's end at `now`. It began at `start`; goodput is what was acknowledged until all of it was.
    pub fn of_sender(name: String, connection: &Connection, start: Instant, now: Instant) -> Self {
        let finished = connection.stats().finished_at;
        let mut r = Self::of_bytes(
            name,
            connection.config().scheme.name,
            connection.stats().bytes_acked.0,
            start,
            finished.unwrap_or(now),
        );
        r.finished_s = finished.map(Instant::as_secs_f64);
        r.context.receive_window = rounded(connection.path().peer_window.0);
        r.context.send_buffer = connection.config().send_buffer.map_or_else(String::new, |s| s.to_string());
        r.probes = ProbesReport::of(connection);
        r.sender(connection, now);
        r
    }

    /// As much as a receiver knows of a connection: `bytes` from `start` to `end`. `tcp` is the sender's scheme, or only "TCP".
    pub fn of_bytes(name: String, tcp: &'static str, bytes: u64, start: Instant, end: Instant) -> Self {
        let seconds = end.since(start).as_secs_f64();
        Self {
            name,
            tcp: Some(tcp),
            start_s: start.as_secs_f64(),
            established_s: None,
            opened_s: None,
            steady_bps: None,
            fallback: None,
            probes: None,
            finished_s: None,
            goodput_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            bytes_acked: bytes,
            segments_sent: 0,
            retransmits: 0,
            copies: None,
            timeouts: 0,
            rtt_ms: Quantiles::default(),
            limited_by: LimitedBy::default(),
            requests: None,
            telnet: None,
            udp: None,
            context: FlowContext::default(),
        }
    }

    /// What the sender's end knows.
    fn sender(&mut self, connection: &Connection, now: Instant) {
        let s = connection.stats();
        self.established_s = s.established_at.map(Instant::as_secs_f64);
        self.opened_s = s.opened_at.map(Instant::as_secs_f64);
        self.steady_bps = s.steady.bps();
        self.fallback = connection.fallback().map(FallbackReport::of);
        self.bytes_acked = s.bytes_acked.0;
        self.segments_sent = s.segments_sent;
        self.retransmits = s.retransmits;
        self.copies = copies(connection);
        self.timeouts = s.timeouts;
        self.rtt_ms = Quantiles::of(&s.rtt);
        self.limited_by = shares(&connection.limited_by(now));
    }
}

/// Copies that are no probes.
fn copies(connection: &Connection) -> Option<u64> {
    connection
        .probes()
        .filter(|_| !connection.config().scheme.probes())
        .map(bentpipe_tcp::probes::Probes::sent)
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
