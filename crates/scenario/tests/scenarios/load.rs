//! What valid files resolve to.

use crate::support::{DUMBBELL, GRAPH, edit, loads, sets};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_link::Capacity;
use bentpipe_scenario::{App, NodeKind, ParamValue, Reader, Scenario, Source, Start, Stop, load, reference};
use bentpipe_tcp::cc::cubic::{self, CubicParams};
use bentpipe_tcp::cc::vegas::{self, VegasParams};
use bentpipe_tcp::{
    Config, DelayedAck, Detection, EcnUse, FallbackScheme, GrantConfig, Growth, Jitter, JitterKind,
    KeepAlive, ReceiveBuffer, Reduction, RtoConfig, Scheme, Stack,
};

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).expect("more than zero")
}

fn with_host(lines: &str) -> Scenario {
    loads(&edit(DUMBBELL, "[host]\n", &format!("[host]\n{lines}\n")), &[])
}

#[test]
fn a_dumbbell_becomes_hosts_routers_and_links() {
    let s = loads(DUMBBELL, &[]);
    let nodes: Vec<_> = s.nodes.iter().map(|n| (&*n.name, n.kind)).collect();
    let (host, router) = (NodeKind::Host, NodeKind::Router);
    assert_eq!(
        nodes,
        [("src1", host), ("src2", host), ("dst1", host), ("dst2", host), ("left", router), ("right", router)]
    );
    let links: Vec<_> = s.links.iter().map(|l| (&*l.name, &*l.reverse_name, l.a, l.b)).collect();
    assert_eq!(
        links,
        [
            ("bottleneck", "bottleneck-return", 4, 5),
            ("src1-access", "src1-access-return", 0, 4),
            ("src2-access", "src2-access-return", 1, 4),
            ("dst1-access", "dst1-access-return", 5, 2),
            ("dst2-access", "dst2-access-return", 5, 3),
        ]
    );
    let (there, back) = (&s.links[0].forward, &s.links[0].backward);
    assert_eq!(there.rate, rate(10_000_000));
    assert_eq!(there.delay, Duration::from_millis(273));
    assert_eq!(there.buffer, Capacity::Packets(50));
    assert_eq!(there.loss, Probability::new(1e-4).unwrap());
    assert_eq!((back.rate, back.delay, back.buffer), (there.rate, there.delay, there.buffer));
    assert!(back.loss.is_zero() && back.ber.is_zero());
    assert_eq!(s.links[1].forward.buffer, Capacity::Bytes(Size(1_000_000)));
    assert_eq!(s.links[3].backward.delay, Duration::from_millis(1));
}

#[test]
fn the_return_direction_can_differ() {
    let text = edit(
        DUMBBELL,
        "[host]",
        "[dumbbell.return]\nrate = \"1 Mbit/s\"\nbuffer = \"10 packets\"\nloss = 0.5\nber = 1e-6\n\n[host]",
    );
    let back = loads(&text, &[]).links[0].backward.clone();
    assert_eq!((back.rate, back.buffer), (rate(1_000_000), Capacity::Packets(10)));
    assert_eq!((back.loss.get(), back.ber.get()), (0.5, 1e-6));
}

#[test]
fn a_link_has_two_directions_and_each_can_differ() {
    let s = loads(GRAPH, &[]);
    let names: Vec<_> = s.nodes.iter().map(|n| &*n.name).collect();
    assert_eq!(names, ["a", "b", "r1", "r2", "r3"]);
    assert_eq!(s.nodes[3].routes, [(0, 2)]);
    let link = &s.links[1];
    assert_eq!((&*link.name, &*link.reverse_name, link.a, link.b), ("r12", "r12-return", 2, 3));
    assert_eq!((link.forward.rate, link.backward.rate), (rate(10_000_000), rate(1_000_000)));
    assert_eq!((link.forward.loss.get(), link.backward.loss.get()), (0.01, 0.0));
    assert_eq!((link.forward.framing, link.backward.framing), (Size(0), Size(8)));
    assert_eq!(link.backward.delay, Duration::from_millis(270));
    assert_eq!((s.flows[0].from, s.flows[0].to), (0, 1));
}

#[test]
fn nodes_keep_the_order_of_the_file() {
    let text = edit(GRAPH, "hosts = [{ name = \"a\" }, { name = \"b\" }]\n", "");
    let text =
        edit(&text, "[[routers]]\nname = \"r3\"", "[[hosts]]\nname = \"b\"\n\n[[routers]]\nname = \"r3\"");
    let text = edit(&text, "[[flows]]", "[[hosts]]\nname = \"a\"\n\n[[flows]]");
    let nodes = loads(&text, &[]).nodes;
    let names: Vec<_> = nodes.iter().map(|n| &*n.name).collect();
    assert_eq!(names, ["r1", "r2", "b", "r3", "a"]);
}

