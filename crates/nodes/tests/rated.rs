//! Flows of datagrams that ask for their rates: what the source does with each answer, with none, and when
//! answers are lost; and that the application's datagrams are exact.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_advice::negotiation::{AskConfig, RateState, Terms};
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, QOS_SIGNAL, RateType, Structure, structures, write};
use bentpipe_base::{
    Addr, Dscp, Duration, Input, Instant, IpVersion, Node, NodeId, Packet, Pkt, Port, Purpose, Rate, Size,
    World,
};
use bentpipe_nodes::{DatagramRate, DatagramStream, Host, Pattern, WhenRefused};
use std::collections::VecDeque;

const DELAY: Duration = Duration::from_millis(10);

fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

fn kbps(kbps: u64) -> Rate {
    Rate::from_bps(kbps * 1000).unwrap()
}

fn bps(rate: Option<Rate>) -> u64 {
    rate.map_or(0, Rate::bps)
}

/// What a router on the path does with a packet; false: it is lost.
type Router = Box<dyn FnMut(Instant, &mut Packet) -> bool>;

/// A source, a path of 10 ms with a router, and a sink.
struct Path {
    world: World,
    hosts: [Host; 2],
    flying: VecDeque<(Instant, usize, Pkt)>,
    now: Instant,
    router: Router,
    /// Every packet that the source sent.
    sent: Vec<(Instant, Packet)>,
    /// Kinds of structures that the sink returned.
    returned: Vec<Kind>,
}

/// What a test flow is like.
#[derive(Clone, Copy)]
struct Spec {
    rate_type: RateType,
    asked: u64,
    pattern: Pattern,
    when_refused: WhenRefused,
    ip: IpVersion,
    until: Instant,
}

impl Spec {
    /// 800 kbit/s of 1000 B, 100 per second, for which 1024 kbit/s are asked.
    fn new(rate_type: RateType) -> Self {
        Self {
            rate_type,
            asked: 1024,
            pattern: Pattern::Constant(kbps(800)),
            when_refused: WhenRefused::Silent,
            ip: IpVersion::V4,
            until: Instant::NEVER,
        }
    }
}

impl Path {
    fn new(spec: Spec, signals: bool, router: Router) -> Self {
        let mut world = World::new(1);
        let hosts = ["a", "b"].map(|name| world.open_rng(name, Purpose::Isn));
        let rng = world.open_rng("stream", Purpose::Application);
        let mut hosts = [Host::new(Addr(0), hosts[0], None), Host::new(Addr(1), hosts[1], None)];
        let terms =
            Terms { rate_type: spec.rate_type, guaranteed: Some(kbps(spec.asked)), ..Terms::default() };
        let ask = AskConfig { ask: Some(kbps(spec.asked)), terms, ..AskConfig::default() };
        let rate = DatagramRate { ask, ip: spec.ip, when_refused: spec.when_refused };
        let (size, pattern) = (Size(1000), spec.pattern);
        let stream = DatagramStream { port: 7, to: (Addr(1), 9), size, pattern, rng, start: at(100) };
        let sink = hosts[1].receive_datagrams(9, (Addr(0), 7));
        if signals {
            sink.signal(None, spec.ip);
        }
        let mut cx = world.cx(Instant::ZERO, NodeId(0));
        hosts[0].send_datagrams_until(&mut cx, &stream, spec.until, Some(&rate));
        Self {
            world,
            hosts,
            flying: VecDeque::new(),
            now: Instant::ZERO,
            router,
            sent: Vec::new(),
            returned: Vec::new(),
        }
    }

    fn handle(&mut self, host: usize, input: Input) {
        self.hosts[host].handle(&mut self.world.cx(self.now, NodeId(host as u32)), input);
        while let Some((from, _, mut packet)) = self.world.outbox.pop_front() {
            if from.0 == 0 {
                self.sent.push((self.now, (*packet).clone()));
            } else {
                let kinds = structures(&packet);
                self.returned.extend(kinds.as_slice().iter().filter_map(Structure::kind));
            }
            if (self.router)(self.now, &mut packet) {
                self.flying.push_back((self.now + DELAY, 1 - from.0 as usize, packet));
            }
        }
    }

    fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
        self.now = until;
    }

    /// Handles the next event; false if there is none until then.
    fn step(&mut self, until: Instant) -> bool {
        let arrival = self.flying.front().map_or(Instant::NEVER, |(at, ..)| *at);
        let (at, host, input) = match self.world.events.pop_until(until.min(arrival)) {
            Some(wake) => (wake.at, wake.node.0 as usize, Input::Timer(wake.slot)),
            None if arrival <= until => {
                let (at, to, packet) = self.flying.pop_front().unwrap();
                (at, to, Input::Packet(Port(0), packet))
            }
            None => return false,
        };
        self.now = at;
        self.handle(host, input);
        true
    }

    /// Puts a structure of a router into the path to the sink.
    fn tell(&mut self, structure: Structure) {
        let mut packet = self.sent[0].1.clone();
        write(&mut packet, &[structure]);
        self.flying.push_back((self.now + DELAY, 1, Box::new(packet)));
    }

    /// Times and kinds of what the source signalled.
    fn signalled(&self) -> Vec<(Instant, Kind)> {
        let kind =
            |(at, packet): &(Instant, Packet)| Some((*at, structures(packet).as_slice().first()?.kind()?));
        self.sent.iter().filter_map(kind).collect()
    }

    /// Times and code points of the application's datagrams.
    fn data(&self) -> Vec<(Instant, Dscp)> {
        let data = self.sent.iter().filter(|(_, packet)| packet.body.len > 0);
        data.map(|(at, packet)| (*at, packet.dscp)).collect()
    }

    fn state(&self) -> (RateState, u64) {
        let view = self.hosts[0].source(7).unwrap().rate().unwrap();
        (view.state, bps(view.granted))
    }

    /// Checks that the application has what was sent, and nothing else.
    fn is_exact(&self) {
        let (sent, sink) = (self.hosts[0].source(7).unwrap().sent, self.hosts[1].sink(9).unwrap());
        assert_eq!(sent, self.data().len() as u64);
        let flying = self.flying.iter().filter(|(_, to, p)| *to == 1 && p.body.len > 0).count() as u64;
        assert_eq!((sink.received + flying, sink.bytes + flying * 1000), (sent, sent * 1000));
        assert_eq!((sink.duplicates, sink.reordered, sink.lost()), (0, 0, 0));
    }
}

/// A router that grants this guaranteed rate, if it is above zero.
fn granting(kbit: u64) -> Router {
    Box::new(move |_, packet| {
        for (index, structure) in structures(packet).as_slice().iter().enumerate() {
            if structure.kind().is_some_and(Kind::is_request) && packet.dport == 9 {
                let mut offer = *structure;
                offer.set_available(None);
                offer.set_guaranteed(offer.guaranteed().min(Rate::from_bps(kbit * 1000)));
                offer.set_changed(true);
                bentpipe_advice::tia1039::replace(packet, index, &offer);
            }
        }
        true
    })
}

#[test]
fn data_begins_with_the_answer_and_no_structure_reaches_the_application() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        let spec = Spec { ip, ..Spec::new(RateType::Guaranteed) };
        let mut path = Path::new(spec, true, granting(1024));
        path.run_until(at(2000));
        let (first_at, first) = &path.sent[0];
        assert_eq!((*first_at, first.dscp, first.body.len, first.ip), (at(100), QOS_SIGNAL, 0, ip));
        assert_eq!(path.signalled(), [(at(100), Kind::Request)]);
        assert_eq!(
            (path.state(), path.returned.as_slice()),
            ((RateState::Granted, 1_024_000), &[Kind::Response][..])
        );
        let data = path.data();
        assert_eq!(data[0], (at(120), QOS_FLOW), "a round trip later");
        assert!(data.windows(2).all(|w| w[1].0.since(w[0].0) == Duration::from_millis(10)), "no burst");
        assert!(data.iter().all(|(_, dscp)| *dscp == QOS_FLOW));
        path.is_exact();
    }
}

#[test]
fn a_source_keeps_to_a_rate_below_its_own() {
    // 512 kbit/s are 62.3 packets of 1028 B in a second
    let mut path = Path::new(Spec::new(RateType::Maximum), true, granting(512));
    path.run_until(at(10_120));
    let sent = path.data().len();
    assert!((622..=624).contains(&sent), "{sent}");
    // what it uses is confirmed, and all of it asked for again from time to time
    let signalled: Vec<Kind> = path.signalled().into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(signalled[..3], [Kind::Request, Kind::Confirmation, Kind::Renegotiate]);
    assert_eq!(signalled.iter().filter(|kind| **kind == Kind::Renegotiate).count(), sent / 128);
    path.is_exact();
}

#[test]
fn a_refused_source_is_silent_or_sends_without_a_rate() {
    for (when_refused, datagrams) in [(WhenRefused::Silent, 0), (WhenRefused::Send, 100)] {
        let spec = Spec { when_refused, ..Spec::new(RateType::Guaranteed) };
        let mut path = Path::new(spec, true, granting(0));
        path.run_until(at(1110));
        assert_eq!((path.state(), path.data().len()), ((RateState::Refused, 0), datagrams));
        assert!(path.data().iter().all(|(_, dscp)| *dscp == Dscp::DEFAULT));
        assert_eq!(path.signalled().len(), 1);
        path.is_exact();
    }
}

#[test]
fn without_a_peer_or_a_router_that_signals_it_is_plain() {
    // the peer does not know structures: after 8 repetitions the source gives up
    let mut path = Path::new(Spec::new(RateType::Guaranteed), false, granting(1024));
    path.run_until(at(4000));
    assert_eq!((path.signalled().len(), path.state()), (9, (RateState::Plain, 0)));
    assert_eq!((path.data()[0], path.returned.len()), ((at(1900), Dscp::DEFAULT), 0));
    path.is_exact();
    assert_eq!(path.hosts[1].refused, 9);
    // no router does: an answer that nobody changed proves nothing
    let mut path = Path::new(Spec::new(RateType::Guaranteed), true, Box::new(|_, _| true));
    path.run_until(at(1000));
    assert_eq!((path.signalled().len(), path.state()), (1, (RateState::Plain, 0)));
    assert_eq!(path.data()[0], (at(120), Dscp::DEFAULT));
    path.is_exact();
}

