//! The datagrams of an agent: those of flows that a rule names go through a [`DatagramTagger`], all others do
//! not come here.
//!
//! The node is in a network of its own between two open ends, the host's and the network's, with the bytes of
//! its packets (`bentpipe_driver::LiveNetwork`). What finds no room there passes as it is.

use super::scope::ends;
use crate::split::{HOST, NETWORK};
use bentpipe_base::{Addr, Cx, Input, Instant, Node, Rate, Size};
use bentpipe_driver::{LiveNetwork, Unit};
use bentpipe_gateway::{Action, Policy, Side, SynProperties};
use bentpipe_scenario::agent_file::DatagramRules;
use bentpipe_scenario::gateway_file::{PortRange, Rule};
use bentpipe_tagger::{self as tagger, DatagramConfig, DatagramRule, DatagramTagger, Ports};
use bentpipe_wire::UDP;
use bentpipe_wire::offload::VnetHeader;
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::IoSlice;
use std::rc::Rc;

/// Memory for datagrams that wait, and for one of each flow.
const MEMORY: Size = Size(64 << 20);

/// The rate of one flow of datagrams that the host sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatagramFlow {
    /// Address and port of the host.
    pub host: String,
    /// Those of the peer.
    pub remote: String,
    /// Rate asked for, bit/s.
    pub asked_bps: Option<u64>,
    /// Rate granted, bit/s; null if none is.
    pub granted_bps: Option<u64>,
    /// What became of the request, in the words of reports.
    pub rate: String,
    /// Bytes that wait.
    pub waiting: u64,
}

/// What an agent says of its datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramStatus {
    /// The first flows, in the order in which the agent met their addresses.
    pub flows: Vec<DatagramFlow>,
    /// Counters since the start.
    pub counters: Vec<(String, u64)>,
}

/// The node, shared with those who ask for its state.
#[derive(Clone, Debug)]
struct Shared(Rc<RefCell<DatagramTagger>>);

impl Node for Shared {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.0.borrow_mut().handle(cx, input);
    }
    fn reads_signalling(&self) -> bool {
        self.0.borrow().reads_signalling()
    }
    fn release(&mut self, cx: &mut Cx<'_>) {
        self.0.borrow_mut().release(cx);
    }
    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.0.borrow().addresses(each);
    }
}

/// The way of datagrams.
#[derive(Debug)]
pub struct Datagrams {
    policy: Policy,
    tagger: Shared,
    net: LiveNetwork,
}

impl Datagrams {
    /// For `rules`, with units of this kind at the ports.
    pub fn new(rules: &DatagramRules, unit: Unit) -> Self {
        let each = rules.policy.rules.iter().zip(&rules.asks);
        let config = DatagramConfig {
            wait: rules.wait,
            idle: rules.idle,
            ..DatagramConfig::new(each.map(|(rule, ask)| of_datagrams(rule, ask.clone())).collect())
        };
        let tagger = Shared(Rc::new(RefCell::new(DatagramTagger::new(config))));
        let node = Box::new(tagger.clone());
        // nothing is drawn at random
        let mut net = LiveNetwork::chain(|network| vec![network.add(node)], 0, unit, MEMORY);
        // each is paced, and one of each flow is kept as long as the flow
        net.cut_datagrams();
        Self { policy: rules.policy.clone(), tagger, net }
    }

    /// True for a datagram that a rule may concern, from its IP header on: one of the data, or one that comes
    /// back.
    pub fn has(&self, side: usize, ip: &[u8]) -> bool {
        let Some(((from, from_port), (to, port))) = ends(ip, UDP) else { return false };
        let (near, far) =
            if side == HOST { (Side::Lan, Side::Satellite) } else { (Side::Satellite, Side::Lan) };
        let as_data = SynProperties { from, to, from_port, port, dscp: 0, side: near };
        let as_answer =
            SynProperties { from: to, to: from, from_port: port, port: from_port, dscp: 0, side: far };
        [as_data, as_answer].iter().any(|way| self.policy.decide(way) == Action::Accelerate)
    }

    /// Takes a unit that arrived at `side`; false if there is no room for it.
    pub fn accept(&mut self, now: Instant, side: usize, unit: &[u8], vnet: &VnetHeader) -> bool {
        self.net.advance(now);
        let is_written = self.net.store.borrow_mut().write(unit);
        is_written && self.net.accept(side, unit.len(), vnet)
    }

    /// Handles what is due, and hands all that leaves to `send`, with its side.
    ///
    /// # Errors
    /// The first one of `send`.
    pub fn run<E>(
        &mut self,
        now: Instant,
        mut send: impl FnMut(usize, &VnetHeader, &[IoSlice<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.net.advance(now);
        while let Some(arrival) = self.net.take_arrival() {
            let side = if arrival.port == HOST { HOST } else { NETWORK };
            let done = self.net.emit(&arrival, |emitted, header, payload| {
                let parts = [IoSlice::new(header), IoSlice::new(payload), IoSlice::new(emitted.tail())];
                // the first part must contain the headers
                send(side, &emitted.vnet, &parts[usize::from(header.is_empty())..])
            });
            self.net.done(arrival);
            done?;
        }
        Ok(())
    }

    /// When [`Datagrams::run`] must be called next.
    pub fn next_at(&mut self) -> Instant {
        self.net.network.next_at().unwrap_or(Instant::NEVER)
    }

    /// Asks for no further flow from now on.
    pub fn stop_asking(&mut self) {
        self.tagger.0.borrow_mut().stop_asking();
    }

    /// Gives all rates back and holds nothing any more.
    pub fn release(&mut self, now: Instant) {
        self.net.advance(now);
        self.net.network.release();
        self.net.advance(now);
    }

    /// Its flows, at most `most`, and its counters.
    pub fn status(&self, most: usize) -> DatagramStatus {
        let address = |(addr, port): (Addr, u16)| {
            let address = self.net.network.world.addresses.address(addr);
            address.map_or_else(String::new, |address| SocketAddr::new(address, port).to_string())
        };
        let tagger = self.tagger.0.borrow();
        let flows = tagger.views().take(most).map(|view| DatagramFlow {
            host: address(view.flow.host),
            remote: address(view.flow.peer),
            asked_bps: view.asked.map(Rate::bps),
            granted_bps: view.granted.map(Rate::bps),
            rate: view.state.word().to_owned(),
            waiting: view.waiting,
        });
        let flows = flows.collect();
        let mut counters = Vec::new();
        tagger.counters(&mut |key, n| counters.push((key.to_owned(), n)));
        DatagramStatus { flows, counters }
    }
}

/// A rule of the file as the node reads it.
fn of_datagrams(rule: &Rule, ask: Option<bentpipe_tcp::AskConfig>) -> DatagramRule {
    let ports = |ranges: &[PortRange]| {
        ranges.iter().map(|range| Ports { first: range.first, last: range.last }).collect()
    };
    DatagramRule {
        from: rule.from.clone(),
        to: rule.to.clone(),
        from_ports: ports(&rule.from_ports),
        ports: ports(&rule.ports),
        side: rule.opened_from.map(|side| match side {
            Side::Lan => tagger::HOST,
            Side::Satellite => tagger::NETWORK,
        }),
        ask,
    }
}
