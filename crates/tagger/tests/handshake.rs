//! Handshakes through a tagger, packet by packet.

mod rig;

use bentpipe_advice::negotiation::AskConfig;
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, QOS_SIGNAL, write};
use bentpipe_base::{Addr, Body, Dscp, Duration, Flags, OtherOptions, Packet, Seq};
use bentpipe_tagger::{HOST, NETWORK, TaggerConfig};
use rig::{BOTH, ISN, Rig, SYN_ACK, asking, config, mbps, response, said, structure};

#[test]
fn a_host_that_opens_asks_and_is_granted_a_rate() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        let syn = rig.send(rig.out(Flags::SYN, 0, 0, 0));
        assert_eq!(said(&syn), [(Kind::Request, Some(mbps(10_000)))]);
        assert_eq!((syn.dscp, syn.tcp.mss, syn.body.len), (QOS_SIGNAL, Some(1444), 0));
        rig.wait(100);
        let syn_ack = rig.deliver(rig.back(SYN_ACK, 0, 1, 0), &[response(mbps(30))]);
        assert_eq!(syn_ack.tcp.mss, Some(1444), "what the host sends has room for a structure too");
        let news = rig.tagger.take_changes();
        assert_eq!((news.len(), news[0].flow, news[0].rate), (1, rig.key(), Some(mbps(30))));
        assert_eq!(news[0].srtt, Duration::from_millis(100));
        let ack = rig.send(rig.out(Flags::ACK, 1, 1, 0));
        assert_eq!((ack.dscp, said(&ack)), (QOS_FLOW, vec![]));
        let data = rig.send(rig.out(Flags::ACK, 1, 1, 1000));
        assert_eq!((data.dscp, data.body.len), (QOS_FLOW, 1000));
        let counts = rig.counts();
        assert_eq!((counts["asked"], counts["granted"], counts["flows"]), (1, 1, 1));
    }
}

#[test]
fn a_host_that_is_called_answers_and_asks_for_itself() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        // the host has the service
        let swap = |mut packet: Packet| {
            (packet.sport, packet.dport) = (packet.dport, packet.sport);
            packet
        };
        let called = swap(rig.back(Flags::SYN, 0, 0, 0));
        let syn = rig.deliver(called.clone(), &[structure(Kind::Request, Some(mbps(30)))]);
        assert_eq!(syn.tcp.mss, Some(1444));
        let mut syn_ack = swap(rig.out(SYN_ACK, 0, 1, 0));
        syn_ack.dscp = Dscp::LE;
        let answer = rig.send(syn_ack.clone());
        let own = (Kind::Request, Some(mbps(10_000)));
        assert_eq!(said(&answer), [(Kind::Response, Some(mbps(30))), own]);
        assert_eq!((answer.dscp, answer.tcp.mss), (QOS_SIGNAL, Some(1444)));
        // sent again, it shows only that this end signals
        rig.deliver(called, &[]);
        let again = rig.send(syn_ack);
        assert_eq!((said(&again), again.dscp), (vec![], QOS_SIGNAL));
        rig.wait(100);
        rig.deliver(swap(rig.back(Flags::ACK, 1, 1, 0)), &[response(mbps(7))]);
        assert_eq!(rig.tagger.take_changes()[0].rate, Some(mbps(7)));
        let data = rig.send(swap(rig.out(Flags::ACK, 1, 1, 900)));
        assert_eq!(data.dscp, QOS_FLOW);
        assert_eq!((rig.counts()["answered"], rig.counts()["asked"]), (1, 0));
    }
}

#[test]
fn an_end_that_was_called_adds_nothing_until_the_peer_shows_that_it_knows() {
    let mut rig = Rig::new(BOTH[0]);
    let swap = |mut packet: Packet| {
        (packet.sport, packet.dport) = (packet.dport, packet.sport);
        packet
    };
    rig.deliver(swap(rig.back(Flags::SYN, 0, 0, 0)), &[]);
    rig.send(swap(rig.out(SYN_ACK, 0, 1, 0)));
    // the SYN/ACK may have arrived without its code point: the peer would take a structure for data
    rig.put(NETWORK, swap(rig.back(Flags::ACK, 1, 1, 0)));
    rig.wait(300); // its own request was not answered
    for _ in 0..3 {
        assert_eq!(said(&rig.send(swap(rig.out(Flags::ACK, 1, 1, 0)))), []);
    }
    // nor may a router put one into its data
    assert_eq!(rig.send(swap(rig.out(Flags::ACK, 1, 1, 100))).dscp, Dscp::DEFAULT);
    let known = Packet { dscp: QOS_FLOW, ..swap(rig.back(Flags::ACK, 1, 1, 0)) };
    rig.put(NETWORK, known);
    rig.send(swap(rig.out(Flags::ACK, 101, 1, 0)));
    let ack = rig.send(swap(rig.out(Flags::ACK, 101, 1, 0)));
    assert_eq!(said(&ack), [(Kind::Request, Some(mbps(10_000)))]);
    assert_eq!(rig.send(swap(rig.out(Flags::ACK, 101, 1, 100))).dscp, QOS_FLOW);
}

