//! Files of the repository: scenarios load, and generated files are up to date.

use crate::support::{DUMBBELL, GRAPH, RICH, edit, loads};
use bentpipe_base::{Duration, Size};
use bentpipe_link::Capacity;
use bentpipe_scenario::{
    App, Direction, InstrumentKind, Reader, Source, Start, Stop, reference, schema, sweep, to_toml,
};
use bentpipe_tcp::{ReceiveBuffer, Validation};

const WINDOW: &str = include_str!("../../../../scenarios/window.toml");
const TRANSFER: &str = include_str!("../../../../scenarios/transfer.toml");
const BURST: &str = include_str!("../../../../scenarios/burst.toml");
const SHARING: &str = include_str!("../../../../scenarios/sharing.toml");
const DEMO: &str = include_str!("../../../../scenarios/demo.toml");
const FAIRNESS: &str = include_str!("../../../../scenarios/fairness.toml");
const FADED: &str = include_str!("../../../../scenarios/faded.toml");
const FADE_2H: &str = include_str!("../../../../scenarios/fade-2h.toml");
const ONBOARD: &str = include_str!("../../../../scenarios/onboard.toml");
const WINDS: &str = include_str!("../../../../scenarios/winds.toml");
const ASYMMETRY: &str = include_str!("../../../../scenarios/asymmetry.toml");
const LEO: &str = include_str!("../../../../scenarios/leo.toml");
const RAIN: &str = include_str!("../../../../scenarios/rain.toml");
const DAMA: &str = include_str!("../../../../scenarios/dama.toml");

#[test]
fn the_schema_is_up_to_date() {
    let committed = include_str!("../../../../schema/scenario.schema.json");
    assert!(schema() == committed, "run: bentpipe generate schema > schema/scenario.schema.json");
}

#[test]
fn the_reference_page_is_up_to_date() {
    let committed = include_str!("../../../../docs/src/scenario-file.md");
    assert!(reference() == committed, "run: bentpipe generate reference > docs/src/scenario-file.md");
}

#[test]
fn the_schema_is_json_and_closed() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        assert!(
            name == "parameter" || name == "nodes" || definition["additionalProperties"] == false,
            "{name}"
        );
    }
    assert_eq!(schema["$defs"]["flows"]["properties"]["iw"]["anyOf"][0]["maximum"], 65_535);
}

#[test]
fn what_check_prints_loads_back_to_the_same_scenario() {
    let fancy = edit(
        DUMBBELL,
        "tcp = \"newreno\"",
        "tcp = { scheme = \"vegas\", alpha = 1.5 }\nstart = { from = \"0 s\", to = \"1 s\" }\nreader = { rate = \"1 Mbit/s\" }\njitter = \"1 us\"\njitter_kind = \"packet\"\nwindow = { initial = \"2 segments\", max = \"1 MB\" }\n\n[[flows]]\nname = \"other\"\nfrom = \"src1\"\nto = \"dst2\"\napp = { transfer = \"123457 B\" }\nreader = { pause = { from = \"1 s\", to = \"2 s\", every = \"7 s\" } }\nsend_buffer = \"9 kB\"\nsack = false\ngrant = { rate = \"7 Mbit/s\", changes = [[\"2 s\", \"5 Mbit/s\"], [\"3 s\", \"9 Mbit/s\"]], fallback = 0.2, fallback_to = \"reno\" }\nreceiver = { grant = \"none\" }\nstart = \"1.5 ms\"\ndelayed_ack = { count = 1, timeout = \"1 ms\" }",
    );
    let fancy = edit(
        &fancy,
        "title = \"a test\"",
        "title = 'quotes \" and \\ backslash é'\nseed = 18446744073709551615\nstop = \"finished\"\nmeasure = { from = \"1 s\", to = \"2 s\" }",
    );
    for text in [
        DUMBBELL, GRAPH, RICH, WINDOW, TRANSFER, BURST, SHARING, DEMO, &fancy, FAIRNESS, FADED, FADE_2H,
        ONBOARD, WINDS, ASYMMETRY, LEO, RAIN, DAMA,
    ] {
        let scenario = loads(text, &[]);
        let printed = to_toml(&scenario);
        assert_eq!(loads(&printed, &[]), scenario, "{printed}");
        assert_eq!(to_toml(&loads(&printed, &[])), printed);
    }
}

