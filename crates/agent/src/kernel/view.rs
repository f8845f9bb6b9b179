//! What can be seen of the data path from outside.

use super::{KernelPath, sockets};
use crate::split::{FlowKey, FlowState, FlowView};
use bentpipe_base::Instant;
use bentpipe_os::diag::{Connection, Diag};
use bentpipe_tagger::FlowPhase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// State of the method `kernel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelView {
    /// Name of the congestion control, as the kernel lists it.
    pub control: String,
    /// Sockets: got a rate, fell back since more was lost than a rate explains or nobody answered, left with
    /// the end of their rate, could not have it.
    pub sockets: [u64; 4],
    /// Rates for which the kernel had no room.
    pub no_room: u64,
    /// Counters of the exchange, by name.
    pub exchange: Vec<(String, u64)>,
    /// Flows that found no room in the file for the guard.
    pub unlisted: u64,
    /// Socket limits that were raised: name, value before, value.
    pub raised: Vec<(String, String, String)>,
}

impl KernelPath {
    /// Its state, without the raised limits.
    pub fn view(&self) -> KernelView {
        let counters = self.net.network.counters(self.node).into_iter();
        let exchange = counters.map(|(name, n)| (name.to_owned(), n)).collect();
        let mut view =
            KernelView { exchange, no_room: self.no_room, unlisted: self.log.lost, ..KernelView::default() };
        self.rates.describe(&mut view);
        view
    }

    /// At most `most` flows, in the order of their addresses, with what the kernel knows of them.
    pub fn views(&self, now: Instant, most: usize) -> Vec<FlowView> {
        // without sock_diag the figures of the kernel are left out
        let connections = Diag::open().and_then(|mut diag| diag.connections()).unwrap_or_default();
        let known: BTreeMap<FlowKey, &Connection> =
            connections.iter().map(|connection| (sockets::key(connection), connection)).collect();
        let flows: Vec<_> = self.tagger.0.borrow().flows().take(most).collect();
        let view = |flow: &bentpipe_tagger::FlowView| {
            let key = self.real(&flow.flow)?;
            let connection = known.get(&key);
            let info = connection.and_then(|connection| connection.info).unwrap_or_default();
            let rtt = flow.srtt.as_millis_f64();
            Some(FlowView {
                host: key.host.to_string(),
                remote: key.remote.to_string(),
                opened_by_host: flow.is_ours,
                state: match flow.phase {
                    FlowPhase::Opening => FlowState::Opening,
                    FlowPhase::Open => FlowState::Open,
                    FlowPhase::Closed => FlowState::Closed,
                },
                rule: self
                    .rule(flow, &key)
                    .and_then(|rule| self.file.numbers.get(rule))
                    .copied()
                    .unwrap_or(0),
                age_s: now.since(flow.since).as_secs_f64(),
                bytes: [info.bytes_acked, info.bytes_received],
                waiting: [u64::from(info.unacked) * info.mss.0 + info.not_sent.0, 0],
                asked_bps: flow.asked.map(bentpipe_base::Rate::bps),
                granted_bps: flow.granted.map(bentpipe_base::Rate::bps),
                rate: Some(flow.state.word().to_owned()),
                scheme: connection.map_or_else(String::new, |connection| connection.congestion.clone()),
                rtt_ms: (rtt > 0.0).then_some(rtt),
                resent: u64::from(info.retransmits),
            })
        };
        flows.iter().filter_map(view).collect()
    }
}
