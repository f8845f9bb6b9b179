use super::*;
use bentpipe_advice::quick_start::{Carrier, Fields, Hop, RateCode};
use bentpipe_advice::rounded;
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, QOS_SIGNAL, Structure};
use bentpipe_base::{Dscp, Ecn, Flags, Instant, Rate, Seq, Size, TcpHeader};
use bentpipe_driver::Unit;
use bentpipe_flow_router::{ClassConfig, Encodings, Fixed};
use bentpipe_gateway::{Config, Gateway};
use bentpipe_scenario::Source;
use bentpipe_scenario::gateway_file::load;
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{AddressPair, Layout, Segment, add_ipv4_options, add_tcp_options, emit, parse};

fn rates(keys: &str) -> Option<ManagedRates> {
    let text = format!(
        "schema = 1\n[satellite]\nrate = \"20 Mbit/s\"\n[deploy]\nkind = \"inline\"\nlan = \"a\"\nsatellite = \"b\"\n\
         [rate]\nencodings = [\"tia-1039\", \"scone-tcp\", \"quick-start\", \"scone\"]\nutilisation = 1\n{keys}"
    );
    load(&Source::new("gw.toml", text)).unwrap().rate
}

/// A gateway that accelerates what asks for no rate, with flow routers.
struct Stage {
    net: LiveNetwork,
    routers: RateRouters,
    gateway: NodeId,
}

impl Stage {
    fn new(rates: &ManagedRates) -> Self {
        let mut parts = None;
        let add = |network: &mut Network| {
            let gateway = network.add_gateway(Gateway::new(Config::default()));
            let (all, mut chain) = RateRouters::add(network, Some(rates));
            parts = Some((all, gateway));
            chain.push(gateway.into());
            chain
        };
        let net = LiveNetwork::chain(add, 1, Unit::Packet, Size(1 << 20));
        let (routers, gateway) = parts.unwrap();
        Self { net, routers, gateway }
    }

    /// Sends a packet in at a port; returns the port and the bytes with which it leaves.
    fn pass(&mut self, port: usize, bytes: &[u8]) -> (usize, Vec<u8>) {
        self.net.advance(self.net.now() + bentpipe_base::Duration::from_millis(20));
        self.net.store.borrow_mut().write(bytes);
        assert!(self.net.accept(port, bytes.len(), &VnetHeader::default()));
        self.net.advance(self.net.now() + bentpipe_base::Duration::from_millis(20));
        let arrival = self.net.take_arrival().expect("nothing is dropped");
        let complete = |emitted: &bentpipe_driver::Emitted, header: &[u8], rest: &[u8]| {
            let mut bytes = [header, rest, emitted.tail()].concat();
            bentpipe_wire::offload::complete(&mut bytes, &emitted.vnet);
            bytes
        };
        let sent = self.net.emit(&arrival, complete);
        let port = arrival.port;
        self.net.done(arrival);
        (port, sent)
    }

    fn counter(&self, direction: usize, key: &str) -> u64 {
        let figures = self.routers.figures().remove(direction);
        figures.counters.iter().find(|(k, _)| k == key).unwrap().1
    }
}

/// A QUIC datagram with a SCONE packet that has this signal, without a checksum. `from`: last byte of the
/// sender's address.
fn quic(from: u8, port: u16, signal: u8) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 48, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from];
    let sum = bentpipe_wire::Sum::of(&ip).finish();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(port.to_be_bytes());
    ip.extend([1, 187, 0, 28, 0, 0]);
    ip.extend([0xC0 | signal >> 1, 0x6F | (signal & 1) << 7, 0x7D, 0xC0, 0xFD, 1, 9, 0]);
    ip.extend([0x40; 12]);
    ip
}

const UNKNOWN: u8 = 127;

#[test]
fn quic_is_told_its_share_in_both_directions() {
    let rates = rates("return_rate = \"100 Mbit/s\"\n").unwrap();
    let mut stage = Stage::new(&rates);
    // 20 Mbit/s for one flow, then 10 for each of two
    assert_eq!(stage.pass(0, &quic(1, 5, UNKNOWN)), (1, quic(1, 5, 46)));
    assert_eq!(stage.pass(0, &quic(1, 6, UNKNOWN)), (1, quic(1, 6, 40)));
    assert_eq!(stage.pass(0, &quic(1, 5, 30)), (1, quic(1, 5, 30)), "never higher");
    assert_eq!(stage.pass(1, &quic(2, 443, UNKNOWN)), (0, quic(2, 443, 60)));
    assert_eq!((stage.counter(0, "flows"), stage.counter(1, "flows")), (2, 1));
    assert_eq!((stage.counter(0, "advised"), stage.counter(1, "advised")), (2, 1));
    let names: Vec<String> = stage.routers.figures().into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["to_satellite", "to_lan"]);
}

