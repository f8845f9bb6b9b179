//! Unaccelerated packets pass unchanged, and are counted by reason.

use crate::table_rig::{ACK, FIN_ACK, RST, Rig, SYN, SYN_ACK, Talk, datagram, talk};
use bentpipe_base::{
    Addr, Body, Dscp, Duration, Ecn, Flags, OtherOptions, Packet, Port, Rate, Seq, Signal, Size,
};
use bentpipe_gateway::{
    Action, Config, EndReason, Gateway, LAN, Limits, PassReason, Policy, PortRange, Rule, SATELLITE, State,
    WindowClass,
};

fn other(port: Port) -> Port {
    if port == LAN { SATELLITE } else { LAN }
}

/// Puts packets in; expects them out at once, unchanged and in order.
fn passes(rig: &mut Rig, packets: &[(Port, Packet)]) {
    rig.take();
    for (port, packet) in packets {
        rig.put(*port, packet.clone());
    }
    let out: Vec<(Port, Packet)> = rig.take().into_iter().map(|(port, p)| (port, *p)).collect();
    let expected: Vec<(Port, Packet)> = packets.iter().map(|(port, p)| (other(*port), p.clone())).collect();
    assert_eq!(out, expected);
}

/// A whole connection: 1000 bytes one way, 50 back.
fn dialogue(t: Talk) -> Vec<(Port, Packet)> {
    vec![
        (LAN, t.lan(SYN, 0, 0, 0)),
        (SATELLITE, t.sat(SYN_ACK, 0, 1, 0)),
        (LAN, t.lan(ACK, 1, 1, 0)),
        (LAN, t.lan(ACK, 1, 1, 1000)),
        (SATELLITE, t.sat(ACK, 1, 1001, 50)),
        (LAN, t.lan(FIN_ACK, 1001, 51, 0)),
        (SATELLITE, t.sat(FIN_ACK, 51, 1002, 0)),
        (LAN, t.lan(ACK, 1002, 52, 0)),
    ]
}

fn now_passing(rig: &Rig) -> Vec<(PassReason, u32)> {
    let report = rig.gateway.report();
    PassReason::ALL.into_iter().zip(report.passing).filter(|(_, n)| *n > 0).collect()
}

#[test]
fn what_is_not_tcp_passes_in_order() {
    let mut rig = Rig::new(Config::default());
    let mut packets: Vec<(Port, Packet)> = (0..50).map(|i| (LAN, datagram(talk(1), i, 100))).collect();
    let mut opaque = Packet::default();
    opaque.set_opaque(0, bentpipe_base::Body::kept(77, 0, 1400), 0);
    packets.push((SATELLITE, opaque.clone()));
    packets.push((LAN, opaque));
    passes(&mut rig, &packets);
    let counters = rig.gateway.counters();
    assert_eq!((counters.not_tcp, counters.flows, counters.packets), (52, 0, [51, 1]));
    assert_eq!(rig.missing(52), 0);
}

#[test]
fn a_connection_whose_syn_was_not_seen_passes() {
    let mut rig = Rig::new(Config::default());
    let t = talk(1);
    passes(&mut rig, &dialogue(t)[1..]);
    assert_eq!(rig.gateway.counters().passed(PassReason::MidStream), 1);
    let (flows, next) = rig.gateway.flows(0, 10);
    assert_eq!(
        (flows.len(), next, flows[0].pass_reason, flows[0].opened_by_lan),
        (1, None, Some(PassReason::MidStream), None)
    );
    assert_eq!((flows[0].addrs, flows[0].ports), ([t.lan.0, t.sat.0], [t.lan.1, t.sat.1]));
    assert_eq!((flows[0].packets, flows[0].bytes), ([4, 3], [Size(1000), Size(50)]));
}

#[test]
fn one_direction_alone_passes_and_is_named_so() {
    let mut rig = Rig::new(Config::default());
    let t = talk(1);
    let acks: Vec<(Port, Packet)> = (0..20).map(|i| (SATELLITE, t.sat(ACK, 1, 1 + i * 1000, 0))).collect();
    passes(&mut rig, &acks);
    assert_eq!(now_passing(&rig), [(PassReason::OneDirection, 1)]);
    // the other direction takes this path after all
    passes(&mut rig, &[(LAN, t.lan(ACK, 20_001, 1, 1000))]);
    assert_eq!(now_passing(&rig), [(PassReason::MidStream, 1)]);
}

#[test]
fn a_handshake_of_which_one_direction_is_seen_is_given_up() {
    let mut rig = Rig::new(Config::default());
    let t = talk(1);
    passes(
        &mut rig,
        &[(LAN, t.lan(SYN, 0, 0, 0)), (LAN, t.lan(ACK, 1, 1, 0)), (LAN, t.lan(ACK, 1, 1, 1460))],
    );
    assert_eq!(now_passing(&rig), [(PassReason::OneDirection, 1)]);
    assert_eq!(rig.gateway.report().accelerated, 0);
}