#[test]
fn without_options_a_host_has_the_defaults() {
    let flow = &loads(GRAPH, &[]).flows[0];
    assert_eq!(*flow.sender, Config::default());
    assert_eq!(*flow.receiver, Config::default());
    assert_eq!((flow.app, flow.reader, flow.start), (App::Bulk, Reader::Eager, Start::At(Instant::ZERO)));
}

/// A Linux host: its defaults, and explicit options that override them. Some schemes do not offer SACK.
#[test]
fn a_linux_host_has_the_defaults_of_linux() {
    let with = |lines: &str| {
        let text =
            edit(GRAPH, "[[flows]]\nname", &format!("[host]\nstack = \"linux\"\n{lines}\n[[flows]]\nname"));
        loads(&text, &[]).flows[0].sender.clone()
    };
    assert_eq!(*with(""), Config::linux());
    let host = with("min_rto = \"1 s\"\ntcp = \"newreno\"\ndelayed_ack = true");
    let newreno = Scheme::named("newreno").unwrap().on(Stack::Linux);
    assert_eq!((host.scheme, host.options.sack, host.stack), (newreno, false, Stack::Linux));
    assert_eq!(host.rto, RtoConfig { min: Duration::from_secs(1), ..Config::linux().rto });
    assert_eq!(host.delayed_ack, Config::linux().delayed_ack);
    let scheme = with("tcp = { scheme = \"cubic\", recovery = { detection = \"sack\" } }").scheme;
    assert_eq!(scheme.recovery.detection, Detection::Sack);
    assert_eq!(scheme.recovery.reduction, Reduction::Prr);
}

/// ECN, user timeout and keep-alive in all forms in which they can be written.
#[test]
fn patience_and_ecn_as_written() {
    let with = |lines: &str| {
        let text = edit(GRAPH, "[[flows]]\nname", &format!("[host]\n{lines}\n[[flows]]\nname"));
        loads(&text, &[]).flows[0].receiver.clone()
    };
    for (word, means) in
        [("true", EcnUse::Request), ("false", EcnUse::Off), ("\"answer\"", EcnUse::AcceptOnly)]
    {
        assert_eq!(with(&format!("ecn = {word}")).ecn, means);
    }
    assert_eq!(with("user_timeout = \"30 s\"").user_timeout, Some(Duration::from_secs(30)));
    assert_eq!(with("user_timeout = \"none\"").user_timeout, None);
    assert_eq!(with("keep_alive = true").keep_alive, Some(KeepAlive::default()));
    assert_eq!(with("keep_alive = false").keep_alive, None);
    let asked = KeepAlive { idle: Duration::from_secs(60), count: 3, ..KeepAlive::default() };
    assert_eq!(with("keep_alive = { idle = \"1 min\", count = 3 }").keep_alive, Some(asked));
}

/// Returns the keys and defaults of a section of the reference page, for keys that have a literal default.
fn documented(section: &str) -> String {
    let page = reference();
    let rows = page.split(&format!("\n## {section}\n")).nth(1).expect("the section exists");
    let mut lines = String::new();
    for row in rows.split("\n## ").next().unwrap_or("").lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        if let Some(literal) = cells[2].strip_prefix('`').and_then(|d| d.strip_suffix('`')) {
            lines.extend([cells[0].trim_matches(['|', ' ', '`']), " = ", literal, "\n"]);
        }
    }
    lines
}

#[test]
fn the_documented_defaults_are_the_real_ones() {
    let plain = loads(GRAPH, &[]);
    for (section, rows, place) in [
        ("`[host]`", 35, "[[flows]]\nname"),
        ("`[[flows]]`", 4, ""),
        ("Top of the file", 2, "title"),
        ("`channel`", 6, "rate = \"1 Gbit/s\""),
    ] {
        let lines = documented(section);
        assert_eq!(lines.lines().count(), rows, "{section}\n{lines}");
        let text = match section {
            "`[host]`" => edit(GRAPH, place, &format!("[host]\n{lines}\n{place}")),
            "`[[flows]]`" => format!("{GRAPH}{lines}"),
            _ => edit(GRAPH, place, &format!("{lines}{place}")),
        };
        assert_eq!(loads(&text, &[]), plain, "{section}");
    }
    for key in ["delayed_ack", "keep_alive"] {
        let defaults = documented(&format!("`{key}`")).trim().replace('\n', ", ");
        let s = with_host(&format!("{key} = {{ {defaults} }}"));
        assert_eq!(s, with_host(&format!("{key} = true")), "{key}");
    }
}