#[test]
fn a_new_rate_applies_to_the_next_packet() {
    let old = rates("").unwrap();
    let mut stage = Stage::new(&old);
    assert_eq!(stage.pass(0, &quic(1, 5, UNKNOWN)).1, quic(1, 5, 46));
    let new = rates("rate = \"2 Mbit/s\"\nrules = [{ from = \"10.0.0.9\" }]\n").unwrap();
    assert_eq!(refusal(Some(&old), Some(&new)), None);
    stage.routers.reconfigure(&mut stage.net, Some(&new)).unwrap();
    assert_eq!(stage.counter(0, "rate_bps"), 2_000_000);
    assert_eq!(stage.pass(0, &quic(1, 5, UNKNOWN)).1, quic(1, 5, 26));
    assert!(stage.net.now() > Instant::ZERO);
}

#[test]
fn what_cannot_change_is_refused_with_the_reason() {
    let old = rates("").unwrap();
    let why = |change: &dyn Fn(&mut ManagedRates)| {
        let mut new = old.clone();
        change(&mut new);
        refusal(Some(&old), Some(&new))
    };
    let fixed = |what: Fixed| Some(format!("[rate]: {what}"));
    assert_eq!(why(&|rates| rates.outward.flows = 7), fixed(Fixed::Limits));
    assert_eq!(why(&|rates| rates.outward.encodings = Encodings::default()), fixed(Fixed::Encodings));
    assert_eq!(why(&|rates| rates.outward.classes.push(ClassConfig::default())), fixed(Fixed::Classes));
    assert_eq!(why(&|rates| rates.outward.rate = Rate::from_bps(7).unwrap()), None);
    assert_eq!(why(&|rates| rates.outward.utilisation = 0.5), None);
    let directions = why(&|rates| rates.inward = Some(rates.outward.clone()));
    assert!(directions.is_some_and(|why| why.contains("which directions")));
    assert!(refusal(None, Some(&old)).is_some() && refusal(Some(&old), None).is_some());
    assert_eq!(refusal(None, None), None);
}

/// A TCP packet of the host on that side, with these bytes after its header.
fn tcp(side: usize, port: u16, (dscp, flags): (Dscp, Flags), payload: &[u8]) -> Vec<u8> {
    let mut ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let mut ports = [port, 443];
    if side == 1 {
        ends.reverse();
        ports.reverse();
    }
    let header = TcpHeader { seq: Seq(1000), ack: Seq(1), window: 512, flags, ..TcpHeader::default() };
    let mut bytes = Vec::new();
    let segment = Segment {
        ends: AddressPair::V4 { src: ends[0].into(), dst: ends[1].into() },
        sport: ports[0],
        dport: ports[1],
        hops: 64,
        dscp,
        ecn: Ecn::NotEct,
        tcp: header,
        payload,
    };
    emit(&segment, &mut bytes).unwrap();
    bytes
}

/// The structure at the end of a packet whose checksum is right, and what of the payload is before it.
fn structure(bytes: &[u8]) -> (Structure, Vec<u8>) {
    assert_eq!(Layout::of(bytes).unwrap().sum(bytes).fold(), 0xffff);
    let segment = parse(bytes).unwrap();
    assert_eq!(segment.dscp, QOS_SIGNAL);
    let (data, structure) = segment.payload.split_last_chunk().unwrap();
    (Structure::from_bytes(*structure), data.to_vec())
}

fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000).unwrap()
}

const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

