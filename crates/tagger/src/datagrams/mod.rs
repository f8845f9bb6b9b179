//! Rates for flows of datagrams of hosts that do not signal: a node with two ports beside the host.
//!
//! Source: TIA-1039 (2006), as `bentpipe_advice::negotiation` reads it for datagrams.
//!   the host's datagrams of a flow that a rule names: a start datagram goes before the first; the data waits
//!     for the answer, at most `wait`, and then goes on without a rate; CD 7 takes the request back
//!   at a granted rate: DSCP 7, paced; what has waited goes at twice the rate, within half of the agreed
//!     burst time; what would wait longer than `wait` is dropped here, since a router would drop it
//!   refused, or withdrawn, or no answer: as they are, without a rate
//!   silent for `idle`: CD 7 gives the rate back, three times; the next datagram asks again
//!   for the host: requests and reductions are answered for it (CD 2) and removed, so are answers to what
//!     this node has asked
//!   structures from the host: its program, or a node before this one, signals; the flow is left to it, with
//!     all that comes back, until it is silent for `idle`
//! The host's datagrams are changed in nothing but their DSCP. Structures are in datagrams of their own:
//! copies of one of the flow without the data (`bentpipe_base::Cx::duplicate`). An answer is the datagram
//! that it answers, turned around. The answering side keeps no state. All other state is bounded by the
//! number of flows, and by the memory for what waits; what is beyond them passes, at a granted rate it is
//! dropped.

mod config;
mod flow;

pub use config::{DatagramConfig, DatagramRule};

use crate::table::FlowKey;
use crate::tagger::{HOST, NETWORK};
use bentpipe_advice::negotiation::{AskConfig, Negotiation, RateState};
use bentpipe_advice::tia1039::{self, Kind, Structure, Structures};
use bentpipe_base::{Addr, Cx, Input, Instant, Node, Packet, Pkt, Port, Proto, Rate, Size, Slot};
use config::{Way, asked};
use flow::{Flow, Next, need};
use std::collections::{BTreeMap, BTreeSet};

/// What happened, for reports.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    flows: u64,
    granted: u64,
    reduced: u64,
    refused: u64,
    withdrawn: u64,
    plain: u64,
    answered: u64,
    removed: u64,
    delayed: u64,
    dropped: u64,
    too_many: u64,
}

/// The rate of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramView {
    /// The flow.
    pub flow: FlowKey,
    /// Rate asked for.
    pub asked: Option<Rate>,
    /// Rate granted.
    pub granted: Option<Rate>,
    /// What became of it.
    pub state: RateState,
    /// Bytes that wait.
    pub waiting: u64,
}

/// A tagger of datagrams: one node with the ports [`HOST`] and [`NETWORK`].
#[derive(Debug)]
pub struct DatagramTagger {
    config: DatagramConfig,
    flows: BTreeMap<FlowKey, Flow>,
    /// The flows of the host that signal themselves, and the last datagram of each.
    others: BTreeMap<FlowKey, Instant>,
    /// Flows by the time at which they are looked at.
    due: BTreeSet<(Instant, FlowKey)>,
    /// What waits, in all flows.
    held: Size,
    /// No further flow begins.
    is_closed: bool,
    counts: Counts,
    /// It holds nothing any more.
    is_released: bool,
    /// The earliest wake-up requested and still pending.
    wake_at: Instant,
}

/// The structures of a datagram that consists of them.
fn alone(packet: &Packet) -> Option<Structures> {
    let is_alone = packet.proto == Proto::Udp && packet.body.len == 0;
    Some(tia1039::structures(packet)).filter(|all| is_alone && !all.is_empty())
}

impl DatagramTagger {
    /// A tagger with this configuration.
    pub fn new(config: DatagramConfig) -> Self {
        Self {
            config,
            flows: BTreeMap::new(),
            others: BTreeMap::new(),
            due: BTreeSet::new(),
            held: Size(0),
            is_closed: false,
            counts: Counts::default(),
            is_released: false,
            wake_at: Instant::NEVER,
        }
    }

    /// The flows that have asked.
    pub fn views(&self) -> impl Iterator<Item = DatagramView> {
        self.flows.iter().map(|(key, flow)| {
            let negotiation = flow.exchange.negotiation();
            DatagramView {
                flow: *key,
                asked: negotiation.config().asked(),
                granted: negotiation.granted(),
                state: negotiation.state(),
                waiting: flow.held_bytes,
            }
        })
    }

    /// Asks for no further flow from now on.
    pub const fn stop_asking(&mut self) {
        self.is_closed = true;
    }

    /// What the rules say of datagrams from one end to the other.
    fn rule(&self, cx: &Cx<'_>, side: Port, from: (Addr, u16), to: (Addr, u16)) -> Option<&AskConfig> {
        let way = Way { from: (cx.address(from.0), from.1), to: (cx.address(to.0), to.1), side };
        asked(&self.config.rules, &way)
    }

