//! Rates for datagrams of a host that does not signal: what the node sends to either side, and when.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod rig;

use bentpipe_advice::negotiation::{AskConfig, Terms};
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, RateType, Structure, structures, write};
use bentpipe_base::{
    Body, Duration, Input, Instant, IpVersion, Node, NodeId, Packet, Port, Proto, Rate, Size, Slot, World,
};
use bentpipe_tagger::{DatagramConfig, DatagramRule, DatagramTagger, HOST, NETWORK};
use rig::{host, mbps, name_hosts, take_sent};
use std::collections::BTreeMap;

const NODE: NodeId = NodeId(7);
/// Bytes of the data of a datagram, and with headers.
const DATA: u32 = 972;
const WHOLE: u64 = 1000;

fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

/// Every flow asks for 10 Mbit/s, and what comes is answered with at most 1 Mbit/s.
fn config() -> DatagramConfig {
    let terms = Terms {
        rate_type: RateType::Guaranteed,
        guaranteed: Some(mbps(10)),
        burst_exponent: 3,
        ..Terms::default()
    };
    let ask = AskConfig { ask: Some(mbps(10)), take: Some(mbps(1)), terms, ..AskConfig::default() };
    let (from, to, from_ports, ports) = Default::default();
    DatagramConfig::new(vec![DatagramRule { from, to, from_ports, ports, side: None, ask: Some(ask) }])
}

/// The node beside host 1, which sends to host 2.
struct Lab {
    node: DatagramTagger,
    world: World,
    now: Instant,
    /// What left, when, and to which side.
    left: Vec<(Instant, Port, Packet)>,
}

impl Lab {
    fn new(config: DatagramConfig) -> Self {
        let mut world = World::new(1);
        world.count_holders();
        name_hosts(&mut world);
        Self { node: DatagramTagger::new(config), world, now: Instant::ZERO, left: Vec::new() }
    }

    fn input(&mut self, input: Input) {
        self.node.handle(&mut self.world.cx(self.now, NODE), input);
        self.take();
    }

    fn take(&mut self) {
        let sent = take_sent(&mut self.world);
        self.left.extend(sent.into_iter().map(|(port, packet)| (self.now, port, packet)));
    }

    fn put(&mut self, port: Port, packet: Packet) {
        let mut pkt = self.world.cx(self.now, NODE).packet();
        *pkt = packet;
        self.input(Input::Packet(port, pkt));
    }

    /// The host sends `n` datagrams of a flow.
    fn data(&mut self, port: u16, n: u64) {
        for _ in 0..n {
            self.put(HOST, datagram(port));
        }
    }

    /// A structure arrives for a flow of the host.
    fn tell(&mut self, port: u16, structure: Structure) {
        self.put(NETWORK, turned(with(datagram(port), structure)));
    }

    fn run(&mut self, until: Instant) {
        let mut steps = 0;
        while let Some(wake) = self.world.events.pop_until(until) {
            self.now = self.now.max(wake.at);
            self.input(Input::Timer(Slot(0)));
            steps += 1;
            assert!(steps < 5000, "it spins at {}", self.now);
        }
        self.now = until;
    }

    /// The host's first datagram on a port, whose request is answered after 100 ms.
    fn granted(&mut self, port: u16, rate: Rate) {
        self.data(port, 1);
        let request = self.signalled().pop().unwrap().2;
        self.run(self.now + Duration::from_millis(100));
        self.tell(port, answer(&request, Some(rate)));
    }

    /// The structures that left: when, to which side, and what.
    fn signalled(&self) -> Vec<(Instant, Port, Structure)> {
        let all = self.left.iter().map(|(at, port, packet)| (*at, *port, structures(packet)));
        all.flat_map(|(at, port, all)| all.as_slice().iter().map(|s| (at, port, *s)).collect::<Vec<_>>())
            .collect()
    }

    fn closes(&self) -> Vec<Instant> {
        let all = self.signalled().into_iter();
        all.filter(|(_, port, s)| *port == NETWORK && s.kind() == Some(Kind::Close))
            .map(|(at, ..)| at)
            .collect()
    }

    /// When data left for the network, and whether with the code point of a rate.
    fn sent(&self) -> Vec<(Instant, bool)> {
        let data = self.left.iter().filter(|(_, port, packet)| *port == NETWORK && packet.body.len == DATA);
        data.map(|(at, _, packet)| (*at, packet.dscp == QOS_FLOW)).collect()
    }

