//! Samples a run: one row of values at the end of each interval.
//!
//! The length of a run is not known in advance, as it may end with its flows. So intervals start short, and
//! pairs of intervals are merged whenever there are too many. Sampling does not change the report of a run.

use crate::build::{FlowEnds, Network};
use crate::exchange::{ExchangeRecorder, Hop};
use crate::flow;
use crate::record::{
    DARK, FLOW_COLUMNS, LIMIT_COLUMNS, LINK_COLUMNS, MAX_INTERVALS, PACKETS, Record, Series,
};
use crate::recorder::{FollowedFlow, Recorder};
use bentpipe_base::{Duration, Instant};
use bentpipe_link::LinkStats;
use bentpipe_scenario::{App, Scenario};
use bentpipe_tcp::{Connection, Limit};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum number of flows, and of link directions, with series.
pub const MOST_SERIES: usize = 256;
/// Number of flows whose signalling is recorded.
const EXCHANGES: usize = 1;

/// What to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// Initial interval.
    pub every: Duration,
    /// Number of TCP flows with time-sequence plots.
    pub sequences: usize,
    /// Mean round-trip times, which need every packet: nothing is skipped then.
    pub round_trips: bool,
    /// Nothing is skipped. The results are the same.
    pub each_packet: bool,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self { every: Duration::from_millis(10), sequences: 1, round_trips: true, each_packet: false }
    }
}

/// Samples a running network. Flows are sampled only if their hosts are in it.
#[derive(Debug)]
pub struct Sampler {
    /// Until it is finished, links have one more column: packets, needed to compute the fraction lost.
    record: Record,
    next: Instant,
    last: Instant,
    flows: Vec<PreviousCounters>,
    links: Vec<LinkStats>,
    /// Must receive the trace, else samples are incomplete.
    pub(crate) recorder: Rc<RefCell<Recorder>>,
}

/// Counters of a flow at the end of the previous interval.
#[derive(Clone, Copy, Debug, Default)]
struct PreviousCounters {
    delivered: u64,
    sender: SenderCounters,
}

/// Counters of a sending end at the end of the previous interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderCounters {
    retransmits: u64,
    timeouts: u64,
    limits: LimitTimes,
}

/// Time under each limit at the end of the previous interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct LimitTimes([Duration; Limit::COUNT]);

impl LimitTimes {
    /// Returns the seconds under each limit since the last call, as [`LIMIT_COLUMNS`]; `spent` is all time so
    /// far.
    pub fn since(&mut self, spent: [Duration; Limit::COUNT]) -> [f64; Limit::COUNT] {
        let before = core::mem::replace(&mut self.0, spent);
        // a limit may be found in retrospect, which takes time from another one
        core::array::from_fn(|i| spent[i].saturating_sub(before[i]).as_secs_f64())
    }
}

/// The series of a flow, with its limits.
pub fn flow_series(name: &str) -> Series {
    Series::new(name, &[&FLOW_COLUMNS[..], &LIMIT_COLUMNS].concat())
}

/// Writes what a receiving end knows into a row of [`FLOW_COLUMNS`]: the window that it announced.
pub fn receiver_columns(c: &Connection, row: &mut [f64; FLOW_COLUMNS.len()]) {
    row[9] = c.window().announced() as f64;
}

/// Writes what a sending end knows into a row of [`FLOW_COLUMNS`]: windows, bytes in flight, and the counts
/// since `before`. Returns [`LIMIT_COLUMNS`].
pub fn sender_columns(
    c: &Connection,
    now: Instant,
    before: &mut SenderCounters,
    row: &mut [f64; FLOW_COLUMNS.len()],
) -> [f64; Limit::COUNT] {
    let (path, stats) = (c.path(), c.stats());
    row[1] = c.cwnd().0 as f64;
    row[2] = c.ssthresh().filter(|s| s.0 < u64::MAX / 2).map_or(f64::NAN, |s| s.0 as f64);
    row[3] = path.in_flight.0 as f64;
    row[4] = path.peer_window.0 as f64;
    row[6] = (stats.retransmits - before.retransmits) as f64;
    row[7] = (stats.timeouts - before.timeouts) as f64;
    (before.retransmits, before.timeouts) = (stats.retransmits, stats.timeouts);
    before.limits.since(c.limited_by(now))
}

