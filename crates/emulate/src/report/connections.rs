//! TCP connections of programs, combined from the data of both ends.
//!
//! A flow is one direction of a connection, seen at its sender. The delivered bytes, from which goodput is
//! computed, are read at the receiver if it is visible, otherwise taken from the acknowledgments. If the
//! sender is not visible, behind an uplink, the receiver's data are used.

use super::flow::{Ends, Flow, keeps};
use crate::flows::FlowResults;
use crate::registry::HostEntry;
use bentpipe_base::{Duration, Instant};
use bentpipe_live::control::FlowState;
use bentpipe_os::diag::Connection;
use bentpipe_os::tcp::State;
use bentpipe_sim::record::{MAX_INTERVALS, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

const MOST_FLOWS: usize = 256;
/// Most further connections counted, and most connections without data remembered.
const MOST_COUNTED: usize = 65_536;
const MOST_WAITING: usize = 4096;

/// The result of one poll at a host.
#[derive(Clone, Debug, Default)]
pub(super) struct PollResult {
    pub(super) connections: Vec<Connection>,
    /// Connections that ended since the last poll.
    pub(super) ended: Vec<Connection>,
}

/// Identifies a flow by the host and socket that report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    host: usize,
    local: SocketAddr,
    peer: SocketAddr,
    /// Reported by the receiver.
    incoming: bool,
}

/// All connections so far.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// The hosts with their indices among the scenario's nodes.
    hosts: Vec<(usize, HostEntry)>,
    open: BTreeMap<Key, Flow>,
    ended: Vec<Flow>,
    /// Connections without data yet: a time before they existed, and when they were first seen established.
    waiting: BTreeMap<Key, (Instant, Option<Instant>)>,
    /// The time axis; the flows have the series.
    record: Record,
    looked: Instant,
    last_row: Instant,
    left_out: BTreeSet<Key>,
}

impl Connections {
    pub(super) fn new(hosts: Vec<(usize, HostEntry)>, every: Duration, now: Instant) -> Self {
        Self { hosts, record: Record { every, ..Record::default() }, looked: now, ..Self::default() }
    }

    /// Processes the results of the poll at `now`, in the order of the hosts.
    pub(super) fn process_poll(&mut self, now: Instant, found: &[PollResult]) {
        let mut there = BTreeSet::new();
        let hosts = found.iter().enumerate();
        for (host, c) in hosts.clone().flat_map(|(host, f)| f.connections.iter().map(move |c| (host, c))) {
            there.extend(self.take(now, host, c, false).into_iter().flatten());
        }
        for (host, c) in hosts.flat_map(|(host, f)| f.ended.iter().map(move |c| (host, c))) {
            for key in self.take(now, host, c, true).into_iter().flatten() {
                there.remove(&key);
            }
        }
        let all = found.iter().flat_map(|f| f.connections.iter().chain(&f.ended));
        let received: BTreeMap<(SocketAddr, SocketAddr), u64> =
            all.filter_map(|c| Some(((plain(c.peer), plain(c.local)), c.info?.bytes_received))).collect();
        for (key, flow) in &mut self.open {
            if let Some(received) = received.get(&(key.local, key.peer)).filter(|_| !key.incoming) {
                flow.arrived(now, *received);
            }
            flow.tick(now.since(self.looked));
        }
        self.row(now);
        self.waiting.retain(|key, _| there.contains(key));
        let gone: Vec<Key> = self.open.keys().filter(|key| !there.contains(key)).copied().collect();
        self.ended.extend(gone.iter().filter_map(|key| self.open.remove(key)));
        self.looked = now;
    }

    /// Processes the data of one end; returns its flows: the one it sends, and the one it receives from a
    /// sender that is not visible.
    fn take(&mut self, now: Instant, host: usize, c: &Connection, over: bool) -> [Option<Key>; 2] {
        let (local, peer) = (plain(c.local), plain(c.peer));
        let to = self.hosts.iter().position(|(_, h)| h.addresses.contains(&peer.ip()));
        // all traffic of such a host crosses the link
        let is_own = |host: usize| self.hosts.get(host).is_some_and(|(_, h)| h.own);
        let inside = peer.ip().is_loopback() || to == Some(host) || peer.ip() == local.ip();
        let beyond = !is_own(host) && !to.is_some_and(is_own);
        if inside || beyond || c.state == State::Listening {
            return [None; 2];
        }
        let outgoing = Key { host, local, peer, incoming: false };
        let incoming = Key { incoming: true, ..outgoing };
        let sent = c.info.is_some_and(|i| i.data_out > 0);
        let received = to.is_none() && c.info.is_some_and(|i| i.data_in > 0);
        [
            if sent { self.tell(now, outgoing, c) } else { self.wait(now, outgoing, c, over) },
            received.then(|| self.tell(now, incoming, c)).flatten(),
        ]
    }

