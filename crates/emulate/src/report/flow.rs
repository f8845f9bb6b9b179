//! One direction of a program's connection: its samples and its report.

use crate::flows::Samples;
use bentpipe_base::{Duration, Instant};
use bentpipe_live::control::FlowState;
use bentpipe_os::tcp::TcpInfo;
use bentpipe_report::{FlowContext, FlowKind, FlowReport, TcpReport, rate_bps};
use bentpipe_sim::observe::flow_series;
use bentpipe_sim::record::{Column, FLOW_COLUMNS, LIMIT_COLUMNS, Series};
use std::net::SocketAddr;

/// A direction with less than a tenth of the other's data is not reported.
const MINOR: u64 = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// `near:40312 > far:5201`.
    pub(super) name: String,
    /// Nodes of the scenario; `None` outside it.
    pub(super) from: Option<usize>,
    pub(super) to: Option<usize>,
    /// Address of the end that reports it, and of its peer.
    pub(super) addresses: (SocketAddr, SocketAddr),
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) ends: Ends,
    pub(super) start: Instant,
    /// Payload bytes delivered.
    pub(super) delivered: u64,
    /// When `delivered` last grew.
    pub(super) grew: Option<Instant>,
    /// Reported by the receiver: the sender's figures are unknown.
    incoming: bool,
    established: Option<Instant>,
    samples: Samples,
    congestion: String,
    largest_window: u64,
    /// It has ended.
    pub(super) over: bool,
    /// Bytes delivered at the last row, and at the last poll.
    before: (u64, u64),
    lately_bps: f64,
    series: Series,
}

/// True unless the other direction carried far more data.
pub(super) fn keeps(flow: &Flow, all: &[(Ends, u64)]) -> bool {
    let (local, peer) = flow.ends.addresses;
    let answers =
        |e: &Ends| e.addresses == (peer, local) || (e.addresses == (local, peer) && e.name != flow.ends.name);
    !all.iter().any(|(ends, delivered)| answers(ends) && *delivered > MINOR * flow.delivered)
}

impl Flow {
    /// A flow that began after `start`, when `rows` rows were already written.
    pub(super) fn new(ends: Ends, incoming: bool, start: Instant, rows: usize) -> Self {
        let mut series = flow_series(&ends.name);
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

    /// Notes that it was established at `at`.
    pub(super) fn established(&mut self, at: Instant) {
        self.samples.opening(at);
        self.established = Some(at);
    }

    /// Adds a sample from the reporting end.
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

    /// Notes that `bytes` have arrived at the receiver, including a FIN.
    pub(super) fn arrived(&mut self, now: Instant, bytes: u64) {
        let bytes = if self.incoming { bytes } else { bytes.min(self.sent()) };
        if bytes > self.delivered {
            self.delivered = bytes;
            self.grew = Some(now);
        }
    }

    /// Payload sent without retransmissions, if the kernel counts it.
    fn sent(&self) -> u64 {
        let last = &self.samples.last;
        let (sent, again) = last.bytes_sent;
        if sent == 0 && last.data_out > 0 { u64::MAX } else { sent.saturating_sub(again) }
    }

    /// True if `info` belongs to a later connection with the same ports.
    pub(super) fn is_older_than(&self, info: &TcpInfo) -> bool {
        let last = &self.samples.last;
        info.data_out < last.data_out || info.bytes_received < last.bytes_received
    }

    /// Updates the recent goodput after a poll, `length` after the previous one.
    pub(super) fn tick(&mut self, length: Duration) {
        self.lately_bps = rate_bps(self.delivered - self.before.1, length);
        self.before.1 = self.delivered;
    }

    pub(super) fn row(&mut self, length: Duration) {
        let (mut row, mut limits) = ([f64::NAN; FLOW_COLUMNS.len()], [f64::NAN; LIMIT_COLUMNS.len()]);
        if !self.incoming {
            (row, limits) = self.samples.row();
        }
        row[0] = rate_bps(self.delivered - self.before.0, length);
        self.before.0 = self.delivered;
        self.series.push(row.iter().chain(&limits));
    }

    pub(super) fn halve(&mut self) {
        self.series.columns.iter_mut().for_each(Column::merge_pairs);
    }

    pub(super) fn into_series(mut self, rows: usize) -> Series {
        let missing = rows.saturating_sub(self.series.columns.first().map_or(0, |c| c.values.len()));
        pad(&mut self.series, missing);
        self.series.name = self.ends.name;
        self.series
    }

    pub(super) fn state(&self) -> FlowState {
        let state = self.samples.state(&self.ends.name, self.lately_bps);
        FlowState { cwnd: if self.incoming { 0 } else { state.cwnd }, ..state }
    }

    /// Returns the report; goodput is measured over `interval`.
    pub(super) fn report(&self, interval: Duration, path_bps: u64) -> FlowReport {
        let done = self.over && (self.incoming || self.delivered >= self.sent());
        let known = if self.incoming {
            TcpReport { scheme: self.congestion.clone().into(), ..TcpReport::default() }
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
            receive_window: format!("{:.0} kB at most", self.largest_window as f64 / 1e3).into(),
            ..FlowContext::default()
        };
        let goodput_bps = rate_bps(self.delivered, interval);
        let report = FlowReport::new(&*self.ends.name, self.start, goodput_bps, FlowKind::from(tcp));
        FlowReport { context, ..report }
    }
}

fn pad(series: &mut Series, rows: usize) {
    for column in &mut series.columns {
        column.values.resize(column.values.len() + rows, f64::NAN);
    }
}
