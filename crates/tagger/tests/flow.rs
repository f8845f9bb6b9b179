//! Flows with a rate through a tagger, packet by packet.

mod rig;

use bentpipe_advice::tia1039::{Kind, QOS_FLOW, QOS_SIGNAL, write};
use bentpipe_base::{Dscp, Flags, IpVersion, Packet, Rate, Seq, Signal, Size};
use bentpipe_tagger::{HOST, NETWORK, Tagger, TaggerConfig};
use rig::{BOTH, FIN_ACK, ISN, Rig, asking, config, mbps, response, said, structure};

const ACK: Flags = Flags::ACK;
const PSH: u8 = Flags::PSH.0;

fn rates(rig: &mut Rig) -> Vec<Option<Rate>> {
    rig.tagger.take_changes().iter().map(|news| news.rate).collect()
}

#[test]
fn a_reduction_is_returned_in_the_next_packet_and_a_wish_may_raise() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.open(mbps(30));
        assert_eq!(rates(&mut rig), [Some(mbps(30))]);
        // a router has lowered the rate of the peer's data
        let lower = structure(Kind::Renegotiate, Some(mbps(5)));
        rig.deliver(rig.back(ACK, 1, 1, 500), &[lower]);
        let ack = rig.send(rig.out(ACK, 1, 501, 0));
        assert_eq!((said(&ack), ack.dscp), (vec![(Kind::Response, Some(mbps(5)))], QOS_SIGNAL));
        // the peer returns a reduction of ours
        rig.deliver(rig.back(ACK, 501, 1, 0), &[response(mbps(10))]);
        assert_eq!(rates(&mut rig), [Some(mbps(10))]);
        // higher without being asked: not believed
        rig.deliver(rig.back(ACK, 501, 1, 0), &[response(mbps(20))]);
        assert_eq!((rates(&mut rig), rig.tagger.granted(&rig.key())), (vec![], Some(mbps(10))));
        rig.deliver(rig.back(ACK, 501, 1, 0), &[structure(Kind::Response, None)]);
        assert_eq!((rates(&mut rig), rig.counts()["refused"]), (vec![None], 1));
    }
}

#[test]
fn a_host_that_uses_its_rate_wishes_for_more() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.open(mbps(8));
        let mut wishes = Vec::new();
        for i in 0..300 {
            rig.wait(1);
            let data = rig.send(rig.out(ACK, 1 + i * 1000, 1, 1000));
            let said = said(&data).into_iter().filter(|said| said.0 != Kind::Forward).collect::<Vec<_>>();
            assert_eq!(data.dscp, if said.is_empty() { QOS_FLOW } else { QOS_SIGNAL });
            wishes.extend(said);
        }
        let twice = (Kind::Renegotiate, Some(bentpipe_advice::rounded(twice(mbps(8))).unwrap()));
        assert_eq!(wishes, [twice, twice]);
        rig.deliver(rig.back(ACK, 1, 300_001, 0), &[response(mbps(12))]);
        assert_eq!(rates(&mut rig), [Some(mbps(8)), Some(mbps(12))][1..]);
    }
}

fn twice(rate: Rate) -> Rate {
    Rate::from_bps(rate.bps() * 2).expect("more than zero")
}

#[test]
fn a_response_without_room_goes_before_the_data() {
    let mut rig = Rig::new(IpVersion::V4);
    rig.open(mbps(30));
    for (seq, len, packets) in [(1, 1460, 2), (1461, 1444, 1)] {
        rig.deliver(rig.back(ACK, 1, 1, 500), &[structure(Kind::Renegotiate, Some(mbps(5)))]);
        let out: Vec<_> = rig.all(HOST, rig.out(ACK, seq, 501, len)).into_iter().map(|(_, p)| p).collect();
        let (first, last) = (&out[0], &out[packets - 1]);
        assert_eq!((out.len(), said(first)), (packets, vec![(Kind::Response, Some(mbps(5)))]));
        assert_eq!((last.wire_len().0, last.tcp.seq), (1500, Seq(ISN.0).at(u64::from(seq))));
        assert_eq!((first.dscp, first.tcp.seq), (QOS_SIGNAL, last.tcp.seq));
    }
}