#[test]
fn counted_flows_are_numbered_and_pair_up() {
    let s = loads(DUMBBELL, &[]);
    let flows: Vec<_> = s.flows.iter().map(|f| (&*f.name, f.from, f.to)).collect();
    assert_eq!(flows, [("flow1", 0, 2), ("flow2", 1, 3)]);
    // One host can be the end of all flows.
    let s = loads(&edit(DUMBBELL, "from = \"src\"", "from = \"src2\""), &[]);
    let flows: Vec<_> = s.flows.iter().map(|f| (f.from, f.to)).collect();
    assert_eq!(flows, [(1, 2), (1, 3)]);
    // A count of one still adds a number.
    let s = loads(&edit(DUMBBELL, "count = 2", "count = 1"), &[]);
    assert_eq!(&*s.flows[0].name, "flow1");
}

#[test]
fn a_flow_overrides_the_host() {
    let text = edit(DUMBBELL, "tcp = \"newreno\"", "tcp = \"newreno\"\nsegment = \"500 B\"\niw = 4");
    let sender = &loads(&text, &[]).flows[1].sender;
    assert_eq!((sender.mss, sender.initial_window), (500, 4));
    // Segments of the window have the flow's size, not the host's.
    assert_eq!(sender.receive_buffer, ReceiveBuffer::Fixed(Size(32_000)));
}

#[test]
fn sack_is_offered_by_receivers_and_by_schemes_that_use_it() {
    for (scheme, sender_offers) in [
        ("reno", false),
        ("newreno", false),
        ("vegas", false),
        ("sack", true),
        ("rate-halving", true),
        ("cubic", true),
    ] {
        let text = edit(DUMBBELL, "\"newreno\"", &format!("\"{scheme}\""));
        let flow = &loads(&text, &[]).flows[0];
        assert_eq!(flow.sender.scheme, Scheme::named(scheme).unwrap());
        assert_eq!((flow.sender.options.sack, flow.receiver.options.sack), (sender_offers, true), "{scheme}");
        let flow = &loads(&edit(&text, "[host]", "[host]\nsack = false"), &[]).flows[0];
        assert!(!flow.sender.options.sack && !flow.receiver.options.sack);
    }
}

#[test]
fn a_scheme_takes_parameters() {
    let scheme = |table: &str| loads(&edit(DUMBBELL, "\"newreno\"", table), &[]).flows[0].sender.scheme;
    let cubic = scheme(
        "{ scheme = \"cubic\", beta = 0.8, hystart = false, recovery = { detection = \"sack\", reduction = \"rate-halving\", frto = false } }",
    );
    let params = CubicParams { beta: 0.8, hystart: false, ..CubicParams::default() };
    assert_eq!(cubic.growth, Growth::with(&cubic::ALGORITHM, params));
    assert_eq!(
        (cubic.recovery.detection, cubic.recovery.reduction),
        (Detection::Sack, Reduction::RateHalving)
    );
    assert!(!cubic.recovery.frto);
    let vegas = scheme("{ scheme = \"vegas\", alpha = 2, beta = 4 }");
    assert_eq!(
        vegas.growth,
        Growth::with(&vegas::ALGORITHM, VegasParams { alpha: 2.0, beta: 4.0, gamma: 1.0 })
    );
}

#[test]
fn host_options_reach_the_configuration() {
    let s = with_host(
        "iw = 2\nssthresh = \"window\"\ndelayed_ack = \"on\"\njitter = \"0.9 ms\"\nmin_rto = \"200 ms\"\ninitial_rto = \"3 s\"\nsend_buffer = \"64 KiB\"",
    );
    let (sender, receiver) = (&s.flows[0].sender, &s.flows[0].receiver);
    assert_eq!(sender.initial_ssthresh, Some(Size(64_000)));
    assert_eq!(receiver.delayed_ack, Some(DelayedAck { count: 2, timeout: Duration::from_millis(200) }));
    let jitter = Jitter { max: Duration::from_micros(900), kind: JitterKind::Opportunity };
    assert_eq!((sender.jitter, receiver.jitter), (Some(jitter), None));
    assert_eq!((sender.rto.min, sender.rto.initial), (Duration::from_millis(200), Duration::from_secs(3)));
    assert_eq!(sender.send_buffer, Some(Size(65_536)));

    let s = with_host(
        "ssthresh = \"10 segments\"\ndelayed_ack = false\njitter = \"0 ms\"\njitter_kind = \"packet\"",
    );
    let sender = &s.flows[0].sender;
    assert_eq!(
        (sender.initial_ssthresh, sender.delayed_ack, sender.jitter),
        (Some(Size(10_000)), None, None)
    );
}

