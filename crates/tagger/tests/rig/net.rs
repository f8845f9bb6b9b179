//! Two hosts whose TCP does not signal, each behind a tagger or not, and a flow router before the link.

use crate::rig::{SERVICE, asking, config, host, name_hosts};
use bentpipe_advice::negotiation::AskConfig;
use bentpipe_base::{
    Dscp, Duration, Flags, Input, Instant, IpVersion, Node, NodeId, Packet, Pkt, Rate, Seq, Slot, World,
};
use bentpipe_flow_router::{FlowRouter, MANAGED, RouterConfig, SENDERS};
use bentpipe_tagger::{FlowKey, HOST, NETWORK, RateNews, Tagger};
use bentpipe_tcp::{Config, Connection, Offer, RandomValues, Tuple};
use std::collections::VecDeque;
use std::sync::Arc;

/// Time from one tagger to the other.
pub(crate) const DELAY: Duration = Duration::from_millis(20);
/// Packets that wait for the link at most.
const QUEUE: u64 = 100;

/// Nodes by number: the taggers, then the router of side 0.
const ROUTER: usize = 2;

/// What the network does to a packet that a side sends: false drops it.
type Path<'p> = dyn FnMut(Instant, usize, &mut Packet) -> bool + 'p;

pub(crate) struct Net<'p> {
    world: World,
    pub(crate) now: Instant,
    ip: IpVersion,
    pub(crate) taggers: [Option<Tagger>; 2],
    pub(crate) router: FlowRouter,
    ends: [Option<Connection>; 2],
    flying: [VecDeque<(Instant, Pkt)>; 2],
    rate: Rate,
    busy_until: [Instant; 2],
    path: Box<Path<'p>>,
    /// First sequence number of each side's peer.
    isn: [Option<Seq>; 2],
    pub(crate) news: [Vec<RateNews>; 2],
    pub(crate) backlog: u64,
}

fn chance(side: usize) -> RandomValues {
    RandomValues { isn: [Seq(u32::MAX - 50_000), Seq(99)][side], timestamp: 7, jitter: None }
}

fn kernel(ip: IpVersion) -> Arc<Config> {
    let mss = if ip == IpVersion::V4 { 1460 } else { 1440 };
    Arc::new(Config { ip, mss, ..Config::linux() })
}

impl<'p> Net<'p> {
    /// Both directions of the link have `rate`; side 0 opens, and asks unless `ask` says otherwise.
    pub(crate) fn new(
        ip: IpVersion,
        rate: Rate,
        tagged: [bool; 2],
        path: impl FnMut(Instant, usize, &mut Packet) -> bool + 'p,
    ) -> Self {
        let mut world = World::new(1);
        name_hosts(&mut world);
        let tuple = Tuple { local: (host(ip, 1), 4000), remote: (host(ip, 2), SERVICE) };
        let conn = Connection::connect(&world.cx(Instant::ZERO, NodeId(0)), tuple, kernel(ip), chance(0));
        let asks = [asking(), AskConfig::default()];
        let mut tagger = asks.map(|ask| Some(Tagger::new(config(&ask))));
        for (tagger, tagged) in tagger.iter_mut().zip(tagged) {
            *tagger = tagger.take().filter(|_| tagged);
        }
        Self {
            world,
            now: Instant::ZERO,
            ip,
            taggers: tagger,
            router: FlowRouter::new(RouterConfig::new(rate)),
            ends: [Some(conn), None],
            flying: Default::default(),
            rate,
            busy_until: [Instant::ZERO; 2],
            path: Box::new(path),
            isn: [None; 2],
            news: Default::default(),
            backlog: 0,
        }
    }

    pub(crate) fn with<T>(&mut self, side: usize, act: impl FnOnce(&mut Connection) -> T) -> T {
        act(self.ends[side].as_mut().expect("it was opened"))
    }

    pub(crate) fn is_open(&self, side: usize) -> bool {
        self.ends[side].is_some()
    }

    pub(crate) fn key(&self, side: usize) -> FlowKey {
        let ends = [(host(self.ip, 1), 4000), (host(self.ip, 2), SERVICE)];
        FlowKey { host: ends[side], peer: ends[1 - side] }
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.router.set_rate(&mut self.world.cx(self.now, NodeId(ROUTER as u32)), rate);
        self.rate = rate;
    }