#[test]
fn ipv6_data_has_a_place_for_routers_until_a_timeout() {
    let mut rig = Rig::new(IpVersion::V6);
    rig.open(mbps(30));
    let place = vec![(Kind::Forward, Some(mbps(30)))];
    let data = rig.send(rig.out(ACK, 1, 1, 1000));
    assert_eq!((said(&data), data.dscp), (place.clone(), QOS_FLOW));
    assert_eq!(said(&rig.send(rig.out(ACK, 1001, 1, 0))), []);
    rig.wait(300);
    let again = rig.send(rig.out(ACK, 1, 1, 1000));
    assert_eq!((said(&again), again.dscp), (vec![], QOS_FLOW), "the path may drop such packets");
    // the peer answers what it is asked: the path does not
    rig.deliver(rig.back(ACK, 1, 1001, 0), &[]);
    let wish = rig.send(rig.out(ACK, 1001, 1, 1000));
    assert_eq!(said(&wish), [(Kind::Renegotiate, Some(mbps(30)))]);
    rig.deliver(rig.back(ACK, 1, 2001, 0), &[response(mbps(30))]);
    assert_eq!(said(&rig.send(rig.out(ACK, 2001, 1, 1000))), place);
}

#[test]
fn a_packet_that_fills_a_smaller_path_has_no_place() {
    let mut rig = Rig::new(IpVersion::V6);
    let config = TaggerConfig { mtu: Size(9000), ..config(&asking()) };
    rig.tagger = Tagger::new(config);
    rig.open(mbps(30));
    let places = |rig: &mut Rig, seq, len| said(&rig.send(rig.out(ACK, seq, 1, len))).len();
    // as long as the MSS of 1460 that was lowered allows; every link carries 1280; longer is a guess
    assert_eq!(
        [(1, 1444), (1445, 1204), (2649, 1424)].map(|(seq, len)| places(&mut rig, seq, len)),
        [1, 1, 1]
    );
    // a router said 1400: what is sent again is no longer than that, and so is what follows
    assert_eq!([(1, 1340), (1341, 104)].map(|(seq, len)| places(&mut rig, seq, len)), [0, 1]);
    assert_eq!([(4073, 1340), (5413, 1340)].map(|(seq, len)| places(&mut rig, seq, len)), [0, 0]);
    assert_eq!([(6753, 1325), (8078, 1324)].map(|(seq, len)| places(&mut rig, seq, len)), [0, 1]);
    // what must be said goes before the data
    rig.deliver(rig.back(ACK, 1, 9402, 500), &[structure(Kind::Renegotiate, Some(mbps(5)))]);
    let out: Vec<_> = rig.all(HOST, rig.out(ACK, 9402, 501, 1340)).into_iter().map(|(_, p)| p).collect();
    assert_eq!(
        (out.len(), said(&out[0]), out[0].body.len, said(&out[1])),
        (2, vec![(Kind::Response, Some(mbps(5)))], 0, vec![])
    );
}

#[test]
fn a_flow_of_packets_without_room_is_given_a_place_now_and_then() {
    let mut rig = Rig::new(IpVersion::V6);
    rig.open(mbps(30));
    let full = |rig: &mut Rig, seq| -> Vec<_> {
        let data = rig.out(Flags(ACK.0 | PSH), seq, 1, 1340);
        let out = rig.all(HOST, data).into_iter();
        out.map(|(_, p)| (p.tcp.seq, p.body.len, p.tcp.flags.0 & PSH, said(&p).len(), p.wire_len().0))
            .collect()
    };
    let at = |seq: u32| Seq(ISN.0).at(u64::from(seq));
    assert_eq!(full(&mut rig, 1), [(at(1), 1340, PSH, 0, 1400)], "a router may say 1400");
    assert_eq!(full(&mut rig, 1341), [(at(1341), 1324, 0, 1, 1400), (at(2665), 16, PSH, 1, 92)]);
    assert_eq!(full(&mut rig, 2681), [(at(2681), 1340, PSH, 0, 1400)], "one had a place a moment ago");
    rig.wait(100);
    assert_eq!(full(&mut rig, 1341), [(at(1341), 1340, PSH, 0, 1400)], "what is sent again stays whole");
    assert_eq!(full(&mut rig, 4021).len(), 2);
    rig.wait(100);
    rig.deliver(rig.back(ACK, 1, 5361, 0), &[response(mbps(20))]);
    assert_eq!(full(&mut rig, 5361).len(), 2);
    // without a rate there is nothing to be told
    rig.deliver(rig.back(ACK, 1, 6701, 0), &[structure(Kind::Response, None)]);
    rig.wait(100);
    assert_eq!(full(&mut rig, 6701).len(), 1);
}