    /// A packet of the host.
    fn outward(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        let key = FlowKey::from_host(&packet);
        if packet.proto != Proto::Udp || self.is_released {
            return cx.send(NETWORK, packet);
        }
        if alone(&packet).is_some() {
            self.leave_alone(cx, key);
            return cx.send(NETWORK, packet);
        }
        if let Some(last) = self.others.get_mut(&key) {
            *last = cx.now;
            return cx.send(NETWORK, packet);
        }
        if self.flows.get(&key).is_some_and(|flow| flow.is_over) {
            self.forget(cx, &key);
        }
        if !self.flows.contains_key(&key) && !self.begin(cx, key, &packet) {
            return cx.send(NETWORK, packet);
        }
        let Some(flow) = self.flows.get_mut(&key) else { return cx.send(NETWORK, packet) };
        flow.last = cx.now;
        if flow.has_room(cx.now, packet.wire_len(), self.held, &self.config) {
            self.held += need(packet.wire_len());
            flow.hold(cx.now, packet);
        } else {
            self.counts.dropped += 1;
            cx.recycle(packet);
        }
        self.serve(cx, key);
    }

    /// Leaves a flow to its program, which signals itself.
    fn leave_alone(&mut self, cx: &mut Cx<'_>, key: FlowKey) {
        self.forget(cx, &key);
        if let Some(last) = self.others.get_mut(&key) {
            *last = cx.now;
            return;
        }
        if self.is_full() {
            self.counts.too_many += 1;
            return;
        }
        self.others.insert(key, cx.now);
        self.due.insert((cx.now + self.config.idle, key));
    }

    fn is_full(&self) -> bool {
        self.flows.len() + self.others.len() >= self.config.flows as usize
    }

    /// Begins a flow, if a rule says so; false if it is left alone.
    fn begin(&mut self, cx: &mut Cx<'_>, key: FlowKey, first: &Packet) -> bool {
        let ask = self.rule(cx, HOST, key.host, key.peer).filter(|ask| ask.ask.is_some()).cloned();
        let Some(ask) = ask.filter(|_| !self.is_closed) else { return false };
        if self.is_full() {
            self.counts.too_many += 1;
            return false;
        }
        self.counts.flows += 1;
        self.flows.insert(key, Flow::new(cx, first, &ask));
        true
    }

    /// Sends what is due of a flow, and notes when it must be looked at next.
    fn serve(&mut self, cx: &mut Cx<'_>, key: FlowKey) {
        let now = cx.now;
        let Some(flow) = self.flows.get_mut(&key) else { return self.expire(now, key) };
        flow.is_over |= flow.is_silent(now, &self.config);
        loop {
            let before = flow.state();
            for structure in flow.exchange.control(now, flow.is_over).as_slice() {
                let packet = flow.signal(cx, *structure);
                cx.send(NETWORK, packet);
            }
            note(&mut self.counts, before, flow.state());
            let held = flow.memory();
            let next = flow.next(cx, self.held, &self.config);
            self.held = Size((self.held.0 + flow.memory().0).saturating_sub(held.0));
            match next {
                Next::Wait => break,
                Next::Sent { after } => self.counts.delayed += u64::from(!after.is_zero()),
                Next::GiveUp => {
                    self.counts.plain += 1;
                    flow.exchange.give_up(now);
                }
                Next::Late => self.counts.dropped += 1,
            }
        }
        let at = flow.next_at(now, &self.config);
        self.due.remove(&(flow.due, key));
        flow.due = at;
        if flow.is_over && at == Instant::NEVER {
            return self.forget(cx, &key);
        }
        self.due.insert((at, key));
    }

    /// Forgets a flow that signals itself, once it is silent.
    fn expire(&mut self, now: Instant, key: FlowKey) {
        let Some(last) = self.others.get(&key) else { return };
        let end = *last + self.config.idle;
        if end <= now {
            self.others.remove(&key);
        } else {
            self.due.insert((end, key));
        }
    }

    /// Forgets a flow; what it holds is sent.
    fn forget(&mut self, cx: &mut Cx<'_>, key: &FlowKey) {
        let Some(flow) = self.flows.remove(key) else { return };
        self.due.remove(&(flow.due, *key));
        self.held = Size(self.held.0.saturating_sub(flow.memory().0));
        let (held, template) = flow.end();
        held.for_each(|packet| cx.send(NETWORK, packet));
        cx.recycle(template);
    }

    /// A packet for the host.
    fn inward(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        match alone(&packet) {
            Some(structures) => self.structures(cx, packet, &structures),
            None => cx.send(HOST, packet),
        }
    }

