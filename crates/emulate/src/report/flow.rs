//! One direction of a connection of a program: what was seen of it, and what a report says about it.

use crate::flows::Samples;
use bentpipe_base::{Duration, Instant};
use bentpipe_live::control::FlowState;
use bentpipe_os::tcp::TcpInfo;
use bentpipe_report::{FlowContext, FlowKind, FlowReport, TcpReport, rate_bps};
use bentpipe_sim::record::{Column, FLOW_COLUMNS, Series};
use std::net::SocketAddr;

/// Of two directions the one that carried less than a tenth of the other is only its answer, and not told.
const MINOR: u64 = 10;

/// Where a flow comes from and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// `near:40312 > far:5201`.
    pub(super) name: String,
    /// Nodes of the scenario; `None` beyond them.
    pub(super) from: Option<usize>,
    pub(super) to: Option<usize>,
    /// Of the end that tells, and of its peer.
    pub(super) addresses: (SocketAddr, SocketAddr),
}

/// A flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) ends: Ends,
    pub(super) start: Instant,
    /// Payload that has arrived.
    pub(super) delivered: u64,
    /// When more had arrived for the last time.
    pub(super) grew: Option<Instant>,
    /// Told by the receiver: the sender's figures are unknown.
    incoming: bool,
    established: Option<Instant>,
    samples: Samples,
    congestion: String,
    largest_window: u64,
    over: bool,
    /// What had arrived at the last row, and at the last look.
    before: (u64, u64),
    lately_bps: f64,
    series: Series,
}

/// True unless the other direction carried far more.
pub(super) fn keeps(flow: &Flow, all: &[(Ends, u64)]) -> bool {
    let (local, peer) = flow.ends.addresses;
    let answers =
        |e: &Ends| e.addresses == (peer, local) || (e.addresses == (local, peer) && e.name != flow.ends.name);
    !all.iter().any(|(ends, delivered)| answers(ends) && *delivered > MINOR * flow.delivered)
}

impl Flow {
    /// A flow that was not there at `start` and has begun since; `rows` have been written so far.
    pub(super) fn new(ends: Ends, incoming: bool, start: Instant, rows: usize) -> Self {
        let mut series = Series::new(&*ends.name, &FLOW_COLUMNS);
        pad(&mut series, rows);
        Self {
            ends,
            start,
            delivered: 0,
            grew: None,
            incoming,
            established: None,
            samples: Samples::new(start, false),
            congestion: "TCP".to_owned(),
            largest_window: 0,
            over: false,
            before: (0, 0),
            lately_bps: 0.0,
            series,
        }
    }

    /// It was open by `at`.
    pub(super) fn established(&mut self, at: Instant) {
        self.samples.opening(at);
        self.established = Some(at);
    }

    /// What its end says.
    pub(super) fn look(&mut self, now: Instant, info: &TcpInfo, congestion: &str) {
        self.established.get_or_insert(now);
        if !congestion.is_empty() && congestion != self.congestion {
            congestion.clone_into(&mut self.congestion);
        }
        self.samples.look(now, info);
        self.largest_window = self.largest_window.max(info.peer_window.0);
        let count = if self.incoming { info.bytes_received } else { info.bytes_acked };
        self.arrived(now, count);
    }

    /// So many bytes have arrived at the other end, a FIN counted with them.
    pub(super) fn arrived(&mut self, now: Instant, bytes: u64) {
        let bytes = if self.incoming { bytes } else { bytes.min(self.sent()) };
        if bytes > self.delivered {
            self.delivered = bytes;
            self.grew = Some(now);
        }
    }

    /// Payload sent once, where the kernel counts it.
    fn sent(&self) -> u64 {
        let last = &self.samples.last;
        let (sent, again) = last.bytes_sent;
        if sent == 0 && last.data_out > 0 { u64::MAX } else { sent.saturating_sub(again) }
    }

    /// True when `info` is of a later connection between the same ports.
    pub(super) fn is_older_than(&self, info: &TcpInfo) -> bool {
        let last = &self.samples.last;
        info.data_out < last.data_out || info.bytes_received < last.bytes_received
    }

    /// It has ended.
    pub(super) fn over(mut self) -> Self {
        self.over = true;
        self
    }

    /// A look is over that came `length` after the one before.
    pub(super) fn tick(&mut self, length: Duration) {
        self.lately_bps = rate_bps(self.delivered - self.before.1, length);
        self.before.1 = self.delivered;
    }

    /// Ends an interval.
    pub(super) fn row(&mut self, length: Duration) {
        let mut row = [f64::NAN; FLOW_COLUMNS.len()];
        if !self.incoming {
            row = self.samples.row();
        }
        row[0] = rate_bps(self.delivered - self.before.0, length);
        self.before.0 = self.delivered;
        self.series.push(&row);
    }

    pub(super) fn halve(&mut self) {
        self.series.columns.iter_mut().for_each(Column::halve);
    }

    pub(super) fn into_series(mut self, rows: usize) -> Series {
        let missing = rows.saturating_sub(self.series.columns.first().map_or(0, |c| c.values.len()));
        pad(&mut self.series, missing);
        self.series.name = self.ends.name;
        self.series
    }

    pub(super) fn state(&self) -> FlowState {
        let info = &self.samples.last;
        FlowState {
            name: self.ends.name.clone(),
            rtt_ms: (!info.rtt.is_zero()).then(|| info.rtt.as_millis_f64()),
            cwnd: if self.incoming { 0 } else { u64::from(info.cwnd) },
            goodput_bps: self.lately_bps,
            retransmits: u64::from(info.retransmits),
        }
    }

    /// What a report says; goodput counts over `interval`.
    pub(super) fn report(&self, interval: Duration, path_bps: u64) -> FlowReport {
        let done = self.over && (self.incoming || self.delivered >= self.sent());
        let known = if self.incoming {
            TcpReport { scheme: self.congestion.clone(), ..TcpReport::default() }
        } else {
            self.samples.report(&self.congestion)
        };
        let tcp = TcpReport {
            established_s: self.established.map(Instant::as_secs_f64),
            finished_s: self.grew.filter(|_| done).map(Instant::as_secs_f64),
            bytes_acked: self.delivered,
            ..known
        };
        let context = FlowContext {
            path_bps,
            receive_window: format!("{:.0} kB at most", self.largest_window as f64 / 1e3),
            ..FlowContext::default()
        };
        let goodput_bps = rate_bps(self.delivered, interval);
        let report = FlowReport::new(&*self.ends.name, self.start, goodput_bps, FlowKind::Tcp(tcp));
        FlowReport { context, ..report }
    }
}

/// Adds rows without values.
fn pad(series: &mut Series, rows: usize) {
    for column in &mut series.columns {
        column.values.resize(column.values.len() + rows, f64::NAN);
    }
}