#[test]
fn the_reference_scenarios_share_their_hosts() {
    for (text, flows) in [(WINDOW, 1), (TRANSFER, 1), (BURST, 1), (SHARING, 20)] {
        let s = loads(text, &[]);
        assert_eq!(s.flows.len(), flows);
        for flow in &s.flows {
            let tcp = &flow.sender;
            assert_eq!((tcp.mss, tcp.initial_window, tcp.options.timestamps), (1000, 2, false));
            assert_eq!(tcp.initial_ssthresh, Some(flow.receiver.receive_buffer.max()));
            assert_eq!((tcp.rto.min, tcp.rto.initial), (Duration::from_secs(1), Duration::from_secs(3)));
            assert!(tcp.limited_transmit && tcp.validation == Validation::Keep);
            assert_eq!(flow.receiver.delayed_ack, None);
        }
        let access = &s.links[1];
        assert_eq!((access.forward.rate.bps(), access.forward.delay), (10_000_000, Duration::from_millis(1)));
        assert_eq!(access.forward.buffer, Capacity::Packets(100_000));
    }
}

#[test]
fn window_and_burst_use_a_t1_over_585_ms() {
    for (text, buffer, scheme) in [(WINDOW, 120, "newreno"), (TRANSFER, 120, "newreno"), (BURST, 50, "sack")]
    {
        let s = loads(text, &[]);
        let there = &s.links[0].forward;
        assert_eq!((there.rate.bps(), there.delay), (1_544_000, Duration::from_micros(290_500)));
        assert_eq!(there.buffer, Capacity::Packets(buffer));
        assert_eq!(s.flows[0].sender.scheme.name, scheme);
        assert_eq!(s.flows[0].receiver.receive_buffer, ReceiveBuffer::Fixed(Size(128_000)));
    }
    assert_eq!(loads(BURST, &[]).duration, Duration::from_secs(100));
    let s =
        loads(WINDOW, &[("flows", "4"), ("window", "40 segments"), ("ber", "3e-8"), ("segment", "250 B")]);
    assert_eq!((s.flows.len(), s.links[0].forward.ber.get()), (4, 3e-8));
    assert_eq!(s.flows[3].receiver.receive_buffer, ReceiveBuffer::Fixed(Size(10_000)));
    let s = loads(BURST, &[("delayed_ack", "on")]);
    assert_eq!(
        s.flows[0].receiver.delayed_ack.map(|d| (d.count, d.timeout)),
        Some((2, Duration::from_millis(200)))
    );
}

#[test]
fn transfer_stops_when_it_is_done() {
    let s = loads(TRANSFER, &[("size", "50000 B"), ("iw", "4")]);
    assert_eq!((s.stop, s.flows[0].app), (Stop::Finished, App::Transfer(Size(50_000))));
    assert_eq!(s.flows[0].sender.initial_window, 4);
}

#[test]
fn sharing_is_the_lossy_dumbbell() {
    let s = loads(SHARING, &[]);
    let there = &s.links[0].forward;
    assert_eq!((there.rate.bps(), there.delay), (10_000_000, Duration::from_millis(273)));
    assert_eq!((there.buffer, there.loss.get()), (Capacity::Packets(50), 1e-4));
    assert!(s.links[0].backward.loss.is_zero());
    let flow = &s.flows[19];
    assert!(matches!(flow.start, Start::Uniform(from, to) if from.0 == 0 && to.0 == 1_000_000_000));
    assert_eq!(flow.sender.jitter.map(|j| j.max), Some(Duration::from_micros(900)));
    assert_eq!(flow.receiver.receive_buffer, ReceiveBuffer::Fixed(Size(64_000)));
    assert_eq!(loads(SHARING, &[("jitter", "0 ms")]).flows[0].sender.jitter, None);
}