    /// Sets what the link has, and not what the router knows of it.
    pub(crate) fn link_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// The peer has no connection any more.
    pub(crate) fn forget_peer(&mut self) {
        (self.ends[1], self.isn[1]) = (None, None);
    }

    /// Hands an input to a node, and what it sends to the next.
    fn handle(&mut self, node: usize, input: Input) {
        let mut cx = self.world.cx(self.now, NodeId(node as u32));
        match (node, input) {
            (ROUTER, input) => self.router.handle(&mut cx, input),
            (side, Input::Packet(port, packet)) => match &mut self.taggers[side] {
                Some(tagger) => tagger.handle(&mut cx, Input::Packet(port, packet)),
                None => cx.send(if port == HOST { NETWORK } else { HOST }, packet),
            },
            (side, input) => self.taggers[side].as_mut().expect("it has set a timer").handle(&mut cx, input),
        }
        if let Some(tagger) = self.taggers.get_mut(node).and_then(Option::as_mut) {
            self.news[node].extend(tagger.take_changes());
        }
        while let Some((from, port, packet)) = self.world.outbox.pop_front() {
            match (from.0 as usize, port) {
                (0, NETWORK) => self.handle(ROUTER, Input::Packet(SENDERS, packet)),
                (ROUTER, SENDERS) => self.handle(0, Input::Packet(NETWORK, packet)),
                (ROUTER, MANAGED) => self.fly(0, packet),
                (1, NETWORK) => self.fly(1, packet),
                (side, _) => self.arrive(side, &packet),
            }
        }
    }

    /// Sends a packet over the link, unless the path or a full queue drops it.
    fn fly(&mut self, side: usize, mut packet: Pkt) {
        let time = self.rate.time_for(packet.wire_len());
        let start = self.busy_until[side].max(self.now);
        if !(self.path)(self.now, side, &mut packet) || start.since(self.now) > time * QUEUE {
            return;
        }
        self.busy_until[side] = start + time;
        self.flying[side].push_back((start + time + DELAY, packet));
    }

    /// A packet reaches a host: it must be one that the other host has sent.
    fn arrive(&mut self, side: usize, packet: &Packet) {
        assert_eq!((&packet.signal, packet.dscp), (&None, Dscp::DEFAULT), "the host knows no structures");
        if packet.tcp.flags.has(Flags::SYN) {
            self.isn[side] = Some(packet.tcp.seq);
        }
        let expected = self.isn[side].map(|isn| isn.at(1 + packet.body.off));
        assert!(packet.body.len == 0 || Some(packet.tcp.seq) == expected, "the bytes are displaced");
        let cx = &mut self.world.cx(self.now, NodeId(0));
        if let Some(end) = &mut self.ends[side] {
            end.segment(cx, packet);
        } else if let Some(offer) = Offer::new(packet, kernel(self.ip)) {
            let mut end = offer.complete(cx, chance(1));
            end.write(self.backlog);
            self.ends[side] = Some(end);
        }
    }

    /// Lets both hosts send.
    fn pump(&mut self) {
        for side in 0..2 {
            loop {
                let mut cx = self.world.cx(self.now, NodeId(0));
                let Some(end) = self.ends[side].as_mut() else { break };
                end.consume(cx.now, end.readable());
                let Some(packet) = end.transmit(&mut cx) else { break };
                self.handle(side, Input::Packet(HOST, packet));
            }
        }
    }

    /// Runs until `end`.
    pub(crate) fn run(&mut self, end: Instant) {
        self.pump();
        loop {
            let arrivals = self.flying.iter().filter_map(|f| f.front().map(|p| p.0));
            let timers = self.ends.iter().flatten().map(Connection::deadline);
            let next = arrivals.chain(timers).chain(self.world.events.next_at()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(wake) = self.world.events.pop_until(self.now) {
                self.handle(wake.node.0 as usize, Input::Timer(Slot(0)));
            }
            for side in 0..2 {
                if self.flying[side].front().is_some_and(|p| p.0 <= self.now)
                    && let Some((_, packet)) = self.flying[side].pop_front()
                {
                    let (node, port) = [(1, NETWORK), (ROUTER, MANAGED)][side];
                    self.handle(node, Input::Packet(port, packet));
                }
                if let Some(end) = self.ends[side].as_mut().filter(|end| end.deadline() <= self.now) {
                    end.timer(&mut self.world.cx(self.now, NodeId(0)));
                }
            }
            self.pump();
        }
        self.now = end;
    }
}
