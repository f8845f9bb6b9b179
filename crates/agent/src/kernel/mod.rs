//! The data path of method `kernel`: signalling in the host's own packets, whose TCP uses the rates.
//!
//! A tagger stands between the two ports. Each rate that it is told is in the kernel before the packet that
//! told it gets there, so that a connection has its rate from its first segment on. Packets outside the rules
//! do not come here; what the tagger does not follow passes byte for byte.
//!
//! ```text
//! port -> LiveNetwork: Tagger -> rates and flows that changed -> Rates (the kernel), flow file -> port
//! ```

mod rules;
mod sockets;
mod view;

pub use rules::{Unfit, peers, tagger_config};
pub use sockets::{key, open_sockets, reset_sockets};
pub use view::KernelView;

use crate::path::{FlowFile, Scope, Traffic, send, when_held};
use crate::split::{FlowKey, FlowLog as _, HOST, Link, NETWORK};
use bentpipe_base::{Addr, Cx, Duration, Input, Instant, IpVersion, Node, NodeId, Size};
use bentpipe_driver::{LiveNetwork, Unit};
use bentpipe_gateway::{Side, SynProperties};
use bentpipe_kernel_rate::{Grant, KernelRate, Tuple};
use bentpipe_os::port::PortDrops;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_scenario::agent_file::AgentFile;
use bentpipe_tagger::{FlowView, RateNews, Tagger};
use core::cell::RefCell;
use core::net::SocketAddr;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;

/// Most super-packets read from one side before the other gets its turn.
const BATCH: usize = 32;
/// Memory for packets within the path. It holds none longer than a turn.
const MEMORY: Size = Size(16 << 20);
/// Time between two renewals of the lease, which lasts for 2 s.
const RENEW: Duration = Duration::from_millis(500);
/// Bytes that the tagger adds to a data packet in IPv6: a place for a structure.
const PLACE: u16 = 16;

/// Who sends at the rates: the kernel, or a test in its place.
pub trait Rates: core::fmt::Debug {
    /// Gives a connection a rate; false if there are too many.
    fn set(&mut self, tuple: &Tuple, grant: &Grant) -> bool;
    /// Takes the rate of a connection.
    fn forget(&mut self, tuple: &Tuple);
    /// Says that the agent lives.
    fn renew(&mut self);
    /// Adds what it knows to a view.
    fn describe(&self, view: &mut KernelView);
}

impl Rates for KernelRate {
    fn set(&mut self, tuple: &Tuple, grant: &Grant) -> bool {
        Self::set(self, tuple, grant).is_ok()
    }

    fn forget(&mut self, tuple: &Tuple) {
        Self::forget(self, tuple);
    }

    fn renew(&mut self) {
        // without it the sockets go on under CUBIC; the next one is soon
        let _ = Self::renew(self);
    }

    fn describe(&self, view: &mut KernelView) {
        let counts = self.counts();
        self.name().clone_into(&mut view.control);
        view.sockets = [counts.adopted, counts.fell_back, counts.left, counts.refused];
    }
}

/// A tagger as a node, which the data path can ask between two packets.
#[derive(Clone, Debug)]
struct Shared(Rc<RefCell<Tagger>>);

impl Node for Shared {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.0.borrow_mut().handle(cx, input);
    }

    fn reads_signalling(&self) -> bool {
        self.0.borrow().reads_signalling()
    }

    fn reads_all_ends(&self) -> bool {
        self.0.borrow().reads_all_ends()
    }

    fn addresses(&self, each: &mut dyn FnMut(Addr)) {
        self.0.borrow().addresses(each);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.0.borrow().counters(each);
    }
}

/// The data path with its ports and its clock.
#[derive(Debug)]
pub struct KernelPath {
    ports: [Box<dyn PacketPort>; 2],
    scope: Scope,
    net: LiveNetwork,
    tagger: Shared,
    node: NodeId,
    rates: Box<dyn Rates>,
    file: Arc<AgentFile>,
    log: FlowFile,
    clock: Clock,
    renew_at: Instant,
    traffic: Traffic,
    /// Rates for which the kernel had no room.
    no_room: u64,
}

impl KernelPath {
    /// Connects `ports`, the host's first, through a tagger for the rules of `file`. `rates` gets the rates,
    /// `log` the flows.
    ///
    /// # Errors
    /// Rules that a tagger cannot have.
    pub fn new(
        ports: [Box<dyn PacketPort>; 2],
        (file, mtu): (Arc<AgentFile>, u16),
        rates: Box<dyn Rates>,
        log: FlowFile,
        seed: u64,
    ) -> Result<Self, Unfit> {
        let mut tagger = Tagger::new(tagger_config(&file, mtu)?);
        tagger.follow();
        let tagger = Shared(Rc::new(RefCell::new(tagger)));
        let mut node = NodeId(0);
        let add = |network: &mut bentpipe_network::Network| {
            node = network.add(Box::new(tagger.clone()));
            vec![node]
        };
        let net = LiveNetwork::chain(add, seed, Unit::Packet, MEMORY);
        let scope = Scope::new(file.site.policy.clone());
        let (clock, traffic) = (Clock::start(), Traffic::default());
        let renew_at = Instant::ZERO;
        Ok(Self { ports, scope, net, tagger, node, rates, file, log, clock, renew_at, traffic, no_room: 0 })
    }

    /// Its clock.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Counters of its ports.
    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Packets lost at the ports.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn drops(&mut self) -> io::Result<[PortDrops; 2]> {
        let [host, network] = &mut self.ports;
        Ok([host.drops()?, network.drops()?])
    }