/// Its sender paces at the rate that it is granted, and its structures belong into its own packets.
#[test]
fn a_connection_that_asks_for_a_rate_passes_untouched() {
    let mut rig = Rig::new(Config::default());
    let mut packets = dialogue(talk(1));
    packets[0].1.dscp = Dscp::new(3).unwrap();
    packets[0].1.signal = Signal::new(&[1; 16]).map(Box::new);
    packets[3].1.signal = packets[0].1.signal.clone();
    passes(&mut rig, &packets[..5]);
    assert_eq!(now_passing(&rig), [(PassReason::AsksRate, 1)]);
    // the code point alone says nothing
    let mut rig = Rig::new(Config::default());
    packets[0].1.signal = None;
    rig.put(LAN, packets[0].1.clone());
    assert_eq!(now_passing(&rig), []);
}

#[test]
fn signed_segments_pass_untouched() {
    let mut rig = Rig::new(Config::default());
    let mut packets = dialogue(talk(1));
    for (_, packet) in &mut packets {
        packet.other_options = OtherOptions { kinds: OtherOptions::SIGNED, len: 20 };
        packet.seal();
    }
    passes(&mut rig, &packets);
    assert_eq!(now_passing(&rig), [(PassReason::Signed, 1)]);
}

#[test]
fn a_multipath_subflow_passes() {
    let mut rig = Rig::new(Config::default());
    let mut packets = dialogue(talk(1));
    packets[0].1.other_options = OtherOptions { kinds: OtherOptions::MULTIPATH, len: 12 };
    packets[0].1.seal();
    passes(&mut rig, &packets);
    assert_eq!(now_passing(&rig), [(PassReason::Multipath, 1)]);
}

#[test]
fn a_bypassed_gateway_counts_and_passes() {
    let mut rig = Rig::new(Config { accelerate: false, ..Config::default() });
    passes(&mut rig, &dialogue(talk(1)));
    assert_eq!(now_passing(&rig), [(PassReason::Bypassed, 1)]);
    rig.wait(Duration::from_secs(241));
    let report = rig.gateway.take_closed().unwrap();
    assert_eq!(
        (report.end, report.state, report.delivered),
        (Some(EndReason::Closed), State::Closing, Size(1000))
    );
    assert_eq!((rig.gateway.take_closed(), rig.gateway.report().states), (None, [0; 4]));
}

#[test]
fn the_policy_decides_by_the_syn() {
    let rule = Rule {
        action: Action::Pass,
        from: Vec::new(),
        to: Vec::new(),
        ports: Vec::new(),
        from_ports: vec![PortRange { first: 5, last: 5 }],
        dscp: Vec::new(),
        opened_from: None,
    };
    let policy = Policy { rules: vec![rule], ..Policy::default() };
    let mut rig = Rig::with(Gateway::new(Config::default()).with_policy(policy.clone()));
    // without real addresses no rule applies
    rig.open(talk(5));
    assert_eq!(rig.gateway.report().accelerated, 1);
    let mut rig = Rig::with(Gateway::new(Config::default()).with_policy(policy));
    rig.name_addresses();
    passes(&mut rig, &dialogue(talk(5)));
    rig.open(talk(6));
    assert_eq!((now_passing(&rig), rig.gateway.report().accelerated), (vec![(PassReason::Policy, 1)], 1));
}

#[test]
fn more_connections_than_may_be_accelerated_pass() {
    let limits = Limits { flows: 3, ..Limits::default() };
    let mut rig = Rig::new(Config { limits, ..Config::default() });
    for n in 0..5 {
        rig.open(talk(n));
    }
    assert_eq!((now_passing(&rig), rig.gateway.report().accelerated), (vec![(PassReason::Overload, 2)], 3));
    passes(&mut rig, &[(LAN, talk(4).lan(ACK, 1, 1, 1000)), (SATELLITE, talk(4).sat(ACK, 1, 1001, 0))]);
}

#[test]
fn without_memory_everything_passes() {
    let limits = Limits { memory: Size::ZERO, ..Limits::default() };
    let mut rig = Rig::new(Config { limits, ..Config::default() });
    passes(&mut rig, &dialogue(talk(1)));
    assert_eq!(now_passing(&rig), [(PassReason::Memory, 1)]);
}

#[test]
fn without_a_table_everything_passes() {
    let limits = Limits { flows: 0, opening: 0, passing: 0, reports: 0, ..Limits::default() };
    let mut rig = Rig::new(Config { limits, ..Config::default() });
    for n in 0..20 {
        passes(&mut rig, &dialogue(talk(n)));
    }
    assert_eq!((rig.gateway.counters().not_tracked, rig.gateway.report().states), (160, [0; 4]));
}

#[test]
fn a_reset_of_nothing_is_not_followed() {
    let mut rig = Rig::new(Config::default());
    passes(&mut rig, &[(SATELLITE, talk(1).sat(RST, 0, 0, 0))]);
    assert_eq!((rig.gateway.report().states, rig.gateway.counters().not_tracked), ([0; 4], 1));
}