impl Sampler {
    /// Creates the sampler before the run.
    pub fn new(scenario: &Scenario, net: &Network, observe: &RecordOptions) -> Self {
        // a zero interval would never end
        let every = observe.every.max(Duration(1));
        let followed = flows_to_record(scenario, net, observe.sequences);
        let exchanges = if observe.sequences > 0 { exchanges_to_record(scenario, net) } else { Vec::new() };
        let flows = scenario.flows.iter().take(net.flows.len().min(MOST_SERIES));
        let flows: Vec<Series> = flows.map(|f| flow_series(&f.name)).collect();
        let links = net.links.iter().take(MOST_SERIES);
        let keys = [&LINK_COLUMNS[..], &[DARK, PACKETS]].concat();
        let links: Vec<Series> = links.map(|(name, _)| Series::new(&**name, &keys)).collect();
        Self {
            next: Instant::ZERO + every,
            last: Instant::ZERO,
            flows: vec![PreviousCounters::default(); flows.len()],
            links: vec![LinkStats::default(); links.len()],
            record: Record { every, flows, links, ..Record::default() },
            recorder: Rc::new(RefCell::new(Recorder::new(&followed, exchanges, observe.round_trips))),
        }
    }

    /// Time of the next sample.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Takes a sample at the current time of the network.
    pub fn sample(&mut self, net: &mut Network) {
        let now = net.sim.now();
        self.row(net, now);
        if self.record.time_s.len() >= MAX_INTERVALS {
            self.record.merge_pairs();
        }
        self.next = now + self.record.every;
    }

    fn row(&mut self, net: &mut Network, now: Instant) {
        let length = now.since(self.last);
        if length.is_zero() {
            return;
        }
        for i in 0..self.flows.len() {
            let (row, limits) = self.flow_row(net, i, length);
            self.record.flows[i].push(row.iter().chain(&limits));
        }
        for i in 0..self.links.len() {
            let row = self.link_row(net, i, length);
            self.record.links[i].push(row.iter());
        }
        self.record.time_s.push(now.as_secs_f64());
        self.last = now;
    }

    /// Adds a last row and returns the record. The last interval may be shorter and is not merged.
    pub fn finish(mut self, net: &mut Network) -> Record {
        let now = net.sim.now();
        self.row(net, now);
        self.record.links.iter_mut().for_each(packets_to_error_share);
        self.record.sequences = self.recorder.borrow_mut().sequences();
        self.record.exchanges = self.recorder.borrow_mut().exchanges();
        self.record
    }

    /// Returns a row of [`FLOW_COLUMNS`] and one of [`LIMIT_COLUMNS`].
    fn flow_row(
        &mut self,
        net: &mut Network,
        i: usize,
        length: Duration,
    ) -> ([f64; FLOW_COLUMNS.len()], [f64; LIMIT_COLUMNS.len()]) {
        let ends = net.flows[i];
        let delivered = flow::delivered_by(net, i);
        let delay = flow::take_delay_ms(net, &ends);
        let rtt = self.recorder.borrow_mut().take_rtt(ends.from.0, ends.from.2);
        let before = &mut self.flows[i];
        let mut row = [f64::NAN; FLOW_COLUMNS.len()];
        row[0] = (delivered - before.delivered) as f64 * 8.0 / length.as_secs_f64();
        before.delivered = delivered;
        row[5] = rtt.unwrap_or(f64::NAN);
        row[8] = delay.unwrap_or(f64::NAN);
        let limits = flow::sender(&net.sim, &ends).map_or([f64::NAN; Limit::COUNT], |c| {
            sender_columns(c, net.sim.now(), &mut before.sender, &mut row)
        });
        if let Some(c) = flow::receiver(&net.sim, &ends) {
            receiver_columns(c, &mut row);
        }
        (row, limits)
    }

