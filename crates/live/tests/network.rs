//! The network between ports, fed by hand, without clock and socket.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use bentpipe_base::{Dscp, Ecn, Instant};
use bentpipe_driver::{Hosts, LiveNetwork};
use bentpipe_live::relay::{Names, network};
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_wire::offload::{HEADER_SPACE, SuperPacket, VnetHeader};
use bentpipe_wire::parse;
use support::{super_packet, super_packet_as};

const MSS: usize = 1460;

fn scenario(link: &str) -> Scenario {
    let text = format!(
        "schema = 1\ntitle = \"t\"\nduration = \"100 s\"\n\
         [[hosts]]\nname = \"far\"\n[[hosts]]\nname = \"near\"\n\
         [[links]]\nname = \"link\"\nfrom = \"far\"\nto = \"near\"\n{link}\n\
         [[flows]]\nname = \"f\"\nfrom = \"far\"\nto = \"near\"\n"
    );
    load(&Source::new("test", text.as_str()), &[], None).unwrap_or_else(|d| panic!("{d}"))
}

fn net(link: &str) -> LiveNetwork {
    built(link).0
}

fn built(link: &str) -> (LiveNetwork, Names) {
    let ip = |n| std::net::IpAddr::from([10, 55, 0, n]);
    network(&scenario(link), Hosts::new([(0, ip(1)), (1, ip(2))], None))
}

/// An arrival's virtio header and bytes, as sent to the kernel.
fn sent(net: &mut LiveNetwork, arrival: &bentpipe_driver::Arrival) -> (VnetHeader, Vec<u8>) {
    net.emit(arrival, |emitted, header, payload| (emitted.vnet, [header, payload, emitted.tail()].concat()))
}

fn give(net: &mut LiveNetwork, at: u64, seq: u32, payload: usize) {
    let (bytes, vnet) = super_packet(MSS, seq, payload, true);
    assert!(net.store.borrow_mut().write(&bytes));
    net.advance(Instant(at));
    assert!(net.accept(0, bytes.len(), &vnet));
}

/// As `give`, with another port and code points.
fn give_as(net: &mut LiveNetwork, seq: u32, payload: usize, says: (u16, Dscp, Ecn)) {
    let (bytes, vnet) = super_packet_as(MSS, seq, payload, true, says);
    assert!(net.store.borrow_mut().write(&bytes));
    net.advance(Instant(0));
    assert!(net.accept(0, bytes.len(), &vnet));
}

/// Source port and ECN field of each wire packet that has arrived, from its emitted header.
fn headers(net: &mut LiveNetwork) -> Vec<(u16, Ecn)> {
    let mut all = Vec::new();
    while let Some(arrival) = net.take_arrival() {
        let (_, bytes) = sent(net, &arrival);
        let segment = parse(&bytes).unwrap();
        all.extend(core::iter::repeat_n((segment.sport, segment.ecn), arrival.pieces as usize));
        net.done(arrival);
    }
    all
}

/// Arrivals: due time, and the sequence number and length of each piece.
fn arrivals(net: &mut LiveNetwork) -> Vec<(u64, Vec<(u32, usize)>)> {
    let mut all = Vec::new();
    while let Some(arrival) = net.take_arrival() {
        assert_eq!(arrival.port, 1);
        let (vnet, bytes) = sent(net, &arrival);
        let cut = SuperPacket::parse(&bytes, &vnet).unwrap();
        let mut pieces = Vec::new();
        for i in 0..cut.pieces() {
            let mut header = [0; HEADER_SPACE];
            let piece = cut.piece(&bytes, i..i + 1, &mut header);
            let packet = [&header[..piece.header_len], &bytes[piece.payload]].concat();
            let segment = parse(&packet).unwrap();
            let seq = segment.tcp.seq.0;
            assert!(segment.payload.iter().enumerate().all(|(i, b)| *b == (seq as usize + i) as u8));
            pieces.push((seq, segment.payload.len()));
        }
        all.push((arrival.due.0, pieces));
        net.done(arrival);
    }
    all
}

#[test]
fn a_super_packet_is_served_as_wire_packets_and_leaves_as_one_if_it_arrives_as_one() {
    // 1500 B at 12 Mbit/s take 1 ms
    let mut net = net("rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"100 packets\"");
    give(&mut net, 0, 1000, 3 * MSS + 100);
    net.advance(Instant(11_500_000));
    assert_eq!(arrivals(&mut net), [(11_000_000, vec![(1000, MSS)])]);
    // the last is 140 B: 93.3 us
    net.advance(Instant(13_100_000));
    let joined = arrivals(&mut net);
    assert_eq!(joined, [(12_000_000, vec![(2460, MSS), (3920, MSS), (5380, 100)])]);
    assert!(net.store.borrow().is_empty(), "all is given back");
}