#[test]
fn demo_shows_four_limits() {
    let s = loads(DEMO, &[]);
    let [old, modern, busy, sensor] = &s.flows[..] else { panic!("{} flows", s.flows.len()) };
    assert!(!old.receiver.options.window_scale && old.receiver.receive_buffer.max() == Size(65_535));
    assert_eq!(modern.sender.scheme.name, "cubic");
    assert!(matches!(busy.reader, Reader::Slow(_)) && matches!(sensor.app, App::Rate(_)));
    let one_way: u64 = [0, 1, 2].iter().map(|n| s.links[*n].forward.delay.0).sum();
    assert_eq!(2 * one_way, 560_000_000);
}

#[test]
fn worlds_have_the_parameters_that_were_agreed() {
    for (text, names) in [
        (FAIRNESS, &["tcp_x", "tcp_y", "loss", "jitter"][..]),
        (FADED, &["tcp", "window", "ber", "rtt"]),
        (FADE_2H, &["tcp", "window", "coding", "rise"]),
        (ONBOARD, &["topology", "buffer", "delayed_ack"]),
        (WINDS, &["window", "keepalive", "rate"]),
        (ASYMMETRY, &["k"]),
    ] {
        let s = loads(text, &[]);
        for name in names {
            assert!(s.parameters.iter().any(|(n, _)| n == name), "{}: {name}", s.title);
        }
    }
}

#[test]
fn fairness_is_five_far_and_five_near_senders() {
    let s = loads(FAIRNESS, &[("tcp_x", "cubic"), ("loss", "1e-2")]);
    let flows: Vec<_> = s.flows.iter().map(|f| (&*f.name, f.sender.scheme.name)).collect();
    assert_eq!(
        (flows[0], flows[4], flows[5], flows[9]),
        (("x1", "cubic"), ("x5", "cubic"), ("y1", "newreno"), ("y5", "newreno"))
    );
    let way = |hop: &str| -> u64 {
        [hop, "shared", "last"]
            .iter()
            .map(|n| s.links.iter().find(|l| *l.name == **n).map_or(0, |l| l.forward.delay.0))
            .sum()
    };
    assert_eq!((2 * way("satellite3"), 2 * way("ground3")), (550_000_000, 200_000_000));
    let lossy = s.links.iter().filter(|l| l.forward.loss.get() > 0.0).count();
    assert_eq!((lossy, s.links.iter().filter(|l| l.backward.loss.get() > 0.0).count()), (5, 0));
}

#[test]
fn two_hours_of_fade_carry_the_instruments_of_the_paper() {
    let s = loads(FADE_2H, &[("rise", "1 dB"), ("coding", "viterbi")]);
    let every: Vec<_> = s.instruments.iter().map(|i| i.every.0 / 1_000_000_000).collect();
    assert_eq!((s.duration, every), (Duration::from_secs(10_800), vec![15, 10, 120]));
    let bottleneck = Direction { link: 0, backward: false };
    assert_eq!(s.instruments[0].link, bottleneck);
    assert!(matches!(s.instruments[0].kind, InstrumentKind::SideChannel { rate } if rate.bps() == 256_000));
    assert_eq!(s.links[0].forward.buffer, Capacity::Bytes(Size(102_000)));
    assert!(s.links[0].forward.dynamics.is_some() && s.links[0].backward.dynamics.is_some());
}

#[test]
fn the_return_follows_from_k_and_a_keepalive_can_be_switched() {
    let back = |k: &str| loads(ASYMMETRY, &[("k", k)]).links[0].backward.rate.bps();
    assert_eq!((back("1"), back("4"), back("0.5")), (266_667, 66_667, 533_333));
    assert_eq!(loads(WINDS, &[]).flows.len(), 1);
    let kept = loads(WINDS, &[("keepalive", "on"), ("rate", "40 Mbit/s")]);
    assert_eq!((kept.flows.len(), kept.links[0].backward.rate.bps()), (2, 40_000_000));
}

#[test]
fn sweeps_of_the_files_use_values_that_load() {
    let mut sweeps = 0;
    for text in [FADED, ASYMMETRY] {
        let spec = sweep(&Source::new("test.toml", text)).ok().flatten().expect("the file has a sweep");
        sweeps += 1;
        for (name, values) in &spec.axes {
            for value in values {
                loads(text, &[(name, value)]);
            }
        }
    }
    assert_eq!(sweeps, 2);
}
