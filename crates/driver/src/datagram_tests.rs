use super::*;
use crate::network::LiveNetwork;
use bentpipe_advice::scone::Advice;
use bentpipe_base::{Cx, Input, Node, Port, Proto, Size};
use bentpipe_wire::pseudo_header;
use std::cell::RefCell;
use std::rc::Rc;

const GSO: u16 = 1200;

/// Lowers every signal to this one, and notes what it saw.
#[derive(Clone)]
struct Element(Advice, Rc<RefCell<Vec<Packet>>>);

impl Element {
    fn new(signal: u8) -> Self {
        Self(Advice::new(signal).unwrap(), Rc::default())
    }
}

impl Node for Element {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        let Input::Packet(port, mut packet) = input else { return };
        self.1.borrow_mut().push((*packet).clone());
        if let Some(signal) = &mut packet.signal {
            scone::lower_start(signal.bytes_mut(), self.0);
        }
        cx.send(Port(1 - port.0), packet);
    }

    fn reads_signalling(&self) -> bool {
        true
    }
}

pub(crate) const V4: AddressPair = AddressPair::V4 {
    src: core::net::Ipv4Addr::new(192, 0, 2, 1),
    dst: core::net::Ipv4Addr::new(198, 51, 100, 2),
};
pub(crate) const V6: AddressPair =
    AddressPair::V6 { src: core::net::Ipv6Addr::LOCALHOST, dst: core::net::Ipv6Addr::UNSPECIFIED };

/// A UDP packet with a complete checksum.
pub(crate) fn udp(ends: AddressPair, payload: &[u8]) -> Vec<u8> {
    let len = (HEADER + payload.len()) as u16;
    let mut bytes = match ends {
        AddressPair::V4 { src, dst } => {
            let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, UDP, 0, 0];
            ip.extend(src.octets().into_iter().chain(dst.octets()));
            write_word(&mut ip, 2, 20 + len);
            let sum = Sum::of(&ip).finish();
            write_word(&mut ip, 10, sum);
            ip
        }
        AddressPair::V6 { src, dst } => {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
            ip.extend(src.octets().into_iter().chain(dst.octets()));
            write_word(&mut ip, 4, len);
            ip
        }
    };
    let at = bytes.len();
    bytes.extend([0x12, 0x34, 0x01, 0xbb, 0, 0, 0, 0]);
    write_word(&mut bytes, at + LENGTH, len);
    bytes.extend(payload);
    let sum = pseudo_header(&ends, UDP, usize::from(len)).bytes(&bytes[at..]).finish();
    write_word(&mut bytes, at + CHECKSUM, sum);
    bytes
}

/// A QUIC datagram of `len` bytes with a SCONE packet before it.
fn quic(signal: Advice, len: usize) -> Vec<u8> {
    let mut payload = scone::write(signal, &[1, 2, 3, 4, 5, 6, 7, 8], &[]).unwrap();
    payload.extend((payload.len()..len).map(|i| i as u8 | 0x40));
    payload
}

fn has_correct_checksum(ends: AddressPair, bytes: &[u8], at: usize) -> bool {
    pseudo_header(&ends, UDP, bytes.len() - at).bytes(&bytes[at..]).fold() == 0xffff
}

/// Sends a unit through the node; returns what leaves.
fn through(element: &Element, unit: Unit, vnet: VnetHeader, bytes: &[u8]) -> Vec<(VnetHeader, Vec<u8>)> {
    let node = element.clone();
    let mut net = LiveNetwork::chain(|network| vec![network.add(Box::new(node))], 1, unit, Size(1 << 20));
    net.store.borrow_mut().write(bytes);
    assert!(net.accept(0, bytes.len(), &vnet));
    assert_eq!(net.counters.other, [0; crate::parse::UnreadReason::ALL.len()], "all of it was read");
    let mut sent = Vec::new();
    while let Some(arrival) = net.take_arrival() {
        sent.push(net.emit(&arrival, |part, header, rest| (part.vnet, [header, rest].concat())));
        net.done(arrival);
    }
    assert!(net.store.borrow().is_empty());
    sent
}

/// The one packet that leaves for one that came alone.
fn pass(element: &Element, unit: Unit, bytes: &[u8]) -> Vec<u8> {
    let mut sent = through(element, unit, VnetHeader::default(), bytes);
    assert_eq!(sent.len(), 1);
    sent.remove(0).1
}

#[test]
fn a_lowered_signal_is_the_only_change() {
    for (ends, at) in [(V4, 20), (V6, 40)] {
        for len in [17, 600, 1201] {
            let element = Element::new(46);
            let before = udp(ends, &quic(Advice::UNKNOWN, len));
            let after = pass(&element, Unit::Packet, &before);
            let mut wanted = udp(ends, &quic(Advice::new(46).unwrap(), len));
            assert!(has_correct_checksum(ends, &after, at));
            assert_eq!(after, wanted);
            // an element gives no more than there is
            wanted = udp(ends, &quic(Advice::new(40).unwrap(), len));
            assert_eq!(pass(&element, Unit::Packet, &wanted), wanted);
            let seen = element.1.borrow();
            assert!(seen.iter().all(|packet| packet.proto == Proto::Udp && packet.signal.is_some()));
            assert_eq!((seen[0].dport, seen[0].wire_len().0), (443, before.len() as u64));
        }
    }
}