    /// Descriptors to poll for input.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.ports[HOST].fd(), self.ports[NETWORK].fd()]
    }

    /// Follows no new flow from now on; they pass.
    pub fn stop_accepting(&mut self) {
        self.tagger.0.borrow_mut().stop_accepting();
    }

    /// Number of flows that have not ended.
    pub fn flows(&self) -> usize {
        self.tagger.0.borrow().open()
    }

    /// Reads, handles timers, sends. Returns when to call again if the ports have no input.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn turn(&mut self) -> io::Result<Instant> {
        let mut is_full = false;
        for side in [HOST, NETWORK] {
            let mut read = 0;
            while read < BATCH && self.receive(side)? {
                read += 1;
            }
            is_full |= read == BATCH;
        }
        let now = self.clock.now();
        self.net.advance(now);
        self.settle()?;
        if now >= self.renew_at {
            self.rates.renew();
            self.renew_at = now + RENEW;
        }
        let next = self.net.network.next_at().unwrap_or(Instant::NEVER);
        let next = next.min(self.renew_at).min(when_held(&self.ports, now));
        Ok(if is_full { now } else { next })
    }

    /// Handles one packet from `side`; false if none waits.
    fn receive(&mut self, side: usize) -> io::Result<bool> {
        let store = Rc::clone(&self.net.store);
        let received = self.ports[side].receive(store.borrow_mut().scratch())?;
        let Some(received) = received else { return Ok(false) };
        self.traffic.received[side] += 1;
        self.traffic.bytes[side] += received.len as u64;
        if side == NETWORK && !self.scope.has(store.borrow().read(received.len)) {
            return Ok(true); // the kernel handles it
        }
        let at = self.clock.at(received.at).max(self.net.now());
        self.net.advance(at);
        // without room for it the packet is lost: unread it might bring the host a structure
        self.net.accept(side, received.len, &received.vnet);
        self.settle()?;
        Ok(true)
    }

    /// Notes what has changed, then sends what is due.
    fn settle(&mut self) -> io::Result<()> {
        let (changed, news) = {
            let mut tagger = self.tagger.0.borrow_mut();
            (tagger.take_changed(), tagger.take_changes())
        };
        let is_open = |flow: &bentpipe_tagger::FlowKey| self.tagger.0.borrow().view(flow).is_some();
        let (opened, ended): (Vec<_>, Vec<_>) = changed.into_iter().partition(is_open);
        // first what leaves room in the file
        let keys = |flows: Vec<_>| flows.iter().filter_map(|flow| self.real(flow)).collect::<Vec<_>>();
        let [opened, ended] = [opened, ended].map(keys);
        for key in &ended {
            self.log.ended(key);
        }
        for key in &opened {
            self.log.opened(key, &[Link::default(); 2]);
        }
        for news in news {
            self.tell(&news);
        }
        while let Some(arrival) = self.net.take_arrival() {
            let side = arrival.port;
            let port = self.ports[side].as_mut();
            self.net.emit(&arrival, |emitted, header, payload| {
                let parts = [IoSlice::new(header), IoSlice::new(payload), IoSlice::new(emitted.tail())];
                let count = if emitted.tail().is_empty() { 2 } else { 3 };
                // the first part must contain the headers
                send(port, &emitted.vnet, &parts[usize::from(header.is_empty())..count])
            })?;
            self.traffic.sent[side] += 1;
            self.net.done(arrival);
        }
        Ok(())
    }

    /// The ends of a flow.
    fn real(&self, flow: &bentpipe_tagger::FlowKey) -> Option<FlowKey> {
        let addresses = &self.net.network.world.addresses;
        let end = |(address, port)| Some(SocketAddr::new(addresses.address(address)?, port));
        Some(FlowKey { host: end(flow.host)?, remote: end(flow.peer)? })
    }

    /// Gives a connection its rate, or takes it.
    fn tell(&mut self, news: &RateNews) {
        let Some(key) = self.real(&news.flow) else { return };
        let tuple = Tuple { local: key.host, remote: key.remote };
        let Some(rate) = news.rate else { return self.rates.forget(&tuple) };
        let view = self.tagger.0.borrow().view(&news.flow);
        let threshold = view.map_or(0.0, |view| self.threshold(&view, &key));
        let extra = if news.ip == IpVersion::V6 { PLACE } else { 0 };
        let threshold = (threshold * 1000.0).clamp(1.0, 999.0) as u16;
        let grant = Grant { rate, rtt: news.srtt, extra, threshold };
        self.no_room += u64::from(!self.rates.set(&tuple, &grant));
    }

    /// Number of the rule that takes a flow.
    fn rule(&self, view: &FlowView, key: &FlowKey) -> Option<usize> {
        let (from, to) = if view.is_ours { (key.host, key.remote) } else { (key.remote, key.host) };
        self.file.site.policy.rule_for(&SynProperties {
            from: from.ip(),
            to: to.ip(),
            from_port: from.port(),
            port: to.port(),
            dscp: 0,
            side: if view.is_ours { Side::Lan } else { Side::Satellite },
        })
    }

    /// Share of lost packets above which the rate of a flow is not trusted.
    fn threshold(&self, view: &FlowView, key: &FlowKey) -> f64 {
        let ask = self.rule(view, key).and_then(|rule| self.file.asks.get(rule)?.as_ref());
        ask.and_then(|ask| ask.signalling.as_ref()).map_or(0.0, |signalling| signalling.fallback)
    }
}
