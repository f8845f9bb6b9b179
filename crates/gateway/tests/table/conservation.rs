//! With any input, nothing panics, and every packet is sent, dropped or held.

use crate::table_rig::{Rig, talk};
use bentpipe_base::{
    Addr, Body, Dscp, Duration, Ecn, Flags, Node as _, OtherOptions, Packet, Port, Proto, Rate, Seq, Size,
    Timestamps,
};
use bentpipe_gateway::{
    Action, Config, Copies, Gateway, LAN, Limits, Mode, PassReason, Policy, PortRange, Rule, SATELLITE, Side,
};
use proptest::prelude::*;

/// Few hosts and numbers, so that packets match connections; odd fields now and then.
fn packet() -> impl Strategy<Value = (Port, Packet)> {
    let ends = (
        0u32..3,
        0u32..3,
        0u16..2,
        0u16..2,
        prop_oneof![9 => Just(Proto::Tcp), 1 => Just(Proto::Udp), 1 => Just(Proto::Opaque)],
    );
    let numbers =
        (0u32..3, 0u32..4000, 0u32..4000, prop_oneof![3 => Just(0u32), 3 => 1u32..1460, 1 => 0u32..70_000]);
    let flags = prop_oneof![6 => Just(0x10u8), 2 => Just(2), 2 => Just(0x12), 1 => Just(0x11), 1 => Just(4), 1 => any::<u8>()];
    let options = (
        any::<u16>(),
        proptest::option::of(0u8..20),
        proptest::option::of((any::<u32>(), any::<u32>())),
        proptest::collection::vec((0u32..4000, 0u32..4000), 0..4),
        prop_oneof![12 => Just(0u8), 1 => Just(OtherOptions::SIGNED), 1 => any::<u8>()],
        prop_oneof![4 => Just(0u16), 1 => 1u16..1460],
    );
    (any::<bool>(), ends, numbers, flags, options, 0u8..4).prop_map(
        |(
            is_lan,
            (src, dst, sport, dport, proto),
            (isn, seq, ack, len),
            flags,
            (window, scale, stamps, sacks, foreign, segment),
            ecn,
        )| {
            let base = [0u32, 500, u32::MAX - 2000][isn as usize];
            let mut p = Packet {
                src: Addr(src),
                dst: Addr(dst),
                sport,
                dport,
                proto,
                hops: 9,
                segment,
                ..Packet::default()
            };
            p.tcp.flags = Flags(flags);
            (p.tcp.seq, p.tcp.ack, p.tcp.window) =
                (Seq(base.wrapping_add(seq)), Seq(base.wrapping_add(ack)), window);
            (p.tcp.window_scale, p.tcp.timestamps) =
                (scale, stamps.map(|(value, echo)| Timestamps { value, echo }));
            for (left, right) in sacks {
                p.tcp.sack.push(Seq(base.wrapping_add(left)), Seq(base.wrapping_add(right)));
            }
            p.other_options = OtherOptions { kinds: foreign, len: if foreign == 0 { 0 } else { 4 } };
            (p.ecn, p.dscp) = ([Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn)], Dscp::DEFAULT);
            p.body = Body { off: u64::from(seq), len };
            p.seal();
            (if is_lan { LAN } else { SATELLITE }, p)
        },
    )
}

#[derive(Clone, Debug)]
enum Op {
    Put(Box<(Port, Packet)>),
    /// A complete handshake.
    Open(u32),
    /// A packet of a connection, or nearly.
    Say(u32, bool, (Flags, u32, u32, u32)),
    Wait(Duration),
    Release,
    Reconfigure(Box<Config>),
    Restart,
}

fn config() -> impl Strategy<Value = Config> {
    let limits = (0u32..6, 0u32..6, 0u32..6, 0u64..200_000, 0u32..4).prop_map(
        |(flows, opening, passing, memory, reports)| Limits {
            flows,
            opening,
            passing,
            memory: Size(memory),
            per_flow: Size(memory / 2),
            reports,
        },
    );
    (limits, proptest::option::of(1_000u64..100_000_000), any::<bool>(), 0u8..4, any::<bool>(), 0u8..3)
        .prop_map(|(limits, rate, is_strict, copies, accelerate, sample)| Config {
            limits,
            rate: rate.and_then(Rate::from_bps),
            mode: if is_strict { Mode::Strict } else { Mode::Open },
            copies: if copies == 0 { Copies::Auto } else { Copies::Fixed(copies) },
            accelerate,
            sample: f64::from(sample) / 4.0,
            ..Config::default()
        })
}