#[test]
fn a_datagram_without_a_checksum_gets_none_and_damage_stays_visible() {
    let mut before = udp(V4, &quic(Advice::UNKNOWN, 100));
    for checksum in [0, 0x1234] {
        write_word(&mut before, 26, checksum);
        let after = pass(&Element::new(0), Unit::Packet, &before);
        assert_eq!(
            (read_word(&after, 26) == 0, has_correct_checksum(V4, &after, 20)),
            (checksum == 0, false)
        );
        assert_eq!((&after[..26], &after[30..]), (&before[..26], &before[30..]));
    }
}

#[test]
fn a_sum_of_zero_is_written_as_all_ones() {
    // whatever the last two bytes need to be for that
    for extra in 0..=u16::MAX {
        let mut payload = quic(Advice::new(46).unwrap(), 22);
        write_word(&mut payload, 20, extra);
        if has_correct_checksum(V4, &udp(V4, &payload), 20) && read_word(&udp(V4, &payload), 26) == 0 {
            payload[..2].copy_from_slice(&quic(Advice::UNKNOWN, 22)[..2]);
            let after = pass(&Element::new(46), Unit::Packet, &udp(V4, &payload));
            assert_eq!(read_word(&after, 26), 0xffff);
            return;
        }
    }
    panic!("some payload has this sum");
}

#[test]
fn other_datagrams_pass_byte_for_byte() {
    let element = Element::new(0);
    let quiet: Vec<u8> = (0..700).map(|i| (i * 7) as u8 | 0x40).collect();
    let mut cut = udp(V4, &quic(Advice::UNKNOWN, 100));
    write_word(&mut cut, 24, 20); // the datagram ends within the SCONE packet
    for bytes in [udp(V4, &quiet), udp(V6, &quiet), udp(V4, &[]), cut] {
        assert_eq!(pass(&element, Unit::Packet, &bytes), bytes);
    }
    assert!(element.1.borrow().iter().all(|packet| packet.proto == Proto::Udp && packet.signal.is_none()));
    let mut fragment = udp(V4, &quic(Advice::UNKNOWN, 100));
    fragment[6] = 0x20;
    assert_eq!(Datagram::of(&fragment, &VnetHeader::default(), Unit::Packet), None);
    for len in 0..28 {
        assert_eq!(Datagram::of(&udp(V4, &quiet)[..len], &VnetHeader::default(), Unit::Packet), None);
    }
}

#[test]
fn a_frame_keeps_its_link_header() {
    let frame = |signal| [&[7; 12][..], &[0x08, 0], &udp(V4, &quic(signal, 300))].concat();
    let after = pass(&Element::new(20), Unit::Frame, &frame(Advice::UNKNOWN));
    assert_eq!(after, frame(Advice::new(20).unwrap()));
}

#[test]
fn each_datagram_of_a_super_packet_has_a_signal_of_its_own() {
    let (unknown, low) = (Advice::UNKNOWN, Advice::new(30).unwrap());
    let parts = [vec![0x41; 1200], quic(unknown, 1200), quic(low, 1200), quic(unknown, 900)];
    let mut bytes = udp(V4, &parts.concat());
    let sum = pseudo_header(&V4, UDP, bytes.len() - 20).fold();
    write_word(&mut bytes, 26, sum);
    let vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_UDP_L4,
        hdr_len: 28,
        gso_size: GSO,
        csum_start: 20,
        csum_offset: 6,
    };
    let element = Element::new(46);
    let sent = through(&element, Unit::Packet, vnet, &bytes);
    let payloads: Vec<&[u8]> = sent.iter().map(|(_, bytes)| &bytes[28..]).collect();
    assert_eq!(payloads, [&parts[0], &quic(element.0, 1200)[..], &parts[2], &quic(element.0, 900)]);
    for (vnet, bytes) in &sent {
        let mut whole = bytes.clone();
        assert!(bentpipe_wire::offload::complete(&mut whole, vnet));
        assert!(has_correct_checksum(V4, &whole, 20));
    }
}

#[test]
fn an_empty_datagram_has_no_data_and_leaves_as_it_came() {
    let mut frame = [[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2].as_slice(), &[0x08, 0x00], &udp(V4, &[])].concat();
    frame.resize(60, 0);
    for (unit, bytes, len) in
        [(Unit::Frame, frame, 28), (Unit::Packet, udp(V4, &[]), 28), (Unit::Packet, udp(V6, &[]), 48)]
    {
        let element = Element::new(46);
        assert_eq!(pass(&element, unit, &bytes), bytes);
        let seen = element.1.borrow();
        assert_eq!((seen[0].proto, seen[0].body.len, seen[0].wire_len()), (Proto::Udp, 0, Size(len)));
        let other = Element::new(46);
        let bytes = udp(V4, &[1]);
        assert_eq!(pass(&other, Unit::Packet, &bytes), bytes);
        assert!(other.1.borrow()[0].body.len > 0);
    }
}