    fn count(&self, key: &str) -> u64 {
        let mut all = BTreeMap::new();
        self.node.counters(&mut |key, n| {
            all.insert(key, n);
        });
        all[key]
    }
}

fn datagram(port: u16) -> Packet {
    let (src, dst) = (host(IpVersion::V4, 1), host(IpVersion::V4, 2));
    let mut packet = Packet { proto: Proto::Udp, src, dst, sport: 4000, dport: port, ..Packet::default() };
    packet.body = Body { off: 0, len: DATA };
    packet.seal();
    packet
}

fn with(mut packet: Packet, structure: Structure) -> Packet {
    packet.body.len = 0;
    write(&mut packet, &[structure]);
    packet
}

/// The same in the other direction.
fn turned(mut packet: Packet) -> Packet {
    (packet.src, packet.dst) = (packet.dst, packet.src);
    (packet.sport, packet.dport) = (packet.dport, packet.sport);
    packet
}

/// A request as a program sends it.
fn request() -> Structure {
    let mut request = Structure::request(mbps(5));
    request.set_rate_type(RateType::Guaranteed);
    request.set_guaranteed(Some(mbps(5)));
    request
}

/// What a router makes of a request, and the receiver of that.
fn answer(request: &Structure, rate: Option<Rate>) -> Structure {
    let mut response = *request;
    response.set_kind(Kind::Response);
    response.set_available(None);
    response.set_guaranteed(rate);
    response.set_changed(true);
    response
}

#[test]
fn an_answer_to_what_another_node_asked_is_delivered() {
    let mut lab = Lab::new(config());
    let response = answer(&request(), Some(mbps(2)));
    lab.tell(5004, response);
    assert_eq!(lab.signalled(), [(at(0), HOST, response)]);
    assert_eq!((lab.count("removed"), lab.count("answered")), (0, 0));
    // one to its own request is not
    lab.granted(5004, mbps(10));
    lab.tell(5004, response);
    let to_host = lab.signalled().into_iter().filter(|(_, port, _)| *port == HOST).count();
    assert_eq!((to_host, lab.count("removed"), lab.count("reduced")), (1, 2, 1));
}

#[test]
fn a_program_that_signals_gets_all_that_comes_back() {
    let mut lab = Lab::new(config());
    // the node has asked for it before
    lab.data(5004, 1);
    assert_eq!((lab.signalled().len(), lab.sent().len()), (1, 0));
    for structure in [request(), answer(&request(), Some(mbps(2)))] {
        lab.put(HOST, with(datagram(5004), structure));
        lab.data(5004, 3);
        lab.tell(5004, answer(&request(), Some(mbps(3))));
        lab.tell(5004, request());
        lab.run(lab.now + Duration::from_secs(6));
    }
    let to_host = lab.signalled().into_iter().filter(|(_, port, _)| *port == HOST).count();
    assert_eq!((to_host, lab.count("removed"), lab.count("flows")), (4, 0, 1));
    assert_eq!(lab.sent().len(), 7, "nothing waits");
    assert_eq!(lab.signalled().len(), 1 + 2 + 4, "it asks for nothing");
    // after a silence it is a flow like any other
    lab.run(at(30_000));
    lab.data(5004, 1);
    assert_eq!((lab.count("flows"), lab.sent().len()), (2, 7));
}

#[test]
fn a_program_that_signals_takes_the_place_of_a_flow() {
    let mut lab = Lab::new(DatagramConfig { flows: 2, ..config() });
    lab.put(HOST, with(datagram(1), request()));
    lab.data(2, 1);
    lab.data(3, 1);
    lab.put(HOST, with(datagram(4), request()));
    assert_eq!((lab.count("flows"), lab.count("too_many"), lab.sent().len()), (1, 2, 1));
    // places are free again after the silence
    lab.run(at(20_000));
    lab.data(3, 1);
    assert_eq!((lab.count("flows"), lab.count("too_many")), (2, 2));
}