#[test]
fn applications_readers_and_starts() {
    let flow = |lines: &str| {
        let text = edit(DUMBBELL, "tcp = \"newreno\"", &format!("tcp = \"newreno\"\n{lines}"));
        let flow = loads(&text, &[]).flows.remove(0);
        (flow.app, flow.reader, flow.start)
    };
    let at = |s: u64| Instant(s * 1_000_000_000);
    assert_eq!(flow("app = { transfer = \"50000 B\" }").0, App::Transfer(Size(50_000)));
    assert_eq!(flow("app = { rate = \"1 Mbit/s\" }").0, App::Rate(rate(1_000_000)));
    assert_eq!(flow("reader = { rate = \"1 Mbit/s\" }").1, Reader::Slow(rate(1_000_000)));
    let pause = flow("reader = { pause = { from = \"1 s\", to = \"2 s\" } }").1;
    assert_eq!(pause, Reader::Pause { from: at(1), to: at(2), every: None });
    let pauses = flow("reader = { pause = { from = \"1 s\", to = \"2 s\", every = \"30 s\" } }").1;
    assert_eq!(pauses, Reader::Pause { from: at(1), to: at(2), every: Some(Duration::from_secs(30)) });
    let turns = flow("reader = { turns = { rate = \"2 Mbit/s\", then = \"1 Mbit/s\", each = \"5 s\" } }").1;
    let rates = [rate(2_000_000), rate(1_000_000)];
    assert_eq!(turns, Reader::Turns { rates, each: Duration::from_secs(5) });
    assert_eq!(flow("reader = { stop_at = \"5 s\" }").1, Reader::StopAt(at(5)));
    assert_eq!(flow("start = \"1 min\"").2, Start::At(at(60)));
    assert_eq!(flow("start = { from = \"0 s\", to = \"1 s\" }").2, Start::Uniform(at(0), at(1)));
}

#[test]
fn the_head_of_the_file() {
    let s = loads(DUMBBELL, &[]);
    assert_eq!((s.title.as_str(), s.seed, s.duration), ("a test", 1, Duration::from_secs(100)));
    assert_eq!((s.stop, s.measure), (Stop::Duration, None));
    let text =
        edit(DUMBBELL, "duration", "seed = 7\nmeasure = { from = \"10 s\", to = \"1 min\" }\nduration");
    let s = loads(&text, &[]);
    assert_eq!(s.seed, 7);
    assert_eq!(s.measure, Some((Instant(10_000_000_000), Instant(60_000_000_000))));
    let other = load(&Source::new("test.toml", text), &[], Some(u64::MAX)).unwrap();
    assert_eq!(other.seed, u64::MAX);
}

#[test]
fn sets_are_typed_by_the_place_where_they_are_used() {
    let s = loads(DUMBBELL, &[("loss", "1e-3"), ("window", "102 KiB")]);
    assert_eq!(s.links[0].forward.loss, Probability::new(1e-3).unwrap());
    assert_eq!(s.flows[0].receiver.receive_buffer, ReceiveBuffer::Fixed(Size(104_448)));
    let wanted = [
        ("loss".to_owned(), ParamValue::Number(1e-3)),
        ("window".to_owned(), ParamValue::Text("102 KiB".into())),
    ];
    assert_eq!(s.parameters, wanted);
    // The last `--set` wins; a number remains a number.
    let s = loads(DUMBBELL, &[("loss", "1e-3"), ("loss", "0")]);
    assert_eq!(s.parameters[0].1, ParamValue::Number(0.0));
    assert!(s.links[0].forward.loss.is_zero());
}

