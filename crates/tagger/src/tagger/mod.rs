//! The tagger.
//!
//! Sources: TIA-1039 (2006); L. G. Roberts' explicit-rate TCP with in-band QoS signalling, whose sub-layer
//! between TCP and the network is this node.
//! It stands between one or more hosts and their network and runs one end of the exchange for each flow that
//! its rules name (`bentpipe_advice::negotiation`):
//!   host's SYN: request added, DSCP 3; SYN/ACK: response to the peer's request, and a request of its own
//!   its other packets: DSCP 7; a response or request in the next one that has room, with DSCP 3
//!   MSS options of both SYNs: 16 bytes less, the length of a structure
//!   packets for the host: structures read and removed, DSCP reset
//!   a change of the rate: for the driver, which tells the host's TCP (`changes.rs`)
//! The tagger creates no packets to signal. A response waits for the host's next packet, which is at the
//! latest its delayed acknowledgment. What a data packet has no room for, and a first request that is
//! repeated, is in a copy of it without the data. Packets that a signature covers, SYNs with data or Fast
//! Open, and hosts that signal themselves pass untouched. Data of the host that ends like a structure is
//! cut before its last byte, since the peer decides by the bytes (`flow.rs`). What the host takes for data
//! is never a structure: a packet that may hide one is dropped, and its sender sends it again. If it comes
//! again as it was six times, it is data of a peer whose agent is gone, and the host gets a RST in its
//! place. A peer that takes the structure of a SYN for data shows it in its SYN/ACK, which is not
//! delivered: the host's next SYN goes out without a structure, after a RST for what the peer has taken
//! (`peers.rs`). The host's application notices nothing but the second of waiting. Deviation: the source
//! does not say what a peer does that knows nothing of structures and has no listener; it counts the
//! structure in the acknowledgment of its RST, which is corrected here.

mod inward;
mod outward;

use crate::changes::{Changes, RateNews};
use crate::config::TaggerConfig;
use crate::flow::Flow;
use crate::peers::Peers;
use crate::table::{FlowKey, Table};
use crate::view::FlowView;
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::{
    Addr, Cx, Flags, Input, Instant, Node, OtherOptions, Packet, Pkt, Port, Proto, Rate, Slot,
};
use std::collections::BTreeMap;

/// The side of the host.
pub const HOST: Port = Port(0);
/// The side of the network.
pub const NETWORK: Port = Port(1);

/// What happened, for reports.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    asked: u64,
    answered: u64,
    granted: u64,
    refused: u64,
    plain: u64,
    taken_as_data: u64,
    withheld: u64,
    stuck: u64,
    removed: u64,
}

/// A tagger: one node with the ports [`HOST`] and [`NETWORK`].
#[derive(Debug)]
pub struct Tagger {
    config: TaggerConfig,
    table: Table,
    peers: Peers,
    changes: Changes,
    counts: Counts,
    /// False: new flows pass.
    accepts: bool,
    /// The earliest wake-up requested and still pending.
    wake_at: Instant,
}

/// True for a packet that must pass unchanged: a signature covers it, or its SYN may carry data.
fn is_untouchable(packet: &Packet) -> bool {
    let options = packet.other_options;
    let has_data = options.has(OtherOptions::FAST_OPEN) || packet.body.len > 0;
    options.has(OtherOptions::SIGNED) || has(packet, Flags::SYN) && !has(packet, Flags::ACK) && has_data
}

/// True for a packet with this flag.
const fn has(packet: &Packet, flag: Flags) -> bool {
    packet.tcp.flags.has(flag)
}

impl Tagger {
    /// Returns a tagger with this configuration. One that [`TaggerConfig::check`] refuses does no harm, but
    /// follows no flow.
    pub fn new(config: TaggerConfig) -> Self {
        Self {
            table: Table::new(),
            peers: Peers::new(config.incapable, config.incapable_time),
            changes: Changes::new(config.flows),
            counts: Counts::default(),
            accepts: true,
            wake_at: Instant::NEVER,
            config,
        }
    }

    /// Takes what changed since the last call: the present rate of each flow that has another one.
    pub fn take_changes(&mut self) -> Vec<RateNews> {
        self.changes.take()
    }