#[test]
fn what_waits_at_a_reduction_leaves_in_time_or_is_dropped() {
    let mut lab = Lab::new(config());
    lab.granted(5004, mbps(10));
    lab.data(5004, 500);
    lab.run(at(120));
    let request = lab.signalled()[0].2;
    lab.tell(5004, answer(&request, Some(mbps(1))));
    lab.run(at(9_900));
    assert_eq!((lab.count("reduced"), lab.count("dropped") + lab.sent().len() as u64), (1, 501));
    // a second, and half of the burst of 1/16 s
    let latest = lab.sent().last().unwrap().0;
    assert!(latest > at(1000) && latest <= at(100 + 1000 + 32), "{latest}");
    assert!(lab.sent().iter().all(|(_, is_marked)| *is_marked));
    // at 1 Mbit/s for a second, and what had left before with its burst
    assert!((130..230).contains(&lab.sent().len()), "{}", lab.sent().len());
    assert!(lab.closes().is_empty());
    lab.run(at(20_000));
    assert_eq!(lab.closes(), [10_100, 10_300, 10_500].map(at));
    assert_eq!(lab.node.views().count(), 0);
}

#[test]
fn a_request_without_an_answer_is_taken_back_three_times() {
    let mut lab = Lab::new(config());
    lab.data(5004, 3);
    lab.run(at(9000));
    assert_eq!(lab.sent(), [(at(1000), false); 3]);
    assert_eq!((lab.closes(), lab.count("without_a_rate")), ([1000, 1200, 1400].map(at).to_vec(), 1));
    let last = lab.signalled().pop().unwrap();
    assert_eq!((last.0, last.2.guaranteed()), (at(1400), Some(mbps(10))));
}

#[test]
fn a_release_gives_rates_back_three_times_and_sends_what_waits() {
    let mut lab = Lab::new(config());
    lab.granted(1, mbps(10));
    lab.data(1, 100);
    lab.data(2, 5);
    lab.node.release(&mut lab.world.cx(lab.now, NODE));
    lab.take();
    assert_eq!((lab.closes(), lab.sent().len()), (vec![at(100); 6], 106));
    lab.data(3, 1);
    lab.run(at(30_000));
    assert_eq!((lab.closes().len(), lab.sent().len(), lab.count("flows")), (6, 107, 2));
}

#[test]
fn no_further_flow_asks_once_it_was_told_so() {
    let mut lab = Lab::new(config());
    lab.granted(1, mbps(10));
    lab.node.stop_asking();
    lab.data(2, 1);
    lab.data(1, 1);
    lab.run(at(200));
    let sent: Vec<bool> = lab.sent().into_iter().map(|(_, is_marked)| is_marked).collect();
    assert_eq!((sent, lab.count("flows")), (vec![true, false, true], 1));
}

#[test]
fn what_waits_is_bounded_in_all_flows_together() {
    // 10 datagrams with what storing them takes
    let memory = Size(10 * (WHOLE + 1536));
    let mut lab = Lab::new(DatagramConfig { memory, ..config() });
    lab.granted(1, mbps(10));
    lab.run(at(200));
    assert_eq!(lab.sent().len(), 1);
    // without an answer, a flow goes on without a rate
    lab.data(2, 10);
    assert_eq!((lab.sent().len(), lab.count("without_a_rate")), (1, 0));
    // with one, what has no room is dropped
    lab.data(1, 1);
    assert_eq!((lab.sent().len(), lab.count("dropped")), (1, 1));
    lab.data(2, 1);
    assert_eq!((lab.sent().len(), lab.count("without_a_rate")), (12, 1));
    lab.data(1, 5);
    lab.run(at(1000));
    assert_eq!((lab.sent().len(), lab.count("dropped")), (17, 1));
}

#[test]
fn a_request_for_the_host_is_answered_with_what_it_takes() {
    let mut lab = Lab::new(config());
    lab.tell(5004, request());
    let (when, port, response) = lab.signalled().pop().unwrap();
    assert_eq!((when, port, response.kind()), (at(0), NETWORK, Some(Kind::Response)));
    assert_eq!((response.guaranteed(), lab.count("answered"), lab.count("removed")), (Some(mbps(1)), 1, 1));
    let sent = &lab.left[0].2;
    assert_eq!((sent.src, sent.sport, sent.dport), (host(IpVersion::V4, 1), 4000, 5004));
    // a rate that is given back needs no answer
    let mut close = request();
    close.set_kind(Kind::Close);
    lab.tell(5004, close);
    assert_eq!((lab.left.len(), lab.count("removed")), (1, 2));
}
