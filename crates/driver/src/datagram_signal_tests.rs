use super::*;
use crate::datagram::tests::{V4, V6, udp};
use crate::frame::{Link, Unit};
use crate::network::LiveNetwork;
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, Structure, structures, write};
use bentpipe_base::{Cx, Input, Node, Port, Proto, Rate, Size};
use bentpipe_wire::offload::addresses;
use bentpipe_wire::{Ipv4, add_hop_by_hop};
use std::cell::RefCell;
use std::rc::Rc;

const SIZE: Size = Size(1 << 20);

/// What the node does with a datagram.
type Act = fn(&mut Cx<'_>, &mut Packet) -> Vec<bentpipe_base::Pkt>;

struct Middle(Act, Rc<RefCell<Vec<Packet>>>);

impl Node for Middle {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        let Input::Packet(port, mut packet) = input else { return };
        self.1.borrow_mut().push((*packet).clone());
        for first in (self.0)(cx, &mut packet) {
            cx.send(Port(1 - port.0), first);
        }
        let is_answer = packet.src.0 > packet.dst.0;
        cx.send(if is_answer { port } else { Port(1 - port.0) }, packet);
    }

    fn reads_signalling(&self) -> bool {
        true
    }
}

/// Sends a unit through a node; returns what the node saw, and what left, checksums completed.
fn through(act: Act, unit: Unit, bytes: &[u8]) -> (Vec<Packet>, Vec<Vec<u8>>) {
    let seen = Rc::default();
    let node = Middle(act, Rc::clone(&seen));
    let mut net = LiveNetwork::chain(|network| vec![network.add(Box::new(node))], 1, unit, SIZE);
    net.store.borrow_mut().write(bytes);
    assert!(net.accept(0, bytes.len(), &VnetHeader::default()));
    let mut sent = Vec::new();
    while let Some(arrival) = net.take_arrival() {
        sent.push(net.emit(&arrival, |part, header, rest| {
            assert_eq!(part.vnet, VnetHeader::default());
            let first = if header.is_empty() { rest } else { header };
            let ip = first.get(Link::of(first, unit).unwrap().len..).unwrap();
            assert!(addresses(ip).is_ok(), "the first part has the addresses");
            [header, rest, part.tail()].concat()
        }));
        net.done(arrival);
    }
    assert!(net.store.borrow().is_empty());
    (seen.take(), sent)
}

fn request(bps: u64) -> Structure {
    Structure::request(Rate::from_bps(bps).unwrap())
}

/// A start datagram; `off`: by how much its checksum is wrong.
fn start(ends: AddressPair, structure: Structure, off: u16) -> Vec<u8> {
    let mut carrier = Packet { proto: Proto::Udp, ..Packet::default() };
    if matches!(ends, AddressPair::V6 { .. }) {
        carrier.ip = IpVersion::V6;
    }
    write(&mut carrier, &[structure]);
    let signal = *carrier.signal.unwrap();
    let mut bytes = udp(ends, if carrier.ip == IpVersion::V4 { signal.bytes() } else { &[] });
    let at = if carrier.ip == IpVersion::V4 {
        bytes[1] = QOS_SIGNAL.get() << 2;
        write_word(&mut bytes, 10, 0);
        let sum = Sum::of(&bytes[..20]).finish();
        write_word(&mut bytes, 10, sum);
        20
    } else {
        add_hop_by_hop(signal.bytes(), &mut bytes).unwrap();
        write_word(&mut bytes, 0, 0x6000 | u16::from(QOS_SIGNAL.get()) << 6);
        40 + signal.bytes().len()
    };
    let stands = Sum::ZERO.word(!read_word(&bytes, at + CHECKSUM)).word(off).finish();
    write_word(&mut bytes, at + CHECKSUM, stands);
    bytes
}

/// The checks that a host makes: lengths and header checksum; returns the sum that must be 0xffff.
fn host_sum(bytes: &[u8]) -> u16 {
    let network = Network::of(bytes).unwrap();
    assert_eq!((network.end, network.protocol), (bytes.len(), UDP));
    if bytes[0] >> 4 == 4 {
        assert!(Ipv4::new(bytes).unwrap().checksum_holds());
    }
    let udp = &bytes[network.transport..];
    assert_eq!(usize::from(read_word(udp, LENGTH)), udp.len());
    pseudo_header(&network.ends, UDP, udp.len()).bytes(udp).fold()
}

fn pass(_: &mut Cx<'_>, _: &mut Packet) -> Vec<bentpipe_base::Pkt> {
    Vec::new()
}

fn lower(_: &mut Cx<'_>, packet: &mut Packet) -> Vec<bentpipe_base::Pkt> {
    tia1039::replace(packet, 0, &request(64_000));
    Vec::new()
}

fn answer(_: &mut Cx<'_>, packet: &mut Packet) -> Vec<bentpipe_base::Pkt> {
    (packet.src, packet.dst) = (packet.dst, packet.src);
    (packet.sport, packet.dport) = (packet.dport, packet.sport);
    let mut response = request(32_000);
    response.set_kind(Kind::Response);
    write(packet, &[response]);
    Vec::new()
}

