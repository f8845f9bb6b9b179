//! Gateways, receivers that differ from their senders, and references: valid and invalid ones.

use crate::support::{DUMBBELL, GRAPH, RICH, edit, loads, points_at};
use bentpipe_base::{Duration, Instant, Rate, Size};
use bentpipe_gateway::{Copies, Mode};
use bentpipe_scenario::{Dimension, Direction, Scenario, to_toml};
use bentpipe_tcp::ReceiveBuffer;

const SUPERCHARGER: &str = include_str!("../../../../scenarios/supercharger.toml");
const LOSS: &str = include_str!("../../../../scenarios/supercharger-loss.toml");

/// A dumbbell with a gateway that has these additional keys.
fn with(keys: &str) -> String {
    format!("{DUMBBELL}\n[[gateways]]\nname = \"gw\"\nlink = \"bottleneck\"\n{keys}\n")
}

/// A dumbbell whose flows have these additional keys.
fn flow(keys: &str) -> String {
    format!("{DUMBBELL}{keys}\n")
}

#[test]
fn a_gateway_takes_rate_and_framing_of_its_hop() {
    let text = edit(&with(""), "loss = \"$loss\"", "loss = \"$loss\"\nframing = \"14 B\"");
    let s = loads(&text, &[]);
    let [gateway] = &s.gateways[..] else { panic!("{:?}", s.gateways) };
    assert_eq!((gateway.name.as_str(), gateway.hop), ("gw", Direction { link: 0, backward: false }));
    let config = &gateway.config;
    assert_eq!((config.rate, config.framing), (Rate::from_bps(10_000_000), Size(14)));
    assert_eq!((config.mode, config.copies, config.accelerate), (Mode::Open, Copies::Auto, true));
    assert_eq!((config.alpha, config.k), (None, 8));
}

#[test]
fn a_gateway_is_told_otherwise() {
    let s = loads(
        &edit(
            &with(
                "rate = \"9 Mbit/s\"\nframing = \"4 B\"\nmode = \"strict\"\nalpha = 0.9\nk = 16\nshare = 0.9\ncopies = 2\nkeep_alive = \"150 ms\"\n\
                 limits = { flows = 7, memory = \"1 MB\", per_flow = \"100 kB\" }\naccelerate = false",
            ),
            "link = \"bottleneck\"",
            "link = \"bottleneck-return\"",
        ),
        &[],
    );
    let (at, config) = (s.gateways[0].hop, &s.gateways[0].config);
    assert!(at.backward && config.mode == Mode::Strict && config.copies == Copies::Fixed(2));
    assert_eq!((config.rate, config.framing), (Rate::from_bps(9_000_000), Size(4)));
    assert_eq!((config.limits.flows, config.limits.memory), (7, Size(1_000_000)));
    assert_eq!((config.limits.per_flow, config.accelerate), (Size(100_000), false));
    assert!((config.share - 0.9).abs() < 1e-12);
    assert_eq!((config.alpha, config.k), (Some(0.9), 16));
    assert_eq!(config.keep_alive, Some(Duration::from_millis(150)));
    assert_eq!(loads(&with("keep_alive = \"none\""), &[]).gateways[0].config.keep_alive, None);
    assert_eq!(loads(&to_toml(&s), &[]).gateways, s.gateways);
    assert_eq!(loads(&with("rate = \"none\""), &[]).gateways[0].config.rate, None);
}

/// A window of 655 Mbit/s and one second is 82 MB.
#[test]
fn the_memory_of_a_flow_grows_with_the_hop() {
    let per_flow = |keys: &str| loads(&with(keys), &[]).gateways[0].config.limits.per_flow;
    assert_eq!(per_flow(""), Size(64 << 20), "6 s of 10 Mbit/s are less");
    assert_eq!(per_flow("rate = \"none\""), Size(64 << 20));
    assert_eq!(per_flow("rate = \"655 Mbit/s\""), Size(491_250_000));
    assert_eq!(per_flow("rate = \"10 Gbit/s\""), Size(1 << 30), "no more than all together");
    assert_eq!(per_flow("rate = \"655 Mbit/s\"\nlimits = { per_flow = \"1 MiB\" }"), Size(1 << 20));
}

/// The same file describes runs with and without the gateway.
#[test]
fn a_gateway_that_is_switched_off_leaves_no_trace_but_is_checked() {
    let switched = |on: &str| {
        let text = with("enabled = \"$gateway\"").replace("[parameters]", "[parameters]\ngateway = \"off\"");
        loads(&text, &[("gateway", on)])
    };
    let without = |s: Scenario| Scenario { parameters: Vec::new(), ..s };
    assert_eq!(without(switched("off")), without(loads(DUMBBELL, &[])));
    assert_eq!(switched("on").gateways.len(), 1);
    points_at(
        &with("enabled = false\nshare = 2"),
        "`share` is a part of the rate",
        "2",
        "more than 0 and at most 1",
    );
}

