//! Samples of TCP_INFO of a sending socket, for the report and the time series.
//!
//! The kernel gives only the smoothed RTT, not its samples; so the quantiles are of the smoothed RTT, sampled
//! whenever data was acknowledged since the last sample. What limited a flow comes from the kernel's own
//! accounting (`tcp_chrono` in net/ipv4/tcp_output.c) where it exists: time limited by the peer's window and
//! by the send buffer. The rest is classified at each sample: in recovery (the congestion control's state),
//! nothing to send, or limited by cwnd.

use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Duration, Instant};
use bentpipe_live::control::FlowState;
use bentpipe_os::tcp::TcpInfo;
use bentpipe_report::{LimitedBy, Quantiles, TcpReport};
use bentpipe_sim::observe::LimitTimes;
use bentpipe_sim::record::{FLOW_COLUMNS, LIMIT_COLUMNS};
use bentpipe_tcp::Limit;

#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    pub(crate) last: TcpInfo,
    at: Instant,
    /// The scenario sets the send buffer, so it counts as a limit.
    bounded: bool,
    /// Time under each [`Limit`].
    spent: [Duration; Limit::COUNT],
    /// The kernel's accounting so far: time limited by the peer's window, by the send buffer, and busy.
    told: [Duration; 3],
    rtt: Histogram,
    shortest: Option<Duration>,
    /// Since the last row: sum of RTTs in milliseconds, and their number.
    recent: (f64, u32),
    /// Counters at the last row: retransmissions and timeouts.
    before: (u32, u16),
    /// Time under each limit at the last row.
    limits: LimitTimes,
}

impl Samples {
    /// For a flow that starts at `start`.
    pub(crate) fn new(start: Instant, bounded: bool) -> Self {
        Self { at: start, bounded, ..Self::default() }
    }

    /// Counts time until `now` as handshake.
    pub(crate) fn opening(&mut self, now: Instant) {
        self.spent[Limit::Handshake as usize] += now.since(self.at);
        self.at = now.max(self.at);
    }

    /// Adds a sample of TCP_INFO at `now`.
    pub(crate) fn look(&mut self, now: Instant, info: &TcpInfo) {
        let length = now.since(self.at);
        // the kernel counts in ticks of several milliseconds: the excess belongs to the next interval
        let held = |now: Duration, told: &mut Duration, most: Duration| {
            let part = now.saturating_sub(*told).min(most);
            *told += part;
            part
        };
        let [told_window, told_buffer, told_busy] = &mut self.told;
        let window = held(info.window_limited, told_window, length);
        let buffer = held(info.buffer_limited, told_buffer, length.saturating_sub(window));
        let busy = held(info.busy, told_busy, length);
        self.spent[Limit::ReceiverWindow as usize] += window;
        // a buffer sized by the kernel follows cwnd and is no limit by itself
        let full = if self.bounded { Limit::SendBuffer } else { Limit::CongestionWindow };
        self.spent[full as usize] += buffer;
        let rest = length.saturating_sub(window).saturating_sub(buffer);
        let idle = length.saturating_sub(busy).min(rest);
        // less than a segment is held by Nagle's algorithm, not by the network
        let has_room = info.not_sent < info.mss && info.unacked < info.cwnd;
        let cause = match (info.is_recovering, has_room) {
            (true, _) => Limit::Recovery,
            (false, true) => Limit::Application,
            (false, false) => Limit::CongestionWindow,
        };
        self.spent[Limit::Application as usize] += idle;
        self.spent[cause as usize] += rest.saturating_sub(idle);
        if info.bytes_acked > self.last.bytes_acked && !info.rtt.is_zero() {
            self.rtt.record(info.rtt);
            self.recent = (self.recent.0 + info.rtt.as_millis_f64(), self.recent.1 + 1);
        }
        if !info.min_rtt.is_zero() {
            self.shortest = Some(self.shortest.map_or(info.min_rtt, |s| s.min(info.min_rtt)));
        }
        self.last = *info;
        self.at = now.max(self.at);
    }

    /// Returns the state of a connection now.
    pub(crate) fn state(&self, name: &str, goodput_bps: f64) -> FlowState {
        let info = &self.last;
        FlowState {
            name: name.to_owned(),
            rtt_ms: (!info.rtt.is_zero()).then(|| info.rtt.as_millis_f64()),
            cwnd: u64::from(info.cwnd),
            goodput_bps,
            retransmits: u64::from(info.retransmits),
        }
    }

    /// Returns a row of the columns that TCP_INFO gives, and one of the limits; goodput and delay stay empty.
    pub(crate) fn row(&mut self) -> ([f64; FLOW_COLUMNS.len()], [f64; LIMIT_COLUMNS.len()]) {
        let info = &self.last;
        let mut row = [f64::NAN; FLOW_COLUMNS.len()];
        let limits = self.limits.since(self.spent);
        if info.mss.0 == 0 {
            return (row, limits);
        }
        let mss = info.mss.0 as f64;
        row[1] = f64::from(info.cwnd) * mss;
        row[2] = info.ssthresh.map_or(f64::NAN, |s| f64::from(s) * mss);
        row[3] = info.in_flight().0 as f64;
        row[4] = info.peer_window.0 as f64;
        let (sum, n) = std::mem::take(&mut self.recent);
        row[5] = if n > 0 { sum / f64::from(n) } else { f64::NAN };
        let timeouts = info.timeouts.unwrap_or(0);
        row[6] = f64::from(info.retransmits.saturating_sub(self.before.0));
        row[7] = f64::from(timeouts.saturating_sub(self.before.1));
        self.before = (info.retransmits, timeouts);
        (row, limits)
    }

    /// Returns the report of a connection; `scheme` is the sender's scheme.
    pub(crate) fn report(&self, scheme: &str) -> TcpReport {
        let info = &self.last;
        let mut rtt_ms = Quantiles::of(&self.rtt);
        rtt_ms.min = self.shortest.map(Duration::as_millis_f64).or(rtt_ms.min);
        TcpReport {
            scheme: scheme.to_owned().into(),
            segments_sent: u64::from(info.data_out),
            retransmits: u64::from(info.retransmits),
            timeouts: u64::from(info.timeouts.unwrap_or(0)),
            rtt_ms,
            limited_by: LimitedBy::of(&self.spent),
            ..TcpReport::default()
        }
    }
}
