//! Two agents with a flow router between them: the datagrams of programs are exact, and flows have the rates
//! that they are granted.

#![allow(clippy::unwrap_used, reason = "a test")]

use bentpipe_advice::tia1039::QOS_FLOW;
use bentpipe_agent::path::{DatagramStatus, Datagrams};
use bentpipe_agent::split::{HOST, NETWORK};
use bentpipe_base::{Duration, Instant, NodeId, Prefix, Rate, Size};
use bentpipe_driver::{LiveNetwork, Unit};
use bentpipe_flow_router::{ClassConfig, FlowRouter, Policy, RouterConfig, Rule};
use bentpipe_scenario::Source;
use bentpipe_scenario::agent_file::load;
use bentpipe_wire::offload::{VnetHeader, write_word};
use bentpipe_wire::{AddressPair, Network, Sum, UDP, pseudo_header};
use std::collections::BTreeMap;

const MBPS: u64 = 1_000_000;
/// One way between two neighbours.
const DELAY: Duration = Duration::from_millis(10);
/// The places of the path, in order; hosts are before the first and behind the last.
const ROUTER: usize = 1;
const PORT: u16 = 5004;
const STRUCTURE: usize = 16;

fn ends(v6: bool) -> AddressPair {
    if v6 {
        AddressPair::V6 { src: 1u128.into(), dst: 2u128.into() }
    } else {
        AddressPair::V4 { src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into() }
    }
}

