//! What can be seen of the data path from outside.

use super::flow::Phase;
use super::{FlowKey, HOST, NETWORK, Split};
use bentpipe_base::Instant;
use serde::{Deserialize, Serialize};

/// Counters of the data path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Connections taken.
    pub connections: u64,
    /// Of these: both streams were delivered.
    pub closed: u64,
    /// The other end refused.
    pub refused: u64,
    /// The other end did not answer.
    pub unanswered: u64,
    /// Reset or given up by the host, and by the network side.
    pub failed: [u64; 2],
    /// Passed because there were too many.
    pub too_many: u64,
    /// Passed because the opening packet was damaged, or its addresses were in use.
    pub not_taken: u64,
    /// Fragments dropped.
    pub fragments: u64,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowState {
    /// The other end has not answered yet.
    Opening,
    /// Data flows.
    Open,
    /// One end was reset.
    Failing,
    /// Everything was delivered.
    Closed,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    /// The host's address and port.
    pub host: String,
    /// Those of its peer.
    pub remote: String,
    /// True if the host opened it.
    pub opened_by_host: bool,
    /// Where it is.
    pub state: FlowState,
    /// Number of the rule that took it, from 1.
    pub rule: usize,
    /// Seconds since it was opened.
    pub age_s: f64,
    /// Bytes carried from the host to the network, and back.
    pub bytes: [u64; 2],
    /// Bytes that wait for an acknowledgment of the network, and of the host.
    pub waiting: [u64; 2],
    /// Rate asked for, bit/s; null if none.
    pub asked_bps: Option<u64>,
    /// Rate granted, bit/s; null if none.
    pub granted_bps: Option<u64>,
    /// What the sender towards the network does with it.
    pub rate: Option<String>,
    /// Scheme towards the network.
    pub scheme: String,
    /// Smoothed RTT to the peer in milliseconds; null before the first sample.
    pub rtt_ms: Option<f64>,
    /// Segments sent again towards the network.
    pub resent: u64,
}

impl Split {
    /// Its counters.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of connections that it has taken and that have not ended.
    pub const fn flows(&self) -> usize {
        self.memory.flows
    }

    /// Number of connections with the host, and with the network, those in TIME-WAIT included.
    pub fn connections(&self) -> [usize; 2] {
        [HOST, NETWORK].map(|side| self.ends[side].connections())
    }

    /// Memory that is set aside for them.
    pub const fn reserved(&self) -> u64 {
        self.memory.reserved
    }

    /// Memory that their buffers use.
    pub fn used(&self) -> u64 {
        let of = |side: usize| {
            let ids = self.by_conn[side].keys();
            ids.filter_map(|id| self.ends[side].memory(*id)).sum::<usize>() as u64
        };
        of(HOST) + of(NETWORK)
    }

    /// At most `most` connections, in the order of their addresses.
    pub fn views(&self, now: Instant, most: usize) -> Vec<FlowView> {
        self.flows.iter().take(most).map(|(key, flow)| self.view(now, key, flow)).collect()
    }

    fn view(&self, now: Instant, key: &FlowKey, flow: &super::flow::Flow) -> FlowView {
        let connection = |side: usize| flow.ids[side].and_then(|id| self.ends[side].connection(id));
        let waiting = |side| connection(side).map_or(0, bentpipe_tcp::Connection::unacknowledged);
        let network = connection(NETWORK);
        let rate = network.and_then(bentpipe_tcp::Connection::rate);
        FlowView {
            host: key.host.to_string(),
            remote: key.remote.to_string(),
            opened_by_host: flow.opener == HOST,
            state: match flow.phase {
                Phase::Opening(_) => FlowState::Opening,
                Phase::Open => FlowState::Open,
                Phase::Failing(_) => FlowState::Failing,
                Phase::Closing => FlowState::Closed,
            },
            rule: self.file.numbers.get(flow.rule).copied().unwrap_or_default(),
            age_s: now.since(flow.since).as_secs_f64(),
            bytes: flow.carried,
            waiting: [waiting(NETWORK), waiting(HOST)],
            asked_bps: rate.map(|rate| rate.asked.bps()),
            granted_bps: rate.and_then(|rate| rate.granted).map(bentpipe_base::Rate::bps),
            rate: rate.map(|rate| rate.state.word().to_owned()),
            scheme: network.map_or(String::new(), |c| c.config().scheme.name.to_owned()),
            rtt_ms: network.map(|c| c.rtt().srtt().as_millis_f64()).filter(|ms| *ms > 0.0),
            resent: network.map_or(0, |c| c.stats().retransmits),
        }
    }
}
