//! Two hosts, two sites between them with a flow router for each direction, and three hops with constant
//! delay. A weather decides what becomes of each packet on each hop.

use super::end::{Flow, PORT, chance, host_of};
use super::watch::Watch;
use bentpipe_advice::tia1039::{Kind, structures};
use bentpipe_base::{Duration, Flags, Input, Instant, Node, NodeId, Packet, Pkt, Rate, Size, Slot, World};
use bentpipe_flow_router::{FlowRouter, MANAGED, RouterConfig, SENDERS};
use bentpipe_tcp::{Connection, Offer, State, Tuple, reset_for};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Hops from host to host.
pub(crate) const HOPS: usize = 3;
/// Sites with flow routers.
pub(crate) const SITES: usize = HOPS - 1;
const DELAYS: [Duration; HOPS] =
    [Duration::from_millis(10), Duration::from_millis(20), Duration::from_millis(20)];
/// Round trip between the hosts.
pub(crate) const RTT: Duration = Duration::from_millis(100);
/// A late packet without a successor arrives after this time.
const LATEST: Duration = Duration::from_secs(3);
/// Most packets of one run.
const MOST_PACKETS: u64 = 20_000_000;
const HOST: NodeId = NodeId(0);

/// From the opener to the other end, and back.
pub(crate) const THERE: usize = 0;
/// The other way.
pub(crate) const BACK: usize = 1;

/// What becomes of a packet on a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Lose,
    Double,
    /// It arrives after its successor.
    Delay,
}

/// A packet that enters a hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering {
    pub(crate) hop: usize,
    pub(crate) way: usize,
    /// Its number on this hop and way.
    pub(crate) nth: u16,
    /// Its number among the packets of the first flow that signal: SYNs, and structures that say something.
    pub(crate) signal: Option<u16>,
}

/// Decides what becomes of a packet.
pub(crate) type Weather<'w> = dyn FnMut(Entering) -> Fate + 'w;

#[derive(Debug)]
enum What {
    Arrival {
        hop: usize,
        way: usize,
        packet: Pkt,
    },
    /// Late packets of a hop and way wait no longer for a successor.
    Latest {
        hop: usize,
        way: usize,
    },
    Timer {
        flow: usize,
        side: usize,
    },
    Start {
        flow: usize,
    },
}

/// What happens next, by time and order.
#[derive(Debug)]
struct Due {
    key: Reverse<(Instant, u64)>,
    what: What,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A hop with a rate and a queue; the others have neither.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    pub(crate) hop: usize,
    pub(crate) way: usize,
    pub(crate) rate: Rate,
    /// Longest wait.
    pub(crate) longest: Duration,
    pub(crate) free_at: Instant,
    pub(crate) dropped: u64,
}

/// The network and all flows through it. Flow n has port `PORT` + n at host A, where side 0 is.
pub(crate) struct Net<'w> {
    pub(crate) world: World,
    pub(crate) now: Instant,
    number: u64,
    due: BinaryHeap<Due>,
    late: [[VecDeque<Pkt>; 2]; HOPS],
    /// By site and way.
    pub(crate) routers: [[FlowRouter; 2]; SITES],
    pub(crate) flows: Vec<Flow>,
    weather: Box<Weather<'w>>,
    /// Changes what a host sends.
    pub(crate) forge: Option<fn(usize, &mut Packet)>,
    pub(crate) bottleneck: Option<Bottleneck>,
    /// Packets per hop and way, of all flows and those of the first flow that signal.
    entered: [[u16; 2]; HOPS],
    pub(crate) signalled: [[u16; 2]; HOPS],
    pub(crate) watch: Watch,
    pub(crate) trace: bool,
}

/// Kinds and rates of the structures of a packet.
fn said(packet: &Packet) -> Vec<(Option<Kind>, Option<Rate>)> {
    structures(packet).as_slice().iter().map(|s| (s.kind(), s.available())).collect()
}

/// True for a packet that signals something.
fn signals(packet: &Packet) -> bool {
    let speaks = || structures(packet).as_slice().iter().any(|s| s.kind() != Some(Kind::Forward));
    packet.tcp.flags.has(Flags::SYN) || packet.signal.is_some() && speaks()
}

