//! Transfers of any size in both directions, with losses in both: every byte and both FINs arrive, and
//! nothing stays held.

use crate::flow_rig::{Hop, Plan, RECEIVER, Rig, SENDER, WINDS, at, gateway, modern, old};
use bentpipe_base::Duration;
use bentpipe_gateway::{Config as GatewayConfig, Mode};
use bentpipe_nodes::Writer;
use bentpipe_tcp::{Config, State};
use proptest::prelude::*;

/// Parameters of a case.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    bytes: [u64; 2],
    loss: [f64; 2],
    delay: u64,
    receiver: Kind,
    sender: Kind,
    receiver_opens: bool,
    strict: bool,
    rate: bool,
    lan: [u32; 3],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Modern,
    Old,
    Plain,
}

fn config(kind: Kind) -> Config {
    match kind {
        Kind::Modern => modern(),
        Kind::Old => old(),
        Kind::Plain => {
            let mut config = old();
            config.options.sack = false;
            config
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Modern), Just(Kind::Old), Just(Kind::Plain)]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..3000, 3000u64..2_000_000, 2_000_000u64..12_000_000]
}

fn loss() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1e-4), Just(1e-3), Just(1e-2), Just(5e-2)]
}

prop_compose! {
    fn case()(
        seed in 0u64..1_000_000,
        bytes in [size(), size()],
        loss in [loss(), loss()],
        delay in prop_oneof![Just(1u64), Just(20), Just(275), Just(500), Just(800)],
        (receiver, sender) in (kind(), kind()),
        receiver_opens: bool,
        strict in prop_oneof![4 => Just(false), 1 => Just(true)],
        rate in prop_oneof![4 => Just(true), 1 => Just(false)],
        lan in prop_oneof![Just([0; 3]), Just([1, 0, 0]), Just([0, 3, 3]), Just([3, 3, 10])],
    ) -> Case {
        Case { seed, bytes, loss, delay, receiver, sender, receiver_opens, strict, rate, lan }
    }
}

/// Runs a case to the end; returns the seconds it took.
fn run(case: &Case) -> f64 {
    // after two losses in a row a sender without SACK needs its timeout: send less then
    let part = if case.lan[0] > 0 { 20 } else { 1 };
    let bytes = case.bytes.map(|b| b.div_ceil(part));
    let hop = Hop {
        one_way: Duration::from_millis(case.delay),
        loss: case.loss[0],
        back_loss: case.loss[1],
        queue: 4 << 20,
        ..WINDS
    };
    let plan = Plan {
        sender: config(case.sender),
        receiver: config(case.receiver),
        writes: bytes.map(Writer::Transfer),
        receiver_opens: case.receiver_opens,
        ..Plan::bulk(old())
    };
    let mode = if case.strict { Mode::Strict } else { Mode::Open };
    let mut setup = GatewayConfig { mode, ..gateway(&hop) };
    if !case.rate {
        setup.rate = None;
    }
    let mut rig = Rig::new(case.seed, &hop, setup, &plan);
    rig.lan = case.lan;
    let mut t = 0.0;
    let done = |rig: &Rig| {
        [SENDER, RECEIVER]
            .iter()
            .all(|e| rig.end(*e).is_some_and(|c| matches!(c.state(), State::TimeWait | State::Closed)))
    };
    while !done(&rig) {
        t += 1.0;
        assert!(
            t < 3000.0,
            "not over after {t} s: {:?} {:?}",
            rig.end(SENDER).map(|c| (c.state(), c.received())),
            rig.end(RECEIVER).map(|c| (c.state(), c.received()))
        );
        rig.run_until(at(t));
    }
    let received = [SENDER, RECEIVER].map(|e| rig.end(e).unwrap().received());
    assert_eq!(received, [bytes[1], bytes[0]], "every byte has arrived");
    assert_eq!(rig.gateway.report().held.0, 0, "nothing is kept");
    t
}

/// Losses on both sides of the gateway, with a receiver without SACK. Its ACK for a repair comes late for
/// everything that waited behind the hole, and must not be taken as an RTT sample: the gateway's timeout
/// would grow to minutes.
#[test]
fn losses_on_both_sides_without_sack_are_repaired() {
    for (strict, rate) in [(false, true), (false, false), (true, true)] {
        let case = Case {
            seed: 285_107,
            bytes: [7_631_421, 546_041],
            loss: [0.05, 0.001],
            delay: 800,
            receiver: Kind::Plain,
            sender: Kind::Modern,
            receiver_opens: true,
            strict,
            rate,
            lan: [3, 3, 10],
        };
        let alone = Case { lan: [0; 3], bytes: [763_142, 5000], ..case.clone() };
        let took = [run(&case), run(&alone)];
        assert!(took.iter().all(|t| *t < 60.0), "strict {strict}, rate {rate}: {took:?} s");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_transfer_ends_as_it_should(case in case()) {
        run(&case);
    }
}

/// Two modern hosts on a short path without losses; nothing is written.
const SHORT: Case = Case {
    seed: 0,
    bytes: [0; 2],
    loss: [0.0; 2],
    delay: 1,
    receiver: Kind::Modern,
    sender: Kind::Modern,
    receiver_opens: true,
    strict: false,
    rate: true,
    lan: [0; 3],
};

/// The SYN/ACK comes after later packets, so the connection only passes; and the receiver rounds its window
/// down where it rounded it up before.
#[test]
fn a_receiver_may_move_its_own_edge() {
    run(&Case { seed: 888_820, lan: [0, 3, 3], ..SHORT });
}

/// The receiver's losses were repaired without SACK, and its last bytes do not fit into the window: it must
/// probe (RFC 9293, section 3.8.6.2.1).
#[test]
fn the_last_bytes_wait_for_a_window_and_go() {
    run(&Case {
        seed: 601_408,
        bytes: [1_664_401, 2_945_901],
        delay: 500,
        sender: Kind::Plain,
        receiver_opens: false,
        lan: [3, 3, 10],
        ..SHORT
    });
}

/// The sender's SYN comes once more, behind its data and FIN: a late copy is not a new connection, and the
/// gateway still knows what the receiver has (RFC 9293, section 3.10.7.4).
#[test]
fn a_late_copy_of_the_syn_behind_a_fin_changes_nothing() {
    run(&Case {
        seed: 398_308,
        bytes: [81, 292_001],
        sender: Kind::Plain,
        receiver_opens: false,
        lan: [3, 3, 10],
        ..SHORT
    });
}

/// A path of 2 ms holds five packets: too few to tell a sender with a model from one that has no more data.
#[test]
fn a_path_of_five_packets_says_nothing_of_its_sender() {
    run(&Case { seed: 962_488, bytes: [5_624_001, 0], loss: [0.05; 2], lan: [1, 0, 0], ..SHORT });
}