    /// Returns the rate that a flow has.
    pub fn granted(&self, flow: &FlowKey) -> Option<Rate> {
        self.table.get(flow)?.told
    }

    /// Asks for no new flow from now on, and answers none.
    pub const fn stop_accepting(&mut self) {
        self.accepts = false;
    }

    /// Notes from now on which flows come and go, for [`Tagger::take_changed`].
    pub fn follow(&mut self) {
        self.table.follow();
    }

    /// Takes the flows that came or went since the last call; [`Tagger::view`] shows what is there. True
    /// for those that were forgotten since they were silent: their ends may still signal.
    pub fn take_changed(&mut self) -> BTreeMap<FlowKey, bool> {
        self.table.take_changed()
    }

    /// Returns a flow, if it follows that.
    pub fn view(&self, flow: &FlowKey) -> Option<FlowView> {
        self.table.get(flow).map(|found| found.view(*flow))
    }

    /// Number of flows that have not ended.
    pub fn open(&self) -> usize {
        self.table.open()
    }

    /// All flows, those included that have just ended, in the order of their addresses.
    pub fn flows(&self) -> impl Iterator<Item = FlowView> {
        self.table.iter().map(|(key, flow)| flow.view(*key))
    }

    /// Notes an answer, and the change of the flow's rate if there is one.
    fn note(&mut self, key: FlowKey, answer: Option<RateAnswer>) {
        match answer {
            Some(RateAnswer::Refused) => self.counts.refused += 1,
            Some(RateAnswer::Plain) => self.counts.plain += 1,
            _ => {}
        }
        let Some(flow) = self.table.get_mut(&key) else { return };
        let before = flow.told;
        if !flow.has_news(answer) {
            return;
        }
        let news = RateNews { flow: key, ip: flow.ip, rate: flow.told, srtt: flow.track.srtt };
        self.counts.granted += u64::from(before.is_none() && news.rate.is_some());
        self.changes.note(news);
    }

    /// Forgets a flow.
    fn forget(&mut self, key: &FlowKey) {
        if let Some(flow) = self.table.remove(key) {
            self.end(*key, &flow);
        }
    }

    /// A flow is no more in the table: it has no rate.
    fn end(&mut self, key: FlowKey, flow: &Flow) {
        if flow.told.is_some() {
            self.changes.note(RateNews { flow: key, ip: flow.ip, rate: None, srtt: flow.track.srtt });
        }
    }

    fn expire(&mut self, now: Instant) {
        while let Some((key, flow)) = self.table.remove_expired(now, &self.config) {
            self.end(key, &flow);
        }
    }

    fn packet(&mut self, cx: &mut Cx<'_>, port: Port, packet: Pkt) {
        match (port, packet.proto) {
            (HOST, Proto::Tcp) => self.outward(cx, packet),
            (HOST, _) => cx.send(NETWORK, packet),
            (_, Proto::Tcp) => self.inward(cx, packet),
            (_, _) => cx.send(HOST, packet),
        }
    }
}

impl Node for Tagger {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.expire(cx.now);
        match input {
            Input::Packet(port, packet) => self.packet(cx, port, packet),
            Input::Timer(_) => self.wake_at = Instant::NEVER,
        }
        let next = self.table.next_check();
        if next < self.wake_at {
            self.wake_at = next;
            cx.wake(Slot(0), next);
        }
    }

    fn reads_signalling(&self) -> bool {
        true
    }

    fn reads_all_ends(&self) -> bool {
        true
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        let flows = self.table.keys().chain(self.table.changed()).flat_map(FlowKey::addresses);
        flows.chain(self.peers.addresses()).chain(self.changes.addresses()).for_each(each);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let Counts { asked, answered, granted, refused, plain, taken_as_data, withheld, stuck, removed } =
            self.counts;
        each("flows", self.table.len() as u64);
        each("asked", asked);
        each("answered", answered);
        each("granted", granted);
        each("refused", refused);
        each("plain", plain);
        each("taken_as_data", taken_as_data);
        each("withheld", withheld);
        each("reset", stuck);
        each("structures_removed", removed);
    }
}