#[test]
fn an_end_that_only_answers_sends_its_data_without_a_code_point() {
    let ask = AskConfig { take: Some(mbps(8)), ..AskConfig::default() };
    for ip in BOTH {
        let mut rig = Rig::with(ip, config(&ask));
        let syn = rig.send(rig.out(Flags::SYN, 0, 0, 0));
        assert_eq!((said(&syn), syn.dscp), (vec![], QOS_SIGNAL));
        rig.deliver(rig.back(SYN_ACK, 0, 1, 0), &[structure(Kind::Request, Some(mbps(30)))]);
        let ack = rig.send(rig.out(Flags::ACK, 1, 1, 0));
        assert_eq!(said(&ack), [(Kind::Response, Some(mbps(8)))]);
        assert_eq!(rig.send(rig.out(Flags::ACK, 1, 1, 700)).dscp, Dscp::DEFAULT);
        assert_eq!(rig.tagger.take_changes(), []);
    }
}

#[test]
fn a_peer_that_does_not_signal_costs_nothing() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.send(rig.out(Flags::SYN, 0, 0, 0));
        let syn_ack = rig.back(SYN_ACK, 0, 1, 0);
        assert_eq!(rig.put(NETWORK, syn_ack.clone()), syn_ack);
        for len in [0, 1448] {
            let packet = rig.out(Flags::ACK, 1, 1, len);
            assert_eq!(rig.send(packet.clone()), packet);
        }
        assert_eq!((rig.counts()["flows"], rig.counts()["plain"]), (0, 1));
        assert_eq!(rig.tagger.take_changes(), []);
    }
}

#[test]
fn a_syn_that_is_sent_again_has_no_structure_and_later_no_mark() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.send(rig.out(Flags::SYN, 0, 0, 0));
        rig.wait(1000);
        let second = rig.send(rig.out(Flags::SYN, 0, 0, 0));
        assert_eq!((said(&second), second.dscp, second.tcp.mss), (vec![], QOS_SIGNAL, Some(1444)));
        rig.wait(2000);
        let third = rig.send(rig.out(Flags::SYN, 0, 0, 0));
        assert_eq!((said(&third), third.dscp), (vec![], Dscp::DEFAULT));
        rig.wait(50);
        // the second one arrived: the request is in the next packet without data
        rig.deliver(rig.back(SYN_ACK, 0, 1, 0), &[]);
        let ack = rig.send(rig.out(Flags::ACK, 1, 1, 0));
        assert_eq!((said(&ack), ack.dscp), (vec![(Kind::Request, Some(mbps(10_000)))], QOS_SIGNAL));
        rig.deliver(rig.back(Flags::ACK, 1, 1, 0), &[response(mbps(9))]);
        assert_eq!(rig.tagger.take_changes()[0].rate, Some(mbps(9)));
    }
}

#[test]
fn a_peer_that_takes_the_structure_for_data_loses_no_byte_and_is_remembered() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        let syn = rig.out(Flags::SYN, 0, 0, 0);
        rig.send(syn.clone());
        assert_eq!(rig.all(NETWORK, rig.back(SYN_ACK, 0, 17, 0)), [], "the host must not see it");
        rig.wait(1000);
        let out = rig.all(HOST, syn.clone());
        assert_eq!(out.len(), 2);
        let (reset, plain) = (&out[0].1, &out[1].1);
        assert_eq!((reset.tcp.flags, reset.tcp.seq), (Flags::RST, Seq(ISN.0).at(17)));
        assert_eq!((reset.tcp.mss, &reset.signal, reset.body.len), (None, &None, 0));
        assert_eq!(plain, &syn);
        let syn_ack = rig.back(SYN_ACK, 0, 1, 0);
        assert_eq!(rig.put(NETWORK, syn_ack.clone()), syn_ack);
        // the next connections start without a structure, until the peer is forgotten
        rig.port = 4001;
        let next = rig.out(Flags::SYN, 0, 0, 0);
        assert_eq!(rig.send(next.clone()), next);
        rig.wait(4 * 3_600_000);
        rig.port = 4002;
        let later = rig.send(rig.out(Flags::SYN, 0, 0, 0));
        assert_eq!((later.dscp, rig.counts()["taken_as_data"]), (QOS_SIGNAL, 1));
    }
}