/// A datagram of a program, as its host sends it.
fn udp(ends: AddressPair, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut bytes = Vec::new();
    match ends {
        AddressPair::V4 { src, dst } => {
            bytes.extend([0x45, 0, 0, 0, 0, 7, 0, 0, 64, UDP, 0, 0]);
            bytes.extend(src.octets().into_iter().chain(dst.octets()));
            write_word(&mut bytes, 2, 20 + len);
            let sum = Sum::of(&bytes).finish();
            write_word(&mut bytes, 10, sum);
        }
        AddressPair::V6 { src, dst } => {
            bytes.extend([0x60, 0, 0, 0, 0, 0, UDP, 64]);
            bytes.extend(src.octets().into_iter().chain(dst.octets()));
            write_word(&mut bytes, 4, len);
        }
    }
    let at = bytes.len();
    for word in [ports.0, ports.1, len, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    let sum = pseudo_header(&ends, UDP, usize::from(len)).bytes(&bytes[at..]).finish();
    write_word(&mut bytes, at + 6, sum);
    bytes
}

fn agent(rules: &str) -> Datagrams {
    let text = format!("schema = 1\n[deploy]\nkind = \"inline\"\nhost = \"h\"\nnetwork = \"n\"\n{rules}");
    let file = load(&Source::new("agent.toml", text)).unwrap_or_else(|error| panic!("{error}"));
    Datagrams::new(file.datagrams.as_ref().unwrap(), Unit::Packet)
}

/// A rule of both agents for one port.
fn rule(v6: bool, port: u16, ask: &str) -> String {
    let to = ends(v6).addresses().1;
    format!("[[rules]]\nprotocol = \"udp\"\nto = \"{to}\"\nport = {port}\nask = {ask}\n")
}

/// A router of 10 Mbit/s that may reserve 8.
fn router() -> LiveNetwork {
    let rate = Rate::from_bps(10 * MBPS).unwrap();
    let any = |bytes: core::net::IpAddr| {
        let from = Prefix::new(bytes, 0).unwrap();
        Rule { guaranteed: Some(rate), preemption: 63, delay: 63, ..Rule::new(from) }
    };
    let rules = vec![any([0; 4].into()), any([0; 16].into())];
    let config = RouterConfig {
        utilisation: 1.0,
        classes: vec![ClassConfig { reservable: 0.8, ..ClassConfig::default() }],
        policy: Policy { rules },
        is_live: true,
        ..RouterConfig::new(rate)
    };
    let node = Box::new(FlowRouter::new(config));
    LiveNetwork::chain(|network| vec![network.add(node)], 1, Unit::Packet, Size(16 << 20))
}

/// A place of the path.
enum Place {
    Agent(Box<Datagrams>),
    Router(Box<LiveNetwork>),
    Wire,
}

struct Lab {
    now: Instant,
    places: [Place; 3],
    /// Units on their way: when, in which order, to which place, from which side.
    under_way: BTreeMap<(Instant, u64), (usize, usize, Vec<u8>)>,
    sent: u64,
    /// Whole datagrams of the receiving program, and when they came.
    heard: Vec<(Instant, Vec<u8>)>,
    /// Datagrams that the receiving host or the sending one has discarded, as their checksums demand.
    discarded: u64,
    /// Datagrams at the receiving host with DSCP 7.
    marked: u64,
    /// Structures that have left an agent or the router so far, and which of them is lost.
    structures: u64,
    lost: Option<u64>,
}

impl Lab {
    fn new(places: [Place; 3]) -> Self {
        Self {
            now: Instant::ZERO,
            places,
            under_way: BTreeMap::new(),
            sent: 0,
            heard: Vec::new(),
            discarded: 0,
            marked: 0,
            structures: 0,
            lost: None,
        }
    }

    fn with_agents(rules: &str) -> Self {
        let agent = || Place::Agent(Box::new(agent(rules)));
        Self::new([agent(), Place::Router(Box::new(router())), agent()])
    }

    fn put(&mut self, after: Duration, place: usize, side: usize, bytes: Vec<u8>) {
        self.sent += 1;
        self.under_way.insert((self.now + after, self.sent), (place, side, bytes));
    }

    /// What leaves a place towards `side`.
    fn leave(&mut self, place: usize, side: usize, bytes: Vec<u8>) {
        let network = Network::of(&bytes).unwrap();
        let is_structure =
            network.end - network.transport - 8 == if bytes[0] >> 4 == 4 { STRUCTURE } else { 0 };
        if network.traffic_class >> 2 == 3 && is_structure {
            self.structures += 1;
            if Some(self.structures) == self.lost {
                return;
            }
        }
        match (place, side) {
            (0, HOST) | (2, NETWORK) => self.arrive(&network, &bytes, place == 2),
            (_, HOST) => self.put(DELAY, place - 1, NETWORK, bytes),
            _ => self.put(DELAY, place + 1, HOST, bytes),
        }
    }

    /// A host discards what has a wrong checksum.
    fn arrive(&mut self, network: &Network, bytes: &[u8], is_receiver: bool) {
        assert_eq!(network.end, bytes.len());
        let udp = &bytes[network.transport..];
        if pseudo_header(&network.ends, UDP, udp.len()).bytes(udp).fold() != 0xffff {
            self.discarded += 1;
            return;
        }
        assert!(is_receiver, "the sending program gets nothing");
        self.marked += u64::from(network.traffic_class >> 2 == QOS_FLOW.get());
        self.heard.push((self.now, udp[8..].to_vec()));
    }

    /// A unit arrives at a place. The first agent is turned towards its host on the side `HOST`, the last one
    /// on the side `NETWORK` of the path.
    fn accept(&mut self, place: usize, side: usize, bytes: Vec<u8>) {
        let now = self.now;
        match &mut self.places[place] {
            Place::Wire => self.leave(place, 1 - side, bytes),
            Place::Agent(agent) => {
                let own = if place == 2 { 1 - side } else { side };
                let ip_is_ours = agent.has(own, &bytes);
                if !ip_is_ours || !agent.accept(now, own, &bytes, &VnetHeader::default()) {
                    self.leave(place, 1 - side, bytes);
                }
            }
            Place::Router(net) => {
                net.advance(now);
                net.store.borrow_mut().write(&bytes);
                assert!(net.accept(side, bytes.len(), &VnetHeader::default()));
            }
        }
    }

    /// Sends what is due at all places; returns when something is due next.
    fn settle(&mut self) -> Instant {
        let (now, mut left) = (self.now, Vec::new());
        let mut next = Instant::NEVER;
        for (i, place) in self.places.iter_mut().enumerate() {
            match place {
                Place::Wire => {}
                Place::Agent(agent) => {
                    let sent = agent.run::<()>(now, |side, vnet, parts| {
                        assert_eq!(*vnet, VnetHeader::default());
                        let side = if i == 2 { 1 - side } else { side };
                        left.push((i, side, parts.iter().flat_map(|part| part.to_vec()).collect()));
                        Ok(())
                    });
                    assert_eq!(sent, Ok(()));
                    next = next.min(agent.next_at());
                }
                Place::Router(net) => {
                    net.advance(now);
                    while let Some(arrival) = net.take_arrival() {
                        let bytes =
                            net.emit(&arrival, |part, header, rest| [header, rest, part.tail()].concat());
                        left.push((i, arrival.port, bytes));
                        net.done(arrival);
                    }
                    next = next.min(net.network.next_at().unwrap_or(Instant::NEVER));
                }
            }
        }
        for (place, side, bytes) in left {
            self.leave(place, side, bytes);
        }
        next.min(self.under_way.keys().next().map_or(Instant::NEVER, |(at, _)| *at))
    }

    fn run(&mut self, until: Instant) {
        loop {
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= self.now
            {
                let (place, side, bytes) = entry.remove();
                self.accept(place, side, bytes);
            }
            let next = self.settle();
            if next > self.now {
                if next > until {
                    break;
                }
                self.now = next;
            }
        }
        self.now = until;
    }

    /// A program sends `n` datagrams of `len` bytes, one in `every`; returns what it has sent.
    fn program(&mut self, v6: bool, port: u16, n: u32, len: usize, every: Duration) -> Vec<Vec<u8>> {
        let payload = |i: u32| i.to_be_bytes().into_iter().cycle().take(len).collect::<Vec<u8>>();
        let all: Vec<Vec<u8>> = (0..n).map(|i| payload(i + u32::from(port) * 1000)).collect();
        for (i, payload) in (0u64..).zip(&all) {
            self.put(every * i, 0, HOST, udp(ends(v6), (4000, port), payload));
        }
        all
    }

    fn heard(&self) -> Vec<&[u8]> {
        self.heard.iter().map(|(_, bytes)| &bytes[..]).collect()
    }

    fn status(&self, place: usize) -> DatagramStatus {
        match &self.places[place] {
            Place::Agent(agent) => agent.status(10),
            _ => panic!("no agent"),
        }
    }

    /// A counter of an agent or the router.
    fn count(&self, place: usize, key: &str) -> u64 {
        let mut all = BTreeMap::new();
        match &self.places[place] {
            Place::Router(net) => {
                all.extend(net.network.counters(NodeId(0)).into_iter().map(|(key, n)| (key.to_owned(), n)));
            }
            _ => all.extend(self.status(place).counters),
        }
        all[key]
    }
}

const ASK: &str = "{ guaranteed = \"2 Mbit/s\" }";
const EVERY: Duration = Duration::from_millis(10);

fn slices(all: &[Vec<u8>]) -> Vec<&[u8]> {
    all.iter().map(|one| &one[..]).collect()
}

fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

#[test]
fn a_flow_gets_its_rate_and_the_programs_see_nothing_of_it() {
    for v6 in [false, true] {
        let mut lab = Lab::with_agents(&rule(v6, PORT, ASK));
        let sent = lab.program(v6, PORT, 100, 1000, EVERY);
        lab.run(at(3000));
        assert_eq!(lab.heard(), sent, "in bytes, number and order");
        assert_eq!((lab.discarded, lab.marked), (0, 100));
        // the first waited for the answer, a round trip
        assert_eq!(lab.heard[0].0, at(20 + 40));
        let flow = lab.status(0).flows.remove(0);
        assert_eq!((flow.rate.as_str(), flow.asked_bps), ("granted", Some(2 * MBPS)));
        assert!(flow.granted_bps.is_some_and(|bps| (1_990_000..=2 * MBPS).contains(&bps)));
        assert_eq!(
            (lab.count(2, "answered"), lab.count(ROUTER, "reserved_bps")),
            (1, flow.granted_bps.unwrap())
        );
        // silent for long enough, it gives the rate back, and asks again
        lab.run(at(15_000));
        assert_eq!((lab.count(ROUTER, "reserved_bps"), lab.status(0).flows.len()), (0, 0));
        let more = lab.program(v6, PORT, 3, 500, EVERY);
        lab.run(at(16_000));
        assert_eq!(lab.heard()[100..], more);
        assert!(lab.count(ROUTER, "reserved_bps") > 0);
    }
}

#[test]
fn a_host_without_an_agent_gets_the_datagrams_of_the_program_alone() {
    for v6 in [false, true] {
        for has_router in [false, true] {
            let mut lab = Lab::with_agents(&rule(v6, PORT, ASK));
            lab.places[2] = Place::Wire;
            if !has_router {
                lab.places[ROUTER] = Place::Wire;
            }
            let sent = lab.program(v6, PORT, 200, 700, EVERY);
            lab.run(at(8000));
            assert_eq!((lab.heard(), lab.marked), (slices(&sent), 0));
            // the requests, and what takes them back
            assert_eq!((lab.discarded, lab.count(0, "without_a_rate")), (9, 1));
            assert_eq!(lab.heard[0].0, at(1020), "no longer than `datagram_wait`");
            if has_router {
                assert_eq!(lab.count(ROUTER, "reserved_bps"), 0);
            }
        }
    }
    // nobody on the path gives rates: the answer comes back as it was
    let mut lab = Lab::with_agents(&rule(false, PORT, ASK));
    lab.places[ROUTER] = Place::Wire;
    let sent = lab.program(false, PORT, 50, 700, EVERY);
    lab.run(at(3000));
    assert_eq!(
        (lab.heard(), lab.discarded, lab.status(0).flows[0].rate.as_str()),
        (slices(&sent), 0, "plain")
    );
}

#[test]
fn the_datagrams_are_exact_whichever_structure_is_lost() {
    let rules = [
        rule(false, PORT, "{ guaranteed = \"5 Mbit/s\", preemption = 1 }"),
        rule(false, PORT + 1, "{ guaranteed = \"5 Mbit/s\", preemption = 9 }"),
    ]
    .concat();
    for lost in 0..24 {
        let mut lab = Lab::with_agents(&rules);
        lab.lost = Some(lost);
        let first = lab.program(false, PORT, 150, 1000, EVERY);
        lab.run(at(500));
        let second = lab.program(false, PORT + 1, 100, 900, EVERY);
        lab.run(at(4000));
        let of = |len| lab.heard().into_iter().filter(|p| p.len() == len).collect::<Vec<_>>();
        assert_eq!((of(1000), of(900), lab.discarded), (slices(&first), slices(&second), 0), "{lost}");
        let flows = lab.status(0).flows;
        let words: Vec<&str> = flows.iter().map(|flow| flow.rate.as_str()).collect();
        assert_eq!((words, lab.count(0, "withdrawn")), (vec!["refused", "granted"], 1), "{lost}");
        assert_eq!(lab.count(ROUTER, "preempted"), 1);
    }
}

#[test]
fn a_refused_flow_goes_on_without_a_rate() {
    for v6 in [false, true] {
        let mut lab = Lab::with_agents(&rule(v6, PORT, "{ guaranteed = \"9 Mbit/s\" }"));
        let sent = lab.program(v6, PORT, 50, 1000, EVERY);
        lab.run(at(2000));
        assert_eq!((lab.heard(), lab.marked, lab.discarded), (slices(&sent), 0, 0));
        assert_eq!((lab.count(0, "refused"), lab.status(0).flows[0].rate.as_str()), (1, "refused"));
    }
}

#[test]
fn what_is_above_the_rate_waits_and_then_is_dropped() {
    let mut lab = Lab::with_agents(&rule(false, PORT, ASK));
    // 4 Mbit/s for 5 s
    let sent = lab.program(false, PORT, 2500, 972, Duration::from_millis(2));
    lab.run(at(8000));
    let heard = lab.heard.len() as u64;
    assert_eq!(heard + lab.count(0, "dropped"), sent.len() as u64);
    assert_eq!(lab.count(ROUTER, "policed"), 0, "the agent keeps to the rate");
    // 2 Mbit/s for 5 s, what waits at the end, and a burst
    assert!((1200..=1700).contains(&heard), "{heard}");
    let mut last = 0;
    for (_, payload) in &lab.heard {
        let n = u32::from_be_bytes(*payload.first_chunk().unwrap());
        assert!(n >= last, "in order");
        last = n;
    }
}

#[test]
fn only_what_a_rule_names_comes_to_the_node() {
    let agent = agent(&rule(false, PORT, ASK));
    let pair = ends(false);
    let AddressPair::V4 { src, dst } = pair else { panic!("IPv4") };
    let back = AddressPair::V4 { src: dst, dst: src };
    let ours = [(HOST, pair, (9, PORT)), (NETWORK, back, (PORT, 9)), (NETWORK, pair, (9, PORT))];
    for (side, ends, ports) in ours {
        assert!(agent.has(side, &udp(ends, ports, &[1])));
    }
    for (side, ends, ports) in [(HOST, pair, (PORT, 9)), (HOST, pair, (9, 53)), (NETWORK, back, (9, 7))] {
        assert!(!agent.has(side, &udp(ends, ports, &[1])));
    }
    let mut fragment = udp(pair, (9, PORT), &[1; 100]);
    fragment[6] = 0x20;
    assert!(!agent.has(HOST, &fragment));
    for len in 0..28 {
        assert!(!agent.has(HOST, &udp(pair, (9, PORT), &[1])[..len]));
    }
    // nftables matches an IPv6 fragment header whatever it says (RFC 6946)
    let (agent, pair) = (self::agent(&rule(true, PORT, ASK)), ends(true));
    let mut atomic = udp(pair, (9, PORT), &[1; 100]);
    assert!(agent.has(HOST, &atomic));
    atomic.splice(40..40, [UDP, 0, 0, 0, 0, 0, 0, 9]);
    atomic[6] = 44;
    write_word(&mut atomic, 4, 8 + 108);
    assert!(!agent.has(HOST, &atomic));
}

#[test]
fn each_datagram_of_a_super_packet_is_paced() {
    for v6 in [false, true] {
        let mut lab = Lab::with_agents(&rule(v6, PORT, ASK));
        lab.program(v6, PORT, 1, 1000, EVERY);
        lab.run(at(1000));
        // 20 datagrams of 960 bytes, as the kernel hands them over
        let data: Vec<u8> = (0..20_u8).flat_map(|i| [i; 960]).collect();
        let bytes = udp(ends(v6), (4000, PORT), &data);
        let start = if v6 { 40 } else { 20 };
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: VnetHeader::GSO_UDP_L4,
            hdr_len: start + 8,
            gso_size: 960,
            csum_start: start,
            csum_offset: 6,
        };
        let Place::Agent(agent) = &mut lab.places[0] else { panic!("an agent") };
        assert!(agent.has(HOST, &bytes) && agent.accept(at(1000), HOST, &bytes, &vnet));
        let (mut sent, mut now) = (Vec::new(), at(1000));
        while now < at(2000) {
            let take = |side, _: &VnetHeader, parts: &[std::io::IoSlice<'_>]| {
                let len: usize = parts.iter().map(|part| part.len()).sum();
                sent.push((now, side, len - usize::from(start) - 8));
                Ok::<(), ()>(())
            };
            agent.run(now, take).unwrap();
            now = agent.next_at();
        }
        assert_eq!(sent.len(), 20, "IPv6 {v6}");
        assert!(sent.iter().all(|(_, side, len)| (*side, *len) == (NETWORK, 960)));
        // at 2 Mbit/s they take 79 ms, of which a quarter of a second is a burst: at twice the rate
        let times: Vec<u64> = sent.windows(2).map(|w| w[1].0.since(w[0].0).0 / 1000).collect();
        assert!(times.iter().all(|us| (1900..2100).contains(us)), "{times:?}");
    }
}