#[test]
fn what_cannot_be_is_refused_where_it_stands() {
    let second = "\n[[gateways]]\nname = \"gw\"\nlink = \"bottleneck-return\"";
    points_at(&with(second), "two gateways are called `gw`", "\"gw\"", "this name is taken");
    let second = "\n[[gateways]]\nname = \"other\"\nlink = \"bottleneck\"";
    points_at(&with(second), "two gateways before `bottleneck`", "\"bottleneck\"", "this is the second");
    for (keys, message, underlined, label) in [
        ("mode = \"strikt\"", "`mode` cannot be \"strikt\"", "\"strikt\"", "did you mean `strict`?"),
        ("share = 0", "`share` is a part of the rate", "0", "more than 0 and at most 1"),
        ("share = 1.01", "`share` is a part of the rate", "1.01", "more than 0 and at most 1"),
        ("alpha = 1", "`alpha` is the weight of the old value", "1", "at least 0 and less than 1"),
        ("alpha = -0.5", "`alpha` is the weight of the old value", "-0.5", "at least 0 and less than 1"),
        ("k = 0", "`k` is too small", "0", "at least 1"),
        ("keep_alive = \"1 ms\"", "`keep_alive` is too short", "\"1 ms\"", "at least 10 ms"),
        ("copies = 0", "`copies` is too small", "0", "at least 1"),
        ("copies = 9", "`copies` is too large", "9", "at most 8"),
        ("copies = \"often\"", "`copies` is a whole number", "\"often\"", "this is text"),
        ("framing = \"1 MB\"", "`framing` is too large", "\"1 MB\"", "the limit is 65535 B"),
        ("rate = \"24\"", "`rate` needs a unit", "\"24\"", "write \"24 Mbit/s\" if that is meant"),
        ("limits = { memory = \"1 kB\" }", "`memory` is too small", "\"1 kB\"", "at least 64 KiB"),
        ("limits = { per_flow = \"0 B\" }", "`per_flow` is too small", "\"0 B\"", "at least 64 KiB"),
        ("limits = { flow = 3 }", "unknown key `flow` in `limits`", "flow", "did you mean `flows`?"),
        ("satellite = \"x\"", "unknown key `satellite` in [[gateways]]", "satellite", ""),
    ] {
        points_at(&with(keys), message, underlined, label);
    }
    let text = with("").replace("link = \"bottleneck\"", "link = \"botleneck\"");
    points_at(&text, "there is no link `botleneck`", "\"botleneck\"", "did you mean `bottleneck`?");
}

/// A gateway that sends faster than its hop builds a queue there, so `rate` is required if the hop's rate
/// changes.
#[test]
fn a_hop_whose_rate_changes_needs_a_rate_for_its_gateway() {
    let changing = [
        "capacity = { steps = [[\"0 s\", \"5 Mbit/s\"]] }",
        "dama = {}",
        "fade = { profile = [[\"0 s\", \"1 dB\"]], acm = { clear = \"16 dB\" } }",
        "orbit = { slots = { delay = \"20 ms\", rate = [\"1 Mbit/s\", \"2 Mbit/s\"] } }",
    ];
    let timeline = "\n[[timeline]]\nat = \"10 s\"\nlink = \"bottleneck\"\nrate = \"5 Mbit/s\"";
    let texts =
        changing.map(|line| edit(&with(""), "loss = \"$loss\"", &format!("loss = \"$loss\"\n{line}")));
    for text in texts.into_iter().chain([with(timeline)]) {
        points_at(&text, "the rate of `bottleneck` changes", "\"bottleneck\"", "give the gateway a `rate`");
        let told = text.replace("name = \"gw\"", "name = \"gw\"\nrate = \"1 Mbit/s\"");
        assert_eq!(loads(&told, &[]).gateways[0].config.rate, Rate::from_bps(1_000_000));
    }
    // dynamics that do not change the rate need no `rate`
    let text =
        edit(&with(""), "loss = \"$loss\"", "loss = \"$loss\"\nbursts = { loss = 0.01, burst = \"100 ms\" }");
    assert_eq!(loads(&text, &[]).gateways[0].config.rate, Rate::from_bps(10_000_000));
}

#[test]
fn a_receiver_may_be_older_than_its_sender() {
    let s = loads(
        &flow("window_scale = true\nreceiver = { window = \"65535 B\", window_scale = false, sack = false }"),
        &[],
    );
    let flow = &s.flows[0];
    assert!(flow.sender.options.window_scale && !flow.receiver.options.window_scale);
    assert!(!flow.receiver.options.sack && flow.receiver.options.timestamps);
    assert_eq!(flow.receiver.receive_buffer, ReceiveBuffer::Fixed(Size(65_535)));
    // keys without an override are the flow's, and the sender keeps its own window
    assert_eq!((flow.receiver.mss, flow.receiver.scheme), (flow.sender.mss, flow.sender.scheme));
    assert_eq!(flow.sender.receive_buffer, ReceiveBuffer::Fixed(Size(64_000)));
}