#[test]
fn a_full_queue_drops_wire_packets_and_frees_them() {
    let (mut net, names) = built("rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"2 packets\"");
    give(&mut net, 0, 0, 10 * MSS);
    net.advance(Instant(1_000_000_000));
    let pieces: usize = arrivals(&mut net).iter().map(|a| a.1.len()).sum();
    assert_eq!(pieces, 3, "one in service and two waiting");
    let links = names.with(&mut net, bentpipe_sim::report::link_reports);
    assert_eq!(links[0].drops.get("queue_full"), Some(&7));
    assert!(net.store.borrow().is_empty());
}

#[test]
fn without_anything_to_do_a_super_packet_passes_whole() {
    let mut net = net("rate = \"100 Gbit/s\"\ndelay = \"0 ms\"\nbuffer = \"100 packets\"");
    give(&mut net, 5, 7, 4 * MSS);
    net.advance(Instant(1_000_000));
    // sending takes 4 * 1500 * 8 / 100e9 s = 480 ns
    assert_eq!(arrivals(&mut net).len(), 1);
}

#[test]
fn late_turns_change_nothing_about_when_packets_are_due() {
    let run = |turn: u64| {
        let mut net = net("rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"20 packets\"\nloss = 0.1");
        net.keep_digest();
        let drain = |net: &mut LiveNetwork| {
            while let Some(arrival) = net.take_arrival() {
                net.done(arrival);
            }
        };
        for i in 0..400_u64 {
            let at = i * 1_700_000;
            for early in ((i.saturating_sub(1) * 1_700_000)..at).step_by(turn as usize) {
                net.advance(Instant(early));
                drain(&mut net);
            }
            give(&mut net, at, i as u32 * 5000, 1000 + (i as usize * 977) % 4000);
        }
        net.advance(Instant(2_000_000_000));
        drain(&mut net);
        net.digest()
    };
    assert_eq!(run(100_000), run(1_700_000));
    assert_eq!(run(100_000), run(333_333));
}

#[test]
fn what_is_not_ip_is_counted() {
    let mut net = net("rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"20 packets\"");
    assert!(net.store.borrow_mut().write(b"not a packet"));
    assert!(net.accept(0, 12, &VnetHeader::default()));
    assert_eq!(net.counters.not_ip, 1);
}

#[test]
fn codel_marks_real_packets_that_understand_it_and_drops_others() {
    let link = "rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"1000 packets\"\n\
                discipline = { codel = { target = \"5 ms\", interval = \"20 ms\" } }";
    let run = |ecn| {
        let (mut net, names) = built(link);
        for i in 0..5 {
            give_as(&mut net, i * 40 * MSS as u32, 40 * MSS, (1, Dscp::DEFAULT, ecn));
        }
        net.advance(Instant(1_000_000_000));
        let headers = headers(&mut net);
        assert!(net.store.borrow().is_empty(), "all is given back");
        let links = names.with(&mut net, bentpipe_sim::report::link_reports);
        let dropped = links[0].drops.get("aqm").copied().unwrap_or(0);
        (headers, dropped, links[0].marked.unwrap())
    };
    let (headers, dropped, marked) = run(Ecn::Ect0);
    let ce = headers.iter().filter(|h| h.1 == Ecn::Ce).count();
    assert_eq!((headers.len(), dropped, marked), (200, 0, ce as u64));
    assert!(ce > 10 && headers.iter().filter(|h| h.1 == Ecn::Ect0).count() == 200 - ce, "{ce}");
    let (headers, dropped, marked) = run(Ecn::NotEct);
    assert!(dropped > 10 && headers.len() as u64 == 200 - dropped && marked == 0, "{dropped}");
    assert!(headers.iter().all(|h| h.1 == Ecn::NotEct));
}

#[test]
fn fq_codel_tells_real_flows_apart_and_pushout_their_priority() {
    let link = |discipline| {
        net(&format!(
            "rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"1000 packets\"\ndiscipline = \"{discipline}\""
        ))
    };
    let ports = |net: &mut LiveNetwork| {
        net.advance(Instant(1_000_000_000));
        headers(net).iter().map(|h| h.0).collect::<Vec<_>>()
    };
    let mut fair = link("fq_codel");
    give_as(&mut fair, 0, 20 * MSS, (1, Dscp::DEFAULT, Ecn::NotEct));
    give_as(&mut fair, 0, 3 * MSS, (2, Dscp::DEFAULT, Ecn::NotEct));
    // one is being sent; then they alternate
    assert_eq!(ports(&mut fair)[..8], [1, 2, 1, 2, 1, 2, 1, 1]);
    let mut pushout = link("pushout");
    give_as(&mut pushout, 0, 3 * MSS, (1, Dscp::LE, Ecn::NotEct));
    give_as(&mut pushout, 0, 3 * MSS, (2, Dscp::DEFAULT, Ecn::NotEct));
    assert_eq!(ports(&mut pushout), [1, 2, 2, 2, 1, 1]);
}