#[test]
fn every_kind_of_value_can_be_set() {
    let text = edit(
        DUMBBELL,
        "[parameters]",
        "[parameters]\nber = 0.0\nsegment = \"1 kB\"\niw = 1\njitter = \"0 s\"\nbuffer = \"9 kB\"\nda = \"off\"\nn = 1\nlength = \"9 s\"\ntcp = \"reno\"\nnagle = true",
    );
    let text = edit(&text, "\"100 s\"", "\"$length\"");
    let text = edit(&text, "pairs = 2", "pairs = \"$n\"\nber = \"$ber\"");
    let text = edit(&text, "\"50 packets\"", "\"$buffer\"");
    let text = edit(
        &text,
        "segment = \"1000 B\"",
        "segment = \"$segment\"\niw = \"$iw\"\njitter = \"$jitter\"\ndelayed_ack = \"$da\"\nnagle = \"$nagle\"",
    );
    let text = edit(&text, "count = 2", "count = \"$n\"");
    let text = edit(&text, "\"newreno\"", "\"$tcp\"");
    let s = loads(
        &text,
        &[
            ("ber", "3e-8"),
            ("segment", "1000 B"),
            ("iw", "4"),
            ("jitter", "0.9 ms"),
            ("buffer", "50 packets"),
            ("da", "on"),
            ("n", "20"),
            ("length", "500 s"),
            ("tcp", "sack"),
            ("nagle", "off"),
        ],
    );
    assert_eq!((s.flows.len(), s.duration), (20, Duration::from_secs(500)));
    let (sender, there) = (&s.flows[19].sender, &s.links[0].forward);
    assert_eq!((there.ber.get(), there.buffer), (3e-8, Capacity::Packets(50)));
    assert_eq!((sender.mss, sender.initial_window, sender.nagle), (1000, 4, false));
    assert_eq!(sender.scheme.name, "sack");
    assert!(sender.jitter.is_some() && sender.delayed_ack.is_some());
    let set: Vec<_> = s.parameters.iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(set[2], ParamValue::Integer(4));
    assert_eq!(set[5], ParamValue::Text("on".into()));
    assert_eq!(set[9], ParamValue::Switch(false));
}

#[test]
fn quantities_are_exact_in_every_unit() {
    for (text, bps) in [
        ("1 bit/s", 1),
        ("1.5 kbit/s", 1_500),
        ("1.544 Mbit/s", 1_544_000),
        ("2 Gbit/s", 2_000_000_000),
        ("64kbps", 64_000),
        ("1e6 bps", 1_000_000),
        ("10 Mbps", 10_000_000),
    ] {
        let s = loads(&edit(DUMBBELL, "10 Mbit/s", text), &[]);
        assert_eq!(s.links[0].forward.rate, rate(bps), "{text}");
    }
    for (text, ns) in [
        ("90000000 ns", 90_000_000),
        ("90.5 ms", 90_500_000),
        ("0.01 min", 600_000_000),
        ("9e4 us", 90_000_000),
    ] {
        let s = loads(&edit(DUMBBELL, "550 ms", text), &[]);
        assert_eq!(s.links[0].forward.delay, Duration(ns / 2 - 2_000_000), "{text}");
    }
    for (text, bytes) in
        [("1 B", 1), ("1.5 kB", 1_500), ("2 MB", 2_000_000), ("1.5 KiB", 1_536), ("1 MiB", 1 << 20)]
    {
        let s = loads(DUMBBELL, &[("window", text)]);
        assert_eq!(s.flows[0].receiver.receive_buffer, ReceiveBuffer::Fixed(Size(bytes)), "{text}");
    }
}

#[test]
fn a_parameter_may_carry_a_doc() {
    let text = edit(DUMBBELL, "loss = 1e-4", "loss = { default = 1e-4, doc = \"packet loss\" }");
    assert_eq!(load(&Source::new("x", text), &sets(&[]), None).unwrap(), loads(DUMBBELL, &[]));
}

#[test]
fn a_grant_is_a_rate_or_a_table() {
    let grant = |text: &str| {
        let flow = loads(&edit(DUMBBELL, "tcp = \"newreno\"", text), &[]).flows[0].clone();
        assert_eq!(flow.sender.grant, flow.receiver.grant);
        flow.sender.grant.clone()
    };
    assert_eq!(grant(""), None);
    assert_eq!(grant("grant = \"none\""), None);
    assert_eq!(grant("grant = \"10 Mbit/s\""), Some(GrantConfig::constant(rate(10_000_000))));
    let table = "grant = { rate = \"10 Mbit/s\", changes = [[\"3 s\", \"4 Mbit/s\"]], fallback = 0.2, fallback_to = \"reno\" }";
    let changes = vec![(Instant(3_000_000_000), rate(4_000_000))];
    let all =
        GrantConfig { rate: rate(10_000_000), changes, fallback: 0.2, fallback_to: FallbackScheme::Reno };
    assert_eq!(grant(table), Some(all));
}