impl<'w> Net<'w> {
    /// A network whose sites have these configurations, in both directions.
    pub(crate) fn new(
        sites: &[RouterConfig; SITES],
        flows: Vec<Flow>,
        weather: impl FnMut(Entering) -> Fate + 'w,
    ) -> Self {
        let router = |site: usize| FlowRouter::new(sites[site].clone());
        let mut net = Self {
            world: World::new(1),
            now: Instant::ZERO,
            number: 0,
            due: BinaryHeap::new(),
            late: Default::default(),
            routers: [0, 1].map(|site| [router(site), router(site)]),
            flows,
            weather: Box::new(weather),
            forge: None,
            bottleneck: None,
            entered: Default::default(),
            signalled: Default::default(),
            watch: Watch::new(sites),
            trace: false,
        };
        net.start_flows();
        net
    }

    /// Starts the flows whose time has come: they wait for a number of bytes that the first flow has brought.
    fn start_flows(&mut self) {
        let brought = self.flows.first().map_or(0, |flow| flow.ends[1].content.read);
        for flow in 0..self.flows.len() {
            if self.flows[flow].start_after.is_some_and(|bytes| bytes <= brought) {
                self.flows[flow].start_after = None;
                self.push(self.now, What::Start { flow });
            }
        }
    }

    fn push(&mut self, at: Instant, what: What) {
        self.number += 1;
        assert!(self.number < MOST_PACKETS, "it never ends");
        self.due.push(Due { key: Reverse((at, self.number)), what });
    }

    /// Runs until `end`, or until a check fails.
    pub(crate) fn run(&mut self, end: Instant) {
        while self.watch.broken.is_none()
            && let Some(due) = self.due.peek()
            && due.key.0.0 <= end
        {
            let Some(Due { key, what }) = self.due.pop() else { break };
            self.wake_routers(key.0.0);
            self.now = key.0.0;
            self.happen(what);
            self.watch.look(self.now, &self.routers, &self.flows);
        }
        self.wake_routers(end);
        self.now = end;
    }

    /// True once nothing more happens at the ends.
    pub(crate) fn is_over(&self) -> bool {
        self.flows.iter().flat_map(|flow| &flow.ends).all(|end| end.ended_at.is_some())
    }

    fn wake_routers(&mut self, until: Instant) {
        while let Some(wake) = self.world.events.pop_until(until) {
            let number = wake.node.0 as usize - 1;
            let router = &mut self.routers[number / 2][number % 2];
            router.handle(&mut self.world.cx(wake.at, wake.node), Input::Timer(Slot(0)));
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Arrival { hop, way, packet } => self.arrive(hop, way, packet),
            What::Latest { hop, way } => self.release(hop, way),
            What::Timer { flow, side } => {
                let end = &mut self.flows[flow].ends[side];
                end.wake_at = Instant::NEVER;
                if let Some(conn) = &mut end.conn {
                    conn.timer(&mut self.world.cx(self.now, HOST));
                }
                self.pump(flow, side);
            }
            What::Start { flow } => {
                self.open(flow, 0);
                if self.flows[flow].opens_at_once {
                    self.open(flow, 1);
                }
            }
        }
    }

    fn open(&mut self, flow: usize, side: usize) {
        let cx = self.world.cx(self.now, HOST);
        let [zero, one] = [(host_of(0), PORT + flow as u16), (host_of(1), PORT)];
        let (local, remote) = if side == 0 { (zero, one) } else { (one, zero) };
        let end = &mut self.flows[flow].ends[side];
        let tuple = Tuple { local, remote };
        end.conn = Some(Connection::connect(&cx, tuple, Arc::clone(&end.config), chance(end.isn)));
        self.pump(flow, side);
    }

    /// Lets an end send what it may.
    fn pump(&mut self, flow: usize, side: usize) {
        loop {
            let (near, far) = self.flows[flow].sides(side);
            near.apply(self.now, far);
            let Some(conn) = &mut near.conn else { return };
            let Some(mut packet) = conn.transmit(&mut self.world.cx(self.now, HOST)) else { break };
            if let Some(forge) = self.forge {
                forge(side, &mut packet);
            }
            self.depart(side * (HOPS - 1), side, packet);
        }
        let end = &mut self.flows[flow].ends[side];
        let at = end.conn.as_ref().map_or(Instant::NEVER, Connection::deadline);
        if at < end.wake_at {
            end.wake_at = at;
            self.push(at, What::Timer { flow, side });
        }
    }