#[test]
fn a_lost_request_or_answer_is_repeated() {
    for lost_port in [9, 7] {
        let mut lost = 0;
        let mut grant = granting(1024);
        let router: Router = Box::new(move |now, packet| {
            let is_lost = packet.signal.is_some() && packet.dport == lost_port && lost < 3;
            lost += u32::from(is_lost);
            !is_lost && grant(now, packet)
        });
        let mut path = Path::new(Spec::new(RateType::Guaranteed), true, router);
        path.run_until(at(2000));
        assert_eq!(path.state(), (RateState::Granted, 1_024_000), "{lost_port}");
        assert_eq!((path.signalled().len(), path.data()[0].0), (4, at(720)), "{lost_port}");
        path.is_exact();
    }
}

#[test]
fn reductions_and_the_loss_of_a_rate_are_returned_and_obeyed() {
    let mut path = Path::new(Spec::new(RateType::Guaranteed), true, granting(1024));
    path.run_until(at(1000));
    let mut told = structures(&path.sent[0].1).as_slice()[0];
    told.set_kind(Kind::Renegotiate);
    told.set_available(None);
    told.set_guaranteed(Some(kbps(512)));
    path.tell(told);
    path.run_until(at(1050));
    assert_eq!((path.state(), path.returned.len()), ((RateState::Reduced, 512_000), 2));
    told.set_guaranteed(None);
    for _ in 0..2 {
        path.tell(told); // repeated, since the router has not seen the answer
    }
    path.run_until(at(1500));
    assert_eq!((path.state(), path.returned.len()), ((RateState::Refused, 0), 4));
    assert!(path.data().iter().all(|(at, _)| *at <= self::at(1070)));
    path.is_exact();
}

#[test]
fn after_a_silence_it_asks_again_unless_the_rate_is_held() {
    let pattern = Pattern::OnOff { rate: kbps(800), on: Duration::from_secs(1), off: Duration::from_secs(4) };
    for (rate_type, asks) in [(RateType::Maximum, true), (RateType::Guaranteed, false)] {
        let mut path = Path::new(Spec { pattern, ..Spec::new(rate_type) }, true, granting(1024));
        path.run_until(at(200_000));
        let data: Vec<Instant> = path.data().into_iter().map(|(at, _)| at).collect();
        let silences: Vec<Instant> =
            data.windows(2).filter(|w| w[1].since(w[0]) > Duration::from_secs(2)).map(|w| w[1]).collect();
        assert!(silences.len() > 3);
        let again = path.signalled().into_iter().filter(|(_, kind)| *kind == Kind::Renegotiate);
        let again: Vec<Instant> = again.map(|(at, _)| at + DELAY + DELAY).collect();
        assert_eq!(
            again,
            if asks { silences } else { Vec::new() },
            "{rate_type:?}: data waits for the answer"
        );
        path.is_exact();
    }
}

#[test]
fn a_rate_is_given_back_at_the_end() {
    let spec = Spec { until: at(1000), ..Spec::new(RateType::Guaranteed) };
    let mut path = Path::new(spec, true, granting(1024));
    path.run_until(at(5000));
    let closes: Vec<_> = path.signalled().into_iter().filter(|(_, kind)| *kind == Kind::Close).collect();
    assert_eq!(closes, [1000, 1200, 1400].map(|ms| (at(ms), Kind::Close)));
    assert_eq!(path.data().len(), 88, "from 120 ms to 990 ms");
    path.is_exact();
    // one that has no rate has nothing to give back
    let mut path = Path::new(spec, true, granting(0));
    path.run_until(at(5000));
    assert_eq!(path.signalled().len(), 1);
}

/// Whatever arrives at the ports of a flow, with or without data, the application sees its datagrams alone.
#[test]
fn hostile_structures_do_not_reach_the_application() {
    let mut path = Path::new(Spec::new(RateType::Guaranteed), true, granting(1024));
    path.run_until(at(500));
    let template = structures(&path.sent[0].1).as_slice()[0];
    for byte in 0..16 {
        for value in [0, 1, 0x20, 0x40, 0x70, 0xFF] {
            let mut bytes = *template.bytes();
            bytes[byte] = value;
            path.tell(Structure::from_bytes(bytes));
            let (to, from) = ((Addr(0), 7), (Addr(1), 9));
            let mut back = Packet { src: from.0, sport: from.1, dst: to.0, dport: to.1, ..Packet::default() };
            back.proto = bentpipe_base::Proto::Udp;
            write(&mut back, &[Structure::from_bytes(bytes)]);
            path.flying.push_back((path.now + DELAY, 0, Box::new(back)));
            path.run_until(path.now + DELAY + DELAY);
        }
    }
    path.run_until(path.now + Duration::from_secs(3));
    path.is_exact();
}