/// A connection that asks for 1 Gbit/s in its SYN; returns what it is granted.
fn open(stage: &mut Stage, port: u16) -> Option<Rate> {
    let asks = *Structure::request(mbps(1000)).bytes();
    let (out, syn) = stage.pass(0, &tcp(0, port, (QOS_SIGNAL, Flags::SYN), &asks));
    let (mut answer, data) = structure(&syn);
    assert_eq!((out, answer.kind(), data.len()), (1, Some(Kind::Request), 0));
    answer.set_kind(Kind::Response);
    let syn_ack = tcp(1, port, (QOS_SIGNAL, SYN_ACK), answer.bytes());
    assert_eq!(stage.pass(1, &syn_ack), (0, syn_ack), "responses pass unchanged");
    answer.available()
}

#[test]
fn tcp_is_granted_its_share_and_told_when_that_falls() {
    let mut stage = Stage::new(&rates("").unwrap());
    assert_eq!(open(&mut stage, 5), rounded(mbps(20)));
    let data = |port| tcp(0, port, (QOS_FLOW, Flags::ACK), &[0x61; 1000]);
    assert_eq!(stage.pass(0, &data(5)), (1, data(5)));
    // a second connection takes half, and the first hears of it in its own data
    assert_eq!(open(&mut stage, 6), rounded(mbps(10)));
    let (told, payload) = structure(&stage.pass(0, &data(5)).1);
    assert_eq!((told.kind(), told.available()), (Some(Kind::Renegotiate), rounded(mbps(10))));
    assert_eq!(payload, [0x61; 1000]);
    assert_eq!((stage.counter(0, "requests"), stage.counter(0, "reductions")), (2, 1));
}

#[test]
fn plain_tcp_is_a_user_and_still_accelerated() {
    let mut stage = Stage::new(&rates("").unwrap());
    let plain = |side, flags, payload: &[u8]| tcp(side, 7, (Dscp::DEFAULT, flags), payload);
    stage.pass(0, &plain(0, Flags::SYN, &[]));
    stage.pass(1, &plain(1, SYN_ACK, &[]));
    stage.pass(0, &plain(0, Flags::ACK, &[1; 500]));
    assert_eq!(open(&mut stage, 5), rounded(mbps(10)));
    let (gateway, _) = stage.net.network.gateway(stage.gateway).unwrap();
    let report = gateway.report();
    let asking = report.passing[bentpipe_gateway::PassReason::AsksRate as usize];
    assert_eq!((report.counters.begun, asking), (1, 1));
}

/// Advice in TCP's option and a request by Quick-Start, in both directions. Who asks so is accelerated too.
#[test]
fn options_of_tcp_and_ip_are_lowered_in_place() {
    let mut stage = Stage::new(&rates("return_rate = \"100 Mbit/s\"\n").unwrap());
    // inline, nobody lowers the TTL
    let hop = |code| Hop { approved: RateCode::new(code).unwrap(), hops: 0, random: 0 };
    let asked = Fields::request(RateCode::MAX, 200, 0);
    // 20 Mbit/s: signal 46, code 8; 100 Mbit/s: signal 60, code 11
    for (side, flags, signal, code) in [(0, Flags::SYN, 46, 8), (1, SYN_ACK, 60, 11)] {
        let with = |fields: Fields, signal: u8| {
            let mut bytes = tcp(side, 7, (Dscp::DEFAULT, flags), &[]);
            add_tcp_options(&[1, 1, 254, 6, 0x6F, 0x7D, 0x3F, 0x80 | signal], &mut bytes).unwrap();
            add_ipv4_options(&fields.option(Carrier::Ipv4), &mut bytes).unwrap();
            bytes
        };
        let (out, left) = stage.pass(side, &with(asked, UNKNOWN));
        let read = |bytes: &[u8]| Fields::from_bytes(*bytes[22..].first_chunk().unwrap());
        assert_eq!((out, read(&left).rate(), read(&left).ttl()), (1 - side, hop(code).approved, 200));
        let nonce = read(&left).nonce();
        assert_eq!(left, with(asked.after(Hop { random: nonce, ..hop(code) }), signal));
        let low = with(Fields::request(RateCode::new(2).unwrap(), 9, 5), 3);
        assert_eq!(stage.pass(side, &low).1, low, "never higher");
    }
    stage.pass(0, &tcp(0, 7, (Dscp::DEFAULT, Flags::ACK), &[1; 500]));
    let (gateway, _) = stage.net.network.gateway(stage.gateway).unwrap();
    assert_eq!(gateway.report().counters.begun, 1);
    assert_eq!((stage.counter(0, "requests"), stage.counter(1, "requests")), (2, 2));
}