#[test]
fn a_packet_from_the_wrong_side_passes_around_its_connection() {
    let mut rig = Rig::new(Config::default());
    rig.open(talk(1));
    passes(&mut rig, &[(SATELLITE, talk(1).lan(ACK, 1, 1, 1460)), (LAN, talk(1).sat(RST, 1, 1, 0))]);
    assert_eq!((rig.gateway.counters().strays, rig.gateway.report().accelerated), (2, 1));
}

#[test]
fn marks_options_and_urgent_data_of_what_passes_stay() {
    let mut rig = Rig::new(Config { accelerate: false, ..Config::default() });
    let mut urgent = talk(1).lan(Flags(Flags::URG.0 | ACK.0 | Flags::PSH.0), 1, 1, 10);
    urgent.ecn = Ecn::Ce;
    urgent.dscp = bentpipe_base::Dscp::LE;
    urgent.other_options = OtherOptions { kinds: OtherOptions::UNKNOWN, len: 8 };
    urgent.tcp.sack.push(Seq(1), Seq(5));
    urgent.seal();
    let mut with_data = talk(2).lan(SYN, 0, 0, 500);
    with_data.other_options = OtherOptions { kinds: OtherOptions::FAST_OPEN, len: 12 };
    with_data.seal();
    let mut large = talk(1).lan(ACK, 11, 1, 64_000);
    large.segment = 1448;
    large.body = Body { off: 3 << 32, len: 64_000 };
    passes(&mut rig, &[(LAN, urgent), (LAN, with_data), (LAN, large)]);
    assert_eq!(rig.gateway.counters().packets, [2 + 45, 0], "a super-packet counts as what it stands for");
}

#[test]
fn what_passes_shares_the_hop_where_a_rate_is_set() {
    let rate = Rate::from_bps(1_000_000);
    let mut rig = Rig::new(Config { rate, accelerate: false, ..Config::default() });
    for i in 0..10 {
        rig.put(LAN, datagram(talk(1), i, 1000));
        rig.put(SATELLITE, datagram(talk(1), i, 1000));
    }
    rig.wait(Duration::from_secs(2));
    let order: Vec<u64> =
        rig.take().iter().filter(|(port, _)| *port == SATELLITE).map(|(_, p)| p.body.off).collect();
    assert_eq!(order, (0..10).collect::<Vec<_>>(), "all of them, in order");
}

/// Two hosts, one with window scaling, that open three connections each.
#[test]
fn windows_are_counted_whether_accelerated_or_not() {
    for accelerate in [true, false] {
        let mut rig = Rig::new(Config { accelerate, ..Config::default() });
        for n in 0..6 {
            let t = Talk { sat: (Addr(2 + n % 2), 80), ..talk(n) };
            rig.put(LAN, t.lan(SYN, 0, 0, 0));
            rig.wait(Duration::from_millis(500));
            let mut answer = t.sat(SYN_ACK, 0, 1, 0);
            answer.tcp.window_scale = answer.tcp.window_scale.filter(|_| n % 2 == 1);
            answer.seal();
            rig.put(SATELLITE, answer);
            rig.put(LAN, t.lan(ACK, 1, 1, 100));
            rig.put(SATELLITE, t.sat(ACK, 1, 101, 0));
        }
        let report = rig.gateway.report();
        let accelerated = if accelerate { 3 } else { 0 };
        let class = |window| WindowClass { window: Size(window), connections: 3, accelerated, clients: 1 };
        assert_eq!(report.windows, [class(65_535), class(65_535 << 7)]);
        assert_eq!(report.hop_rtt, Some(Duration::from_millis(500)));
    }
}

#[test]
fn a_share_is_left_alone_and_compared() {
    let mut rig = Rig::new(Config { sample: 0.25, ..Config::default() });
    let connections = 1000;
    for n in 0..connections {
        let t = talk(n);
        rig.open(t);
        rig.put(LAN, t.lan(FIN_ACK, 1, 1, 200_000));
        rig.wait(Duration::from_millis(100));
        rig.put(SATELLITE, t.sat(FIN_ACK, 1, 200_002, 0));
        rig.put(LAN, t.lan(ACK, 200_002, 2, 0));
    }
    let sampled = rig.gateway.counters().passed(PassReason::Sampled);
    assert!((195..305).contains(&sampled), "{sampled}: 4 sigma are 55");
    rig.wait(Duration::from_secs(300));
    let report = rig.gateway.report();
    assert_eq!(report.control_group.count, sampled);
    assert_eq!(report.fast.count, u64::from(connections) - sampled);
    assert_eq!(report.control_group.bytes, Size(sampled * 200_000));
    // 200 000 bytes in 100 ms
    assert!((report.control_group.mean - 16e6).abs() < 1e3, "{}", report.control_group.mean);
    assert!(report.control_group.variance().unwrap() < 1e6);
    assert_eq!(report.states, [0; 4]);
}