    /// Structures for the host, which must not see them.
    fn structures(&mut self, cx: &mut Cx<'_>, packet: Pkt, all: &Structures) {
        let key = FlowKey::from_peer(&packet);
        let is_known = self.flows.contains_key(&key);
        let is_returned = |s: &Structure| match s.kind() {
            Some(Kind::Response) => true,
            Some(Kind::MissedStart) => is_known,
            _ => false,
        };
        let is_answer = all.as_slice().iter().any(is_returned);
        if self.others.contains_key(&key) || is_answer && !is_known {
            // of its program, or of a node before this one; what is sealed, a host discards
            return cx.send(HOST, packet);
        }
        if is_answer {
            self.counts.removed += 1;
            cx.recycle(packet);
            return self.hear(cx, key, all);
        }
        let Some(ask) = self.rule(cx, NETWORK, key.peer, key.host) else { return cx.send(HOST, packet) };
        let answer = AskConfig { take: ask.take, ..AskConfig::default() };
        self.counts.removed += 1;
        self.answer(cx, packet, all, answer);
    }

    /// Takes an answer to a flow of the host.
    fn hear(&mut self, cx: &mut Cx<'_>, key: FlowKey, all: &Structures) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let before = flow.state();
        let due = flow.exchange.hear(cx.now, all.as_slice());
        note(&mut self.counts, before, flow.state());
        for structure in due.as_slice() {
            let packet = flow.signal(cx, *structure);
            cx.send(NETWORK, packet);
        }
        self.serve(cx, key);
    }

    /// Answers for the host: the datagram goes back with what is returned.
    fn answer(&mut self, cx: &mut Cx<'_>, mut packet: Pkt, all: &Structures, config: AskConfig) {
        let mut responder = Negotiation::new(config, packet.ip);
        let responses = all.as_slice().iter().filter_map(|one| responder.respond(cx.now, *one));
        let responses: Vec<Structure> = responses.collect();
        if responses.is_empty() {
            return cx.recycle(packet);
        }
        self.counts.answered += 1;
        (packet.src, packet.dst) = (packet.dst, packet.src);
        (packet.sport, packet.dport) = (packet.dport, packet.sport);
        tia1039::write(&mut packet, &responses);
        cx.send(NETWORK, packet);
    }

    fn serve_due(&mut self, cx: &mut Cx<'_>) {
        while let Some((at, key)) = self.due.first().copied()
            && at <= cx.now
        {
            self.due.remove(&(at, key));
            self.serve(cx, key);
        }
        let next = self.due.first().map_or(Instant::NEVER, |(at, _)| *at);
        if next < self.wake_at {
            self.wake_at = next;
            cx.wake(Slot(0), next);
        }
    }
}

/// Counts what became of a request.
fn note(counts: &mut Counts, before: RateState, after: RateState) {
    if before == after {
        return;
    }
    let had = matches!(before, RateState::Granted | RateState::Reduced);
    match (before, after) {
        (_, RateState::Granted) => counts.granted += 1,
        (_, RateState::Reduced) => counts.reduced += 1,
        (_, RateState::Refused) if had => counts.withdrawn += 1,
        (RateState::Asked | RateState::AskingAgain, RateState::Refused) => counts.refused += 1,
        (RateState::Asked | RateState::AskingAgain, RateState::Plain) => counts.plain += 1,
        _ => {}
    }
}

impl Node for DatagramTagger {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(HOST, packet) => self.outward(cx, packet),
            Input::Packet(_, packet) => self.inward(cx, packet),
            Input::Timer(_) => self.wake_at = Instant::NEVER,
        }
        self.serve_due(cx);
    }

    fn reads_signalling(&self) -> bool {
        true
    }

    /// Gives all rates back, three times in a row, and sends what is held.
    fn release(&mut self, cx: &mut Cx<'_>) {
        self.is_released = true;
        let keys: Vec<FlowKey> = self.flows.keys().copied().collect();
        for key in keys {
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            let closes = flow.exchange.end(cx.now);
            let closes: Vec<Pkt> = closes.map(|structure| flow.signal(cx, structure)).collect();
            self.forget(cx, &key);
            for packet in closes {
                cx.send(NETWORK, packet);
            }
        }
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.flows.keys().chain(self.others.keys()).flat_map(FlowKey::addresses).for_each(each);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.counts;
        let all = [
            ("flows", c.flows),
            ("granted", c.granted),
            ("reduced", c.reduced),
            ("refused", c.refused),
            ("withdrawn", c.withdrawn),
            ("without_a_rate", c.plain),
            ("answered", c.answered),
            ("removed", c.removed),
            ("delayed", c.delayed),
            ("dropped", c.dropped),
            ("too_many", c.too_many),
        ];
        for (key, n) in all {
            each(key, n);
        }
    }
}