    /// A packet enters a hop.
    pub(crate) fn depart(&mut self, hop: usize, way: usize, packet: Pkt) {
        let first = if way == THERE { packet.sport } else { packet.dport } == PORT;
        let signal = (first && signals(&packet)).then_some(self.signalled[hop][way]);
        let entering = Entering { hop, way, nth: self.entered[hop][way], signal };
        let fate = (self.weather)(entering);
        self.entered[hop][way] = self.entered[hop][way].saturating_add(1);
        self.signalled[hop][way] += u16::from(signal.is_some());
        if self.trace && (signal.is_some() || fate != Fate::Pass) {
            println!("{} {entering:?} {fate:?} {:?} {:?}", self.now, packet.tcp.flags, said(&packet));
        }
        if fate != Fate::Pass {
            self.watch.last_fault = self.now;
        }
        match fate {
            Fate::Lose => {}
            Fate::Delay => {
                self.late[hop][way].push_back(packet);
                self.push(self.now + LATEST, What::Latest { hop, way });
            }
            Fate::Pass | Fate::Double => {
                if fate == Fate::Double {
                    self.fly(hop, way, packet.clone());
                }
                self.fly(hop, way, packet);
                self.release(hop, way);
            }
        }
    }

    /// Late packets follow.
    fn release(&mut self, hop: usize, way: usize) {
        while let Some(packet) = self.late[hop][way].pop_front() {
            self.watch.last_fault = self.now;
            self.fly(hop, way, packet);
        }
    }

    fn fly(&mut self, hop: usize, way: usize, packet: Pkt) {
        let mut at = self.now;
        if let Some(neck) = self.bottleneck.as_mut().filter(|neck| (neck.hop, neck.way) == (hop, way)) {
            let begin = neck.free_at.max(self.now);
            if begin > self.now + neck.longest {
                neck.dropped += 1;
                return;
            }
            neck.free_at = begin + neck.rate.time_for(Size(packet.wire_len().0));
            at = neck.free_at;
        }
        self.push(at + DELAYS[hop], What::Arrival { hop, way, packet });
    }

    fn arrive(&mut self, hop: usize, way: usize, packet: Pkt) {
        let (site, next) =
            if way == THERE { (hop, hop + 1) } else { (hop.wrapping_sub(1), hop.wrapping_sub(1)) };
        if site < SITES {
            if let Some(packet) = self.cross(site, way, packet) {
                self.depart(next, way, packet);
            }
        } else {
            self.reach(1 - way, packet);
        }
    }

    /// A packet crosses a site: through the router of its own way, and past that of the other.
    pub(crate) fn cross(&mut self, site: usize, way: usize, mut packet: Pkt) -> Option<Pkt> {
        let flow = if way == THERE { packet.sport } else { packet.dport };
        if let Some(flow) = self.flows.get_mut(usize::from(flow.wrapping_sub(PORT))) {
            flow.passed[site][way].note(self.now, &packet);
        }
        for (of, port) in [(way, SENDERS), (1 - way, MANAGED)] {
            let node = NodeId((1 + 2 * site + of) as u32);
            self.routers[site][of].handle(&mut self.world.cx(self.now, node), Input::Packet(port, packet));
            packet = self.world.outbox.pop_front()?.2;
        }
        Some(packet)
    }

    /// A packet reaches a host.
    fn reach(&mut self, side: usize, packet: Pkt) {
        let port = if side == 0 { packet.dport } else { packet.sport };
        let flow = usize::from(port.wrapping_sub(PORT));
        if flow >= self.flows.len() {
            return;
        }
        let mut cx = self.world.cx(self.now, HOST);
        let (near, far) = self.flows[flow].sides(side);
        match &mut near.conn {
            Some(conn) if conn.state() == State::Closed => {
                if let Some(reset) = reset_for(&mut cx, &packet) {
                    self.depart(side * (HOPS - 1), side, reset);
                }
            }
            Some(conn) => {
                near.content.store(far, &packet);
                conn.segment(&mut cx, &packet);
            }
            None => {
                let Some(offer) = Offer::new(&packet, Arc::clone(&near.config)) else { return };
                near.conn = Some(offer.complete(&mut cx, chance(near.isn)));
            }
        }
        cx = self.world.cx(self.now, HOST);
        cx.recycle(packet);
        self.pump(flow, side);
        if flow == 0 {
            self.start_flows();
        }
    }
}