    fn link_row(&mut self, net: &mut Network, i: usize, length: Duration) -> [f64; LINK_COLUMNS.len() + 2] {
        let id = net.links[i].1;
        let mut row = [f64::NAN; LINK_COLUMNS.len() + 2];
        let Some((link, mut cx)) = net.sim.link(id) else { return row };
        let look = link.snapshot(&mut cx);
        let peak = link.take_peak();
        let stats = link.stats(&mut cx);
        let before = &self.links[i];
        let bytes = stats.served.bytes.0 - before.served.bytes.0;
        row[0] = look.rate.map_or(0.0, |r| r.bps() as f64);
        row[1] = bytes as f64 * 8.0 / length.as_secs_f64();
        row[2] = stats.queue_mean_since(before, length);
        row[3] = f64::from(peak);
        row[4] = look.one_way.as_millis_f64();
        row[5] = look.ber;
        row[7] = look.fade_db.unwrap_or(f64::NAN);
        row[8] = (stats.dropped_in_queue() - before.dropped_in_queue()) as f64;
        row[9] = (stats.lost() - before.lost()) as f64;
        row[10] = f64::from(u8::from(look.dark));
        row[11] = (stats.served.packets - before.served.packets) as f64;
        self.links[i] = stats.clone();
        row
    }
}

/// Replaces the packets by the fraction lost, after intervals have been merged.
fn packets_to_error_share(link: &mut Series) {
    let packets = link.columns.pop().map(|packets| packets.values).unwrap_or_default();
    let lost = link.column("lost").map(<[f64]>::to_vec).unwrap_or_default();
    if let Some(share) = link.columns.iter_mut().find(|c| c.key == "packet_error_share") {
        // 0 / 0 without packets: NaN
        let known = |(lost, packets): (&f64, &f64)| if *packets > 0.0 { lost / packets } else { f64::NAN };
        share.values = lost.iter().zip(&packets).map(known).collect();
    }
}

/// The first TCP flows, with the links at their senders' hosts.
fn flows_to_record(scenario: &Scenario, net: &Network, most: usize) -> Vec<FollowedFlow> {
    let tcp = |i: &usize| !matches!(scenario.flows[*i].app, App::Udp { .. });
    let links_of = |host: usize| {
        let at = scenario.links.iter().position(|l| l.a == host || l.b == host)?;
        let (forward, backward) = (net.links[2 * at].1, net.links[2 * at + 1].1);
        Some(if scenario.links[at].a == host { (forward, backward) } else { (backward, forward) })
    };
    // an address is the host's index among the nodes; data may flow against the direction of the SYN
    let follow = |i: usize| {
        let FlowEnds { from: (_, from, from_port), to: (_, to, to_port), .. } = net.flows[i];
        let (out, back) = links_of(from.0 as usize)?;
        Some(FollowedFlow { flow: i, from: (from.0, from_port), to: (to.0, to_port), out, back })
    };
    (0..net.flows.len()).filter(tcp).take(most).filter_map(follow).collect()
}

/// The first flows whose sender asks for a rate, with all links, since routers may send them any way.
fn exchanges_to_record(scenario: &Scenario, net: &Network) -> Vec<ExchangeRecorder> {
    let asks = |i: &usize| {
        let signalling = scenario.flows[*i].sender.signalling.as_ref();
        signalling.is_some_and(|signalling| signalling.ask.ask.is_some())
    };
    let name = |node: usize| scenario.nodes[node].name.to_string();
    let hops = || {
        let directions = scenario.links.iter().flat_map(|l| [(l.a, l.b), (l.b, l.a)]);
        let hop = |((from, to), (_, link)): ((usize, usize), &(_, _))| Hop {
            link: *link,
            from: name(from),
            to: name(to),
        };
        directions.zip(&net.links).map(hop).collect()
    };
    let follow = |i: usize| {
        let FlowEnds { from: (_, from, from_port), to: (_, to, to_port), .. } = net.flows[i];
        ExchangeRecorder::new(i, [(from.0, from_port), (to.0, to_port)], hops())
    };
    (0..net.flows.len()).filter(asks).take(EXCHANGES).map(follow).collect()
}