/// As a flow router tells a flow of a lower rate.
fn tell(cx: &mut Cx<'_>, packet: &mut Packet) -> Vec<bentpipe_base::Pkt> {
    let mut notice = cx.duplicate(packet);
    notice.body.len = 0;
    write(&mut notice, &[request(16_000)]);
    packet.dscp = QOS_FLOW;
    vec![notice]
}

#[test]
fn a_start_datagram_is_read_and_what_is_unchanged_leaves_as_it_came() {
    for ends in [V4, V6] {
        for off in [0, SEAL] {
            let bytes = start(ends, request(128_000), off);
            let (seen, sent) = through(pass, Unit::Packet, &bytes);
            assert_eq!(structures(&seen[0]).as_slice()[0].available(), request(128_000).available());
            assert_eq!((seen[0].body.len, seen[0].wire_len().0), (0, bytes.len() as u64));
            assert_eq!(sent, [bytes]);
        }
    }
}

#[test]
fn a_lowered_rate_is_written_and_the_seal_stays() {
    for ends in [V4, V6] {
        for off in [0, SEAL] {
            let (_, sent) = through(lower, Unit::Packet, &start(ends, request(128_000), off));
            assert_eq!(sent, [start(ends, request(64_000), off)]);
            assert_eq!(host_sum(&sent[0]), !off, "a host takes it only without a seal");
        }
    }
}

#[test]
fn an_answer_goes_back_to_the_sender() {
    for ends in [V4, V6] {
        for off in [0, SEAL] {
            let bytes = start(ends, request(128_000), off);
            let (_, sent) = through(answer, Unit::Packet, &bytes);
            let (before, after) = (Network::of(&bytes).unwrap(), Network::of(&sent[0]).unwrap());
            let (from, to) = before.ends.addresses();
            assert_eq!((after.ends.addresses(), after.hops, host_sum(&sent[0])), ((to, from), HOPS, !off));
            let ports = |at: usize, bytes: &[u8]| (read_word(bytes, at), read_word(bytes, at + 2));
            let (sport, dport) = ports(before.transport, &bytes);
            assert_eq!(ports(after.transport, &sent[0]), (dport, sport));
            let (seen, _) = through(pass, Unit::Packet, &sent[0]);
            assert_eq!(structures(&seen[0]).as_slice()[0].kind(), Some(Kind::Response));
        }
    }
}

#[test]
fn a_router_s_own_datagram_is_sealed_and_the_data_keep_their_bytes() {
    for ends in [V4, V6] {
        for len in [0, 1, 700] {
            let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let bytes = udp(ends, &data);
            let (_, sent) = through(tell, Unit::Packet, &bytes);
            let [notice, after] = sent.try_into().unwrap();
            assert_eq!((host_sum(&notice), host_sum(&after)), (!SEAL, 0xffff));
            let (before, network) = (Network::of(&bytes).unwrap(), Network::of(&notice).unwrap());
            assert_eq!((network.ends, network.hops), (before.ends, before.hops));
            assert_eq!(network.traffic_class >> 2, QOS_SIGNAL.get());
            assert_eq!(Network::of(&after).unwrap().traffic_class >> 2, QOS_FLOW.get());
            assert_eq!(after[before.transport..], bytes[before.transport..]);
            let (seen, _) = through(pass, Unit::Packet, &notice);
            assert_eq!(structures(&seen[0]).as_slice()[0].available(), request(16_000).available());
        }
    }
}

#[test]
fn what_is_damaged_or_not_alone_is_data() {
    let mut damaged = start(V4, request(128_000), SEAL);
    damaged[30] ^= 1;
    let mut other_dscp = start(V6, request(128_000), 0);
    write_word(&mut other_dscp, 0, 0x6000);
    let longer = udp(V4, &[request(128_000).bytes(), &[1][..]].concat());
    for bytes in [damaged, other_dscp, longer, udp(V4, request(128_000).bytes()), udp(V6, &[])] {
        let (seen, sent) = through(pass, Unit::Packet, &bytes);
        assert!(seen[0].signal.is_none() && sent == [bytes]);
    }
    // an IPv4 datagram without a checksum
    let mut without = start(V4, request(128_000), 0);
    write_word(&mut without, 26, 0);
    assert!(through(pass, Unit::Packet, &without).0[0].signal.is_some());
}

#[test]
fn frames_keep_their_link_header_and_answers_turn_it_around() {
    let link = [[7; 6], [9; 6]].concat();
    for (ends, kind) in [(V4, [8, 0]), (V6, [0x86, 0xdd])] {
        let frame = |ip: &[u8]| [&link, &kind[..], ip].concat();
        let (_, sent) = through(tell, Unit::Frame, &frame(&udp(ends, &[5; 99])));
        assert!(sent.iter().all(|bytes| bytes[..12] == link[..]));
        assert_eq!((host_sum(&sent[0][14..]), host_sum(&sent[1][14..])), (!SEAL, 0xffff));
        let (_, sent) = through(answer, Unit::Frame, &frame(&start(ends, request(9_000), SEAL)));
        assert_eq!(sent[0][..12], [[9; 6], [7; 6]].concat());
        assert_eq!(host_sum(&sent[0][14..]), !SEAL);
    }
}