#[test]
fn a_receiver_that_cannot_be_is_refused() {
    for (keys, message, underlined, label) in [
        (
            "receiver = { window_scale = false, window = \"1 MB\" }",
            "a window of 1000000 B needs window scale",
            "\"1 MB\"",
            "the limit is 65535 B with `window_scale = false`",
        ),
        (
            "receiver = { jitter = \"1 ms\" }",
            "a receiver has no jitter",
            "\"1 ms\"",
            "give it to the flow: it is the sender's",
        ),
        (
            "receiver = { windo = \"1 MB\" }",
            "unknown key `windo` in `receiver`",
            "windo",
            "did you mean `window`?",
        ),
    ] {
        points_at(&flow(keys), message, underlined, label);
    }
    let udp = edit(
        DUMBBELL,
        "tcp = \"newreno\"",
        "app = { udp = { rate = \"1 Mbit/s\" } }\nreceiver = { sack = false }",
    );
    points_at(&udp, "datagrams have no TCP", "false", "only `encoding` and `take` concern them");
}

#[test]
fn figures_of_others_are_amounts_with_a_source() {
    let reference = |value: &str| {
        format!(
            "{DUMBBELL}\n[[references]]\nmetric = \"goodput\"\nvalue = \"{value}\"\nsource = \"a paper\"\n"
        )
    };
    let s = loads(&reference(" 23.67 Mbit/s "), &[]);
    let one = &s.references[0];
    assert_eq!(
        (one.metric.as_str(), one.written.as_str(), one.source.as_str()),
        ("goodput", "23.67 Mbit/s", "a paper")
    );
    assert_eq!((one.value.value, one.value.dimension), (23.67e6, Dimension::Rate));
    points_at(
        &reference("fast"),
        "`fast` is not a number with a unit: write it as 1 Mbit/s, 500 ms or 0.9",
        "\"fast\"",
        "",
    );
}

#[test]
fn what_check_prints_loads_back_to_the_same_scenario() {
    let everything = with("copies = 3\nlimits = { memory = \"123457 B\" }\nshare = 0.1");
    let everything = edit(
        &everything,
        "tcp = \"newreno\"",
        "tcp = \"newreno\"\njitter = \"1 us\"\nssthresh = \"window\"\n\
        receiver = { stack = \"linux\", tcp = \"reno\", window = { initial = \"2 segments\", max = \"1 MB\" }, timestamps = false, segment = \"536 B\" }\n\n\
        [[flows]]\nname = \"other\"\nfrom = \"src1\"\nto = \"dst2\"\nsack = false\nreceiver = { sack = true, delayed_ack = false }",
    );
    let everything = edit(
        &everything,
        "title = \"a test\"",
        "title = \"a test\"\nmeasure = { from = \"1 s\", to = \"2 s\", links = true }",
    );
    let two = format!(
        "{RICH}\n[[gateways]]\nname = \"there\"\nlink = \"b2-return\"\n\n[[gateways]]\nname = \"sky\"\nlink = \"sky\"\nrate = \"none\"\n"
    );
    let graph = format!(
        "{GRAPH}\n[[gateways]]\nname = \"there\"\nlink = \"r12\"\n\n[[gateways]]\nname = \"back\"\nlink = \"r12-return\"\n"
    );
    for text in [&everything, &two, &graph, SUPERCHARGER, LOSS] {
        let scenario = loads(text, &[]);
        let printed = to_toml(&scenario);
        assert_eq!(loads(&printed, &[]), scenario, "{printed}");
        assert_eq!(to_toml(&loads(&printed, &[])), printed);
    }
}

#[test]
fn supercharger_is_table_2_of_the_paper() {
    let s = loads(SUPERCHARGER, &[]);
    assert_eq!(s.measure, Some((Instant(25_000_000_000), Instant(40_000_000_000))));
    assert!(s.measure_links);
    let windows: Vec<u64> = s.flows.iter().map(|f| f.receiver.receive_buffer.max().0).collect();
    assert_eq!(windows, [65_535, 65_535, 1 << 20, 2 << 20, 4 << 20]);
    for (link, flow) in s.links.iter().zip(&s.flows) {
        let hop = &link.forward;
        assert_eq!(
            (hop.rate.bps(), hop.delay, hop.framing),
            (24_000_000, Duration::from_millis(500), Size(14))
        );
        assert_eq!(
            (flow.sender.mss, flow.sender.options.timestamps, flow.sender.scheme.name),
            (1460, false, "cubic")
        );
        // the receiver opens the connection, and the sender offers window scaling anyway
        assert_eq!((link.a, link.b, flow.sender.options.window_scale), (flow.to, flow.from, true));
    }
    let [gateway] = &s.gateways[..] else { panic!("{:?}", s.gateways) };
    assert_eq!(
        (gateway.hop, gateway.config.rate),
        (Direction { link: 0, backward: false }, Rate::from_bps(24_000_000))
    );
    assert!(!s.flows[0].receiver.options.window_scale && !s.flows[1].receiver.options.window_scale);
    let paper: Vec<f64> = s.references.iter().map(|r| r.value.value / 1e6).collect();
    assert_eq!(paper, [23.67, 0.53, 8.69, 17.39, 23.72]);
    assert!(loads(SUPERCHARGER, &[("gateway", "off")]).gateways.is_empty());
}