#[test]
fn a_syn_ack_whose_code_point_was_reset_is_not_believed() {
    let mut rig = Rig::new(BOTH[0]);
    let syn = rig.out(Flags::SYN, 0, 0, 0);
    rig.send(syn.clone());
    // 16 bytes after the SYN/ACK: the peer signals, and the path hides where its structures are
    assert_eq!(rig.all(NETWORK, rig.back(SYN_ACK, 0, 1, 16)), []);
    let out = rig.all(HOST, syn.clone());
    assert_eq!((out.len(), out[0].1.tcp.seq, &out[1].1), (2, Seq(ISN.0).at(1), &syn));
}

#[test]
fn a_refusal_of_the_connection_reaches_the_host() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        rig.send(rig.out(Flags::SYN, 0, 0, 0));
        // the peer has counted the 16 bytes
        let reset = rig.back(Flags(0x14), 0, 17, 0);
        assert_eq!(rig.put(NETWORK, reset).tcp.ack, Seq(ISN.0).at(1));
    }
}

#[test]
fn what_must_not_change_passes_untouched() {
    for ip in BOTH {
        let mut rig = Rig::new(ip);
        let syn = rig.out(Flags::SYN, 0, 0, 0);
        let with = |kind| OtherOptions { kinds: kind, len: 20 };
        let mut others = vec![
            Packet { other_options: with(OtherOptions::SIGNED), ..syn.clone() },
            Packet { other_options: with(OtherOptions::FAST_OPEN), ..syn.clone() },
            Packet { body: Body { off: 0, len: 100 }, ..syn.clone() },
            Packet { dport: 81, ..syn.clone() },
            Packet { dscp: QOS_SIGNAL, ..syn.clone() }, // this host signals itself
            Packet { proto: bentpipe_base::Proto::Udp, ..syn.clone() },
            Packet { src: Addr(50), ..syn },
        ];
        for packet in others.clone() {
            assert_eq!(rig.send(packet.clone()), packet);
        }
        for packet in &mut others {
            (packet.src, packet.dst) = (packet.dst, packet.src);
            if packet.dport != 81 {
                (packet.sport, packet.dport) = (packet.dport, packet.sport);
            }
            packet.dscp = Dscp::DEFAULT;
            assert_eq!(&rig.put(NETWORK, packet.clone()), packet);
        }
        assert_eq!(rig.counts()["flows"], 0);
    }
}

#[test]
fn handshakes_are_bounded_and_expire() {
    let small = TaggerConfig { half_open: 2, flows: 3, ..config(&asking()) };
    let mut rig = Rig::with(BOTH[0], small);
    for port in 1..=4 {
        rig.port = port;
        assert_eq!(rig.send(rig.out(Flags::SYN, 0, 0, 0)).dscp, QOS_SIGNAL);
    }
    assert_eq!(rig.counts()["flows"], 2);
    // the SYN/ACK of one that was displaced: the host gets no structure
    rig.port = 1;
    rig.deliver(rig.back(SYN_ACK, 0, 1, 0), &[response(mbps(3))]);
    assert_eq!(rig.tagger.take_changes(), []);
    rig.wait(130_000);
    assert_eq!(rig.counts()["flows"], 0);
}

#[test]
fn a_flow_beside_the_rules_keeps_its_bytes() {
    for ip in BOTH {
        let mut rig = Rig::with(ip, TaggerConfig::new(Vec::new()));
        let mut data = rig.back(Flags::ACK, 1, 1, 100);
        write(&mut data, &[response(mbps(3))]);
        assert_eq!(rig.put(NETWORK, data.clone()), data);
        let syn = rig.out(Flags::SYN, 0, 0, 0);
        assert_eq!(rig.send(syn.clone()), syn);
    }
}