    /// Notes the age of a connection without data yet.
    fn wait(&mut self, now: Instant, key: Key, c: &Connection, over: bool) -> Option<Key> {
        if over || (self.waiting.len() >= MOST_WAITING && !self.waiting.contains_key(&key)) {
            return None;
        }
        let known = self.waiting.entry(key).or_insert((self.looked, None));
        if c.state != State::Opening {
            known.1.get_or_insert(now);
        }
        Some(key)
    }

    fn tell(&mut self, now: Instant, key: Key, c: &Connection) -> Option<Key> {
        let info = c.info?;
        if self.open.get(&key).is_some_and(|f| f.is_older_than(&info)) {
            self.ended.extend(self.open.remove(&key));
        }
        if !self.open.contains_key(&key) {
            if self.open.len() + self.ended.len() >= MOST_FLOWS {
                if self.left_out.len() < MOST_COUNTED {
                    self.left_out.insert(key);
                }
                return None;
            }
            let flow = self.begin(now, key);
            self.open.insert(key, flow);
        }
        self.open.get_mut(&key)?.look(now, &info, &c.congestion);
        Some(key)
    }

    fn begin(&mut self, now: Instant, key: Key) -> Flow {
        let [mut from, mut to] = [key.local, key.peer].map(|address| self.place(address));
        if key.incoming {
            core::mem::swap(&mut from, &mut to);
        }
        let name = format!("{} > {}", from.0, to.0);
        let ends = Ends { name, from: from.1, to: to.1, addresses: (key.local, key.peer) };
        let known = self.waiting.remove(&key);
        let start = known.map_or(self.looked, |(start, _)| start);
        let mut flow = Flow::new(ends, key.incoming, start, self.record.time_s.len());
        if let Some((_, established)) = known {
            // its handshake was seen, and it sends as soon as it is open
            flow.established(established.unwrap_or(now));
        }
        flow
    }

    /// Returns the name of an address with its port, and its node in the scenario.
    fn place(&self, address: SocketAddr) -> (String, Option<usize>) {
        let host = self.hosts.iter().find(|(_, h)| h.addresses.contains(&address.ip()));
        let named = |(node, h): &(usize, HostEntry)| (format!("{}:{}", h.name, address.port()), Some(*node));
        host.map_or_else(|| (address.to_string(), None), named)
    }

    fn row(&mut self, now: Instant) {
        let length = now.since(self.last_row);
        if length < self.record.every {
            return;
        }
        self.open.values_mut().for_each(|flow| flow.row(length));
        self.record.time_s.push(now.as_secs_f64());
        self.last_row = now;
        if self.record.time_s.len() >= MAX_INTERVALS {
            self.record.merge_pairs();
            let flows = self.open.values_mut().chain(&mut self.ended);
            flows.for_each(Flow::halve);
        }
    }

    /// Open connections, the busiest first.
    pub(super) fn states(&self) -> Vec<FlowState> {
        let mut all: Vec<FlowState> = self.open.values().map(Flow::state).collect();
        all.sort_by(|a, b| b.goodput_bps.total_cmp(&a.goodput_bps));
        all
    }

    /// Returns the final reports; `path_bps` gives the capacity of the path between two nodes.
    pub(super) fn finish(
        self,
        now: Instant,
        path_bps: &dyn Fn(Option<usize>, Option<usize>) -> u64,
    ) -> FlowResults {
        let mut all = self.ended;
        for flow in &mut all {
            flow.over = true;
        }
        all.extend(self.open.into_values());
        let counted: Vec<(Ends, u64)> = all.iter().map(|f| (f.ends.clone(), f.delivered)).collect();
        all.retain(|flow| keeps(flow, &counted));
        all.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| a.ends.name.cmp(&b.ends.name)));
        let from = all.iter().map(|f| f.start).min().unwrap_or(now);
        let to = all.iter().filter_map(|f| f.grew).max().unwrap_or(from);
        let mut flows = FlowResults { record: self.record, ..FlowResults::default() };
        let rows = flows.record.time_s.len();
        for mut flow in all {
            let same =
                flows.reports.iter().filter(|r| r.name.split(" (").next() == Some(&flow.ends.name)).count();
            if same > 0 {
                flow.ends.name = format!("{} ({})", flow.ends.name, same + 1);
            }
            let path = path_bps(flow.ends.from, flow.ends.to);
            flows.reports.push(flow.report(to.since(from), path));
            flows.record.flows.push(flow.into_series(rows));
        }
        if !self.left_out.is_empty() {
            let n = self.left_out.len();
            flows.faults.push(format!("{n} more connections were not followed: the limit is {MOST_FLOWS}"));
        }
        flows
    }
}

/// Converts IPv4-mapped IPv6 addresses, which dual-stack servers have, to IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