#[test]
fn the_host_never_gets_a_structure_as_data() {
    let mut rig = Rig::new(IpVersion::V4);
    rig.open(mbps(30));
    let ours = |rig: &Rig, dscp| Packet { dscp, ..rig.flow_data(1, 1) };
    let data = rig.put(NETWORK, ours(&rig, QOS_FLOW));
    assert_eq!((data.dscp, data.body.len), (Dscp::DEFAULT, 100));
    // the path has changed the code point: of a structure, and of data
    let mut hidden = ours(&rig, Dscp::DEFAULT);
    hidden.signal = Signal::new(&[0; 16]).map(Box::new);
    hidden.seal();
    assert_eq!(rig.all(NETWORK, hidden), []);
    assert_eq!(rig.all(NETWORK, ours(&rig, QOS_SIGNAL)), []);
    assert_eq!(rig.counts()["withheld"], 2);
    // a peer without a rate does not mark its data
    assert_eq!(rig.put(NETWORK, ours(&rig, Dscp::DEFAULT)).body.len, 100);
    assert_eq!(rig.put(NETWORK, rig.back(ACK, 101, 1, 0)).dscp, Dscp::DEFAULT);
    // a structure of a flow that is not known, and of one that is, outside its window
    for port in [4000, 4321] {
        rig.port = port;
        let mut far = rig.back(ACK, 900_000, 1, 100);
        write(&mut far, &[response(mbps(1))]);
        let got = rig.put(NETWORK, far);
        assert_eq!((got.signal, got.dscp, got.body.len), (None, Dscp::DEFAULT, 100));
    }
    rig.port = 4000;
    assert_eq!(rig.tagger.granted(&rig.key()), Some(mbps(30)), "it was not believed");
}

#[test]
fn data_that_comes_again_as_it_was_and_may_not_be_delivered_ends_the_flow() {
    let mut rig = Rig::new(IpVersion::V4);
    rig.open(mbps(30));
    let withheld = |rig: &mut Rig, ms, len| {
        let mut packet = rig.back(ACK, 1, 1, len);
        packet.signal = Signal::new(response(mbps(1)).bytes()).map(Box::new);
        packet.seal();
        rig.wait(ms);
        rig.all(NETWORK, packet)
    };
    // a structure alone, whose code point was lost, may be repeated
    (0..20).for_each(|_| assert_eq!(withheld(&mut rig, 300, 0), []));
    // the peer's agent was killed, and its data ends like a structure
    (0..5).for_each(|_| assert_eq!(withheld(&mut rig, 300, 100), []));
    // nor does data that a forger guessed
    let mut ahead = rig.back(ACK, 1000, 1, 100);
    ahead.signal = Signal::new(response(mbps(1)).bytes()).map(Box::new);
    ahead.seal();
    (0..20).for_each(|_| assert_eq!(rig.all(NETWORK, ahead.clone()), []));
    // the host has got something else meanwhile
    rig.send(rig.out(ACK, 1, 2, 0));
    (0..5).for_each(|_| assert_eq!(withheld(&mut rig, 300, 100), []));
    let [(port, reset)] = &*withheld(&mut rig, 300, 100) else { panic!("no reset") };
    assert_eq!((*port, reset.tcp.seq, reset.body.len, &reset.signal), (HOST, Seq(ISN.1).at(2), 0, &None));
    assert_eq!((reset.tcp.flags, reset.dscp), (Flags::RST.with(ACK), Dscp::DEFAULT));
    // for some time the former flow is known
    (0..300).for_each(|_| assert_eq!(withheld(&mut rig, 100, 100), []));
    assert_eq!(rig.counts()["reset"], 1);
    let data = rig.put(NETWORK, rig.flow_data(2, 1));
    assert_eq!(data.body.len, 100, "what else comes is for the host to refuse");
}

#[test]
fn data_that_looks_like_a_structure_is_cut() {
    let mut rig = Rig::new(IpVersion::V4);
    rig.open(mbps(30));
    let looks = *response(mbps(1)).bytes();
    let mut data = rig.out(FIN_ACK, 1, 1, 100);
    data.signal = Signal::new(&looks).map(Box::new);
    data.seal();
    let out: Vec<_> = rig.all(HOST, data).into_iter().map(|(_, packet)| packet).collect();
    let parts: Vec<_> = out.iter().map(|p| (p.tcp.seq, p.tcp.flags, p.dscp, p.body.len)).collect();
    let at = |n| Seq(ISN.0).at(n);
    assert_eq!(parts, [(at(1), ACK, QOS_FLOW, 100), (at(116), FIN_ACK, QOS_FLOW, 0)]);
    let ends = out.iter().map(|p| p.signal.as_ref().unwrap().bytes());
    assert_eq!(ends.collect::<Vec<_>>(), [&looks[..15], &looks[15..]]);
    // the peer acknowledges all of it: its packet is within the window
    rig.deliver(rig.back(ACK, 1, 118, 0), &[response(mbps(9))]);
    assert_eq!(rig.tagger.granted(&rig.key()), Some(mbps(9)));
}