fn say() -> impl Strategy<Value = Op> {
    let flags = prop_oneof![
        20 => Just(Flags::ACK),
        2 => Just(Flags(0x11)),
        1 => Just(Flags::RST),
        1 => Just(Flags(0x14)),
        1 => Just(Flags(0x12)),
        1 => Just(Flags(0x30)),
    ];
    // segments are adjacent, overlap, and lie beyond the window now and then
    let seq = || prop_oneof![8 => (0u32..12).prop_map(|n| 1 + n * 1000), 1 => 0u32..200_000];
    let len = prop_oneof![3 => Just(0u32), 6 => Just(1000u32), 1 => 0u32..5000];
    (0u32..3, any::<bool>(), flags, seq(), seq(), len)
        .prop_map(|(n, is_lan, flags, seq, ack, len)| Op::Say(n, is_lan, (flags, seq, ack, len)))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => packet().prop_map(|p| Op::Put(Box::new(p))),
        5 => (0u32..3).prop_map(Op::Open),
        40 => say(),
        8 => (1u64..1000, 0u32..28).prop_map(|(n, scale)| Op::Wait(Duration(n << scale))),
        1 => Just(Op::Wait(Duration::from_secs(8000))),
        1 => Just(Op::Release),
        2 => config().prop_map(|c| Op::Reconfigure(Box::new(c))),
        1 => Just(Op::Restart),
    ]
}

fn run(first: Config, ops: Vec<Op>) -> (Vec<(Port, Packet)>, String) {
    let rule = Rule {
        action: Action::Pass,
        from: Vec::new(),
        to: Vec::new(),
        ports: vec![PortRange { first: 1, last: 1 }],
        from_ports: Vec::new(),
        dscp: Vec::new(),
        opened_from: Some(Side::Satellite),
    };
    let policy = Policy { rules: vec![rule], ..Policy::default() };
    let mut rig = Rig::with(Gateway::new(first).with_policy(policy));
    rig.name_addresses();
    rig.gateway.keep_journal();
    for op in ops {
        match op {
            Op::Put(p) => rig.put(p.0, p.1),
            Op::Open(n) => rig.open(talk(n)),
            Op::Say(n, true, (flags, seq, ack, len)) => rig.put(LAN, talk(n).lan(flags, seq, ack, len)),
            Op::Say(n, false, (flags, seq, ack, len)) => {
                rig.put(SATELLITE, talk(n).sat(flags, seq, ack, len));
            }
            Op::Wait(time) => drop(rig.wait(time)),
            Op::Release => rig.act(Gateway::release_all),
            Op::Reconfigure(config) => rig.act(|g, cx| g.reconfigure(cx, *config)),
            Op::Restart => {
                rig.act(Gateway::release_all);
                drain(&mut rig);
                let (saved, config) = (rig.gateway.save(), rig.gateway.config().clone());
                rig.gateway = Gateway::new(Config { accelerate: true, ..config });
                let restored = rig.act(|g, cx| g.restore(cx, &saved));
                assert_eq!(
                    (restored.damaged, (restored.flows + restored.refused) as usize * 64),
                    (0, saved.len())
                );
            }
        }
        check(&rig);
        while rig.gateway.take_closed().is_some() {}
        while rig.gateway.take_changed().is_some() {}
    }
    rig.act(Gateway::release_all);
    drain(&mut rig);
    assert_eq!(rig.missing(rig.out.len() as u64), 0, "packets are gone");
    rig.wait(Duration::from_secs(10_000));
    let report = rig.gateway.report();
    assert_eq!(
        (report.states, report.passing, report.accelerated),
        ([0; 4], [0; PassReason::ALL.len()], 0),
        "all are forgotten in the end"
    );
    assert_eq!(report.held, Size::ZERO);
    (rig.take().into_iter().map(|(port, p)| (port, *p)).collect(), format!("{report:?}"))
}

/// After a planned stop: queued packets leave at the hop's rate.
fn drain(rig: &mut Rig) {
    for _ in 0..10_000 {
        if rig.gateway.is_drained() {
            break;
        }
        rig.wait(Duration::from_secs(10));
    }
    assert!(rig.gateway.is_drained());
    assert_eq!(rig.missing(rig.out.len() as u64), 0, "drained is drained");
}

fn check(rig: &Rig) {
    let report = rig.gateway.report();
    let held = rig.missing(rig.out.len() as u64);
    assert!(held >= 0, "more packets came out than went in");
    let (flows, next) = rig.gateway.flows(0, usize::MAX);
    assert!(next.is_none() && flows.len() as u32 == report.states.iter().sum::<u32>());
    assert_eq!(flows.iter().filter(|f| f.pass_reason.is_none()).count() as u32, report.accelerated);
    for (why, n) in PassReason::ALL.into_iter().zip(report.passing) {
        assert_eq!(flows.iter().filter(|f| f.pass_reason == Some(why)).count() as u32, n, "{}", why.key());
    }
    let mut addrs = Vec::new();
    rig.gateway.addresses(&mut |a| addrs.push(a));
    assert!(
        flows.iter().all(|f| f.addrs.iter().all(|a| addrs.contains(a))) && addrs.len() == 2 * flows.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_packet_is_sent_given_back_or_held(first in config(), ops in proptest::collection::vec(op(), 1..120)) {
        let result = run(first.clone(), ops.clone());
        // the same packets at the same times give the same result, byte for byte
        prop_assert_eq!(result, run(first, ops));
    }
}