#[test]
fn a_request_that_was_not_answered_is_repeated_without_data() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.send(rig.out(Flags::SYN, 0, 0, 0));
        rig.wait(100);
        rig.deliver(rig.back(rig::SYN_ACK, 0, 1, 0), &[]);
        let request = vec![(Kind::Request, Some(mbps(10_000)))];
        assert_eq!(said(&rig.send(rig.out(ACK, 1, 1, 0))), request);
        let (mut repeats, mut plain_at) = (0, None);
        for i in 0..40 {
            rig.wait(100);
            let out = rig.all(HOST, rig.out(ACK, 1 + i * 100, 1, 100));
            let (_, data) = out.last().unwrap();
            assert_eq!((said(data), data.body.len), (vec![], 100));
            if let [(_, ack), _] = &out[..] {
                let pure = (ack.body.len, ack.tcp.seq, ack.tcp.flags);
                assert_eq!(pure, (0, Seq(ISN.0).at(1 + u64::from(i) * 100), ACK));
                assert_eq!(said(ack), request);
                repeats += 1;
            }
            if data.dscp == Dscp::DEFAULT {
                plain_at.get_or_insert(i);
            }
            let ack = Packet { dscp: QOS_FLOW, ..rig.back(ACK, 1, 1 + (i + 1) * 100, 0) };
            rig.put(NETWORK, ack);
        }
        assert_eq!((repeats, rig.counts()["plain"]), (7, 1), "eight with the first, then it gives up");
        assert!(plain_at.is_some_and(|i| (14..20).contains(&i)), "{plain_at:?}");
    }
}

#[test]
fn after_silence_the_rate_is_confirmed() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.open(mbps(30));
        rig.send(rig.out(ACK, 1, 1, 100));
        rig.deliver(rig.back(ACK, 1, 101, 0), &[]);
        rates(&mut rig);
        rig.wait(2100);
        let data = rig.send(rig.out(ACK, 101, 1, 100));
        assert_eq!(said(&data), [(Kind::Renegotiate, Some(mbps(30)))]);
        rig.deliver(rig.back(ACK, 1, 201, 0), &[response(mbps(30))]);
        assert_eq!(rates(&mut rig), [Some(mbps(30))], "the driver hears of the same rate again");
    }
}

#[test]
fn a_flow_ends_with_fins_a_reset_or_silence() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.open(mbps(30));
        rates(&mut rig);
        rig.send(rig.out(FIN_ACK, 1, 1, 0));
        rig.put(NETWORK, Packet { dscp: QOS_FLOW, ..rig.back(FIN_ACK, 1, 2, 0) });
        assert_eq!(rig.send(rig.out(ACK, 2, 2, 0)).dscp, QOS_FLOW, "late packets are followed");
        rig.wait(60_000);
        assert_eq!((rates(&mut rig), rig.counts()["flows"]), (vec![None], 0));

        rig.open(mbps(30));
        // forged: outside the window; then a real one
        rig.put(NETWORK, rig.back(Flags::RST, 500_000, 0, 0));
        rig.wait(100_000);
        assert_eq!(rig.counts()["flows"], 1);
        rig.put(NETWORK, rig.back(Flags::RST, 1, 0, 0));
        rig.wait(60_000);
        assert_eq!((rates(&mut rig).last(), rig.counts()["flows"]), (Some(&None), 0));

        rig.open(mbps(30));
        rig.wait(3 * 3_600_000);
        assert_eq!((rates(&mut rig).last(), rig.counts()["flows"]), (Some(&None), 0));
    }
}

#[test]
fn a_forged_syn_changes_no_open_flow() {
    for ip in BOTH {
        let mut rig = Rig::with(ip, config(&asking()));
        rig.open(mbps(30));
        rig.deliver(rig.back(Flags::SYN, 77_777, 0, 0), &[structure(Kind::Request, Some(mbps(1)))]);
        assert_eq!(rig.send(rig.out(ACK, 1, 1, 100)).dscp, QOS_FLOW);
        assert_eq!(rig.tagger.granted(&rig.key()), Some(mbps(30)));
        // the host itself starts anew
        let syn = rig.send(rig.out(Flags::SYN, 5_000_000, 0, 0));
        assert_eq!(said(&syn).len(), 1);
        assert_eq!(rates(&mut rig), [None]);
    }
}
