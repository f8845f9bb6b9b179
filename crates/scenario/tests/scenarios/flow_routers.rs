//! Flow routers: valid and invalid ones.

use crate::support::{DUMBBELL, RICH, edit, loads, points_at};
use bentpipe_base::{Duration, Instant, Prefix, Rate, Size};
use bentpipe_flow_router::{ClassConfig, RouterConfig, Rule};
use bentpipe_scenario::{Direction, FlowRouterSpec, Scenario, to_toml};
use core::net::IpAddr;

/// A dumbbell with a flow router that has these additional keys.
fn with(keys: &str) -> String {
    format!("{DUMBBELL}\n[[flow_routers]]\nname = \"fr\"\nlink = \"bottleneck\"\n{keys}\n")
}

fn router(keys: &str) -> FlowRouterSpec {
    loads(&with(keys), &[]).flow_routers.remove(0)
}

fn mbps(n: u64) -> Rate {
    Rate::from_bps(n * 1_000_000).expect("more than zero")
}

fn prefix(address: &str, length: u8) -> Prefix {
    let address: IpAddr = address.parse().expect("an address");
    Prefix::new(address, length).expect("its length")
}

const CLASSES: &str =
    "classes = [{ name = \"gold\", weight = 3, reservable = 0.6 }, { name = \"rest\", weight = 1 }]";

#[test]
fn a_flow_router_takes_the_rate_of_its_direction() {
    let spec = router("");
    assert_eq!((spec.name.as_str(), spec.hop), ("fr", Direction { link: 0, backward: false }));
    assert_eq!((spec.config, spec.rates), (RouterConfig::new(mbps(10)), Vec::new()));
}

#[test]
fn a_flow_router_is_told_otherwise() {
    let spec = router(&format!(
        "rate = \"8 Mbit/s\"\nutilisation = 1\nidle = \"1 min\"\nidle_maximum = \"1 s\"\nmtu = \"9000 B\"\n\
         limits = {{ flows = 7, half_open = 3, half_open_time = \"4 s\" }}\n{CLASSES}\n\
         rules = [{{ from = [\"10.55.0.0/16\", \"fd55::1\"], class = \"rest\", available = \"2 Mbit/s\", \
         guaranteed = \"64 kbit/s\", preemption = 63, delay = 5 }}, {{ from = \"0.0.0.0/0\" }}]"
    ));
    let gold = ClassConfig { name: "gold".into(), weight: 3.0, reservable: 0.6 };
    let rest = ClassConfig { name: "rest".into(), weight: 1.0, reservable: 0.25 };
    let some = Rule {
        class: 1,
        available: Some(mbps(2)),
        guaranteed: Rate::from_bps(64_000),
        preemption: 63,
        delay: 5,
        ..Rule::new(prefix("10.55.0.0", 16))
    };
    let same = Rule { from: prefix("fd55::1", 128), ..some.clone() };
    let RouterConfig { classes, policy, .. } = &spec.config;
    assert_eq!(*classes, [gold, rest]);
    assert_eq!(policy.rules, [some, same, Rule::new(prefix("0.0.0.0", 0))]);
    let config = &spec.config;
    assert!((config.utilisation - 1.0).abs() < 1e-12 && config.rate == mbps(8));
    assert_eq!((config.idle, config.idle_maximum), (Duration::from_secs(60), Duration::from_secs(1)));
    assert_eq!((config.flows, config.half_open, config.mtu), (7, 3, Size(9000)));
    assert_eq!(config.half_open_time, Duration::from_secs(4));
}

/// A trunk that breaks: the router is told at that time.
#[test]
fn rates_of_the_timeline_are_followed_in_the_order_of_time() {
    let entry = |at: &str, link: &str, change: &str| {
        format!("\n[[timeline]]\nat = \"{at}\"\nlink = \"{link}\"\n{change}\n")
    };
    let timeline = [
        entry("20 s", "bottleneck", "rate = \"10 Mbit/s\""),
        entry("10 s", "bottleneck", "rate = \"2 Mbit/s\"\nloss = 0.1"),
        entry("5 s", "bottleneck", "loss = 0.2"),
        entry("6 s", "bottleneck-return", "rate = \"3 Mbit/s\""),
    ]
    .concat();
    let at = |s: u64| Instant(s * 1_000_000_000);
    for (keys, rate) in [("", mbps(10)), ("rate = \"9 Mbit/s\"", mbps(9))] {
        let spec = loads(&format!("{}{timeline}", with(keys)), &[]).flow_routers.remove(0);
        assert_eq!(spec.rates, [(at(10), mbps(2)), (at(20), mbps(10))], "{keys}");
        assert_eq!(spec.config.rate, rate, "{keys}");
    }
}

#[test]
fn a_direction_whose_rate_changes_by_itself_needs_a_rate_for_its_flow_router() {
    for line in [
        "capacity = { steps = [[\"0 s\", \"5 Mbit/s\"]] }",
        "dama = {}",
        "fade = { profile = [[\"0 s\", \"1 dB\"]], acm = { clear = \"16 dB\" } }",
        "orbit = { slots = { delay = \"20 ms\", rate = [\"1 Mbit/s\", \"2 Mbit/s\"] } }",
    ] {
        let text = edit(&with(""), "loss = \"$loss\"", &format!("loss = \"$loss\"\n{line}"));
        let label = "give the flow router a `rate`";
        points_at(&text, "the rate of `bottleneck` changes", "\"bottleneck\"", label);
        let told = text.replace("name = \"fr\"", "name = \"fr\"\nrate = \"1 Mbit/s\"");
        assert_eq!(loads(&told, &[]).flow_routers[0].config.rate, mbps(1));
    }
}

#[test]
fn a_flow_router_that_is_switched_off_leaves_no_trace_but_is_checked() {
    let switched = |on: &str| {
        let text = with("enabled = \"$router\"").replace("[parameters]", "[parameters]\nrouter = \"off\"");
        loads(&text, &[("router", on)])
    };
    let without = |s: Scenario| Scenario { parameters: Vec::new(), ..s };
    assert_eq!(without(switched("off")), without(loads(DUMBBELL, &[])));
    assert_eq!(switched("on").flow_routers.len(), 1);
    points_at(
        &with("enabled = false\nutilisation = 2"),
        "`utilisation` is a part of the rate",
        "2",
        "more than 0 and at most 1",
    );
}

#[test]
fn a_gateway_may_stand_before_a_flow_router() {
    let both = format!("{}\n[[gateways]]\nname = \"fr\"\nlink = \"bottleneck\"\n", with(""));
    let s = loads(&both, &[]);
    assert_eq!((s.gateways[0].hop, s.flow_routers.len()), (s.flow_routers[0].hop, 1));
}

#[test]
fn what_cannot_be_is_refused_where_it_stands() {
    let second = "\n[[flow_routers]]\nname = \"fr\"\nlink = \"bottleneck-return\"";
    points_at(&with(second), "two flow routers are called `fr`", "\"fr\"", "this name is taken");
    let second = "\n[[flow_routers]]\nname = \"other\"\nlink = \"bottleneck\"";
    points_at(&with(second), "two flow routers before `bottleneck`", "\"bottleneck\"", "this is the second");
    let unknown = with("").replace("link = \"bottleneck\"", "link = \"botleneck\"");
    points_at(&unknown, "there is no link `botleneck`", "\"botleneck\"", "did you mean `bottleneck`?");
    for (keys, message, underlined, label) in [
        ("utilisation = 0", "`utilisation` is a part of the rate", "0", "more than 0 and at most 1"),
        ("rate = \"none\"", "`rate` is not a rate", "\"none\"", "write \"10 Mbit/s\" or the like"),
        ("idle = \"0 s\"", "`idle` must be more than zero", "\"0 s\"", ""),
        ("idle_maximum = \"0 s\"", "`idle_maximum` must be more than zero", "\"0 s\"", ""),
        ("mtu = \"575 B\"", "`mtu` is too small", "\"575 B\"", "at least 576 B"),
        ("mtu = \"65536 B\"", "`mtu` is too large", "\"65536 B\"", "the limit is 65535 B"),
        ("limits = { flows = 0 }", "`flows` is too small", "0", "at least 1"),
        ("limits = { half_open = 0 }", "`half_open` is too small", "0", "at least 1"),
        ("limits = { half_open_time = \"0 s\" }", "`half_open_time` must be more than zero", "\"0 s\"", ""),
        (
            "utilization = 1",
            "unknown key `utilization` in [[flow_routers]]",
            "utilization",
            "did you mean `utilisation`?",
        ),
    ] {
        points_at(&with(keys), message, underlined, label);
    }
}

#[test]
fn classes_that_cannot_be() {
    for (keys, message, underlined, label) in [
        ("classes = []", "there are no classes", "[]", "drop this, or give one"),
        (
            "classes = [{ name = \"a\" }]",
            "`classes` has no `weight`",
            "{ name = \"a\" }",
            "`weight` must be given",
        ),
        ("classes = [{ name = \"a\", weight = 0 }]", "`weight` must be more than zero", "0", ""),
        ("classes = [{ name = \"a\", weight = -2.5 }]", "`weight` must be more than zero", "-2.5", ""),
        (
            "classes = [{ name = \"a\", weight = 1 }, { name = \"a\", weight = 2 }]",
            "two classes are called `a`",
            "\"a\"",
            "this name is taken",
        ),
        (
            "classes = [{ name = \"a\", weight = 1, reservable = 1.5 }]",
            "`reservable` is out of range",
            "1.5",
            "from 0 to 1",
        ),
        (
            "classes = [{ name = \"a\", weight = 1, reservable = 0.75 }, \
             { name = \"b\", weight = 1, reservable = 0.5 }]",
            "the classes may reserve more than the rate",
            "0.5",
            "`reservable` is 1.25 up to here",
        ),
        (
            "classes = [{ name = \"a\", weight = 1, reservable = 1 }, { name = \"b\", weight = 1 }]",
            "the classes may reserve more than the rate",
            "{ name = \"b\", weight = 1 }",
            "`reservable` is 1.25 up to here",
        ),
    ] {
        points_at(&with(keys), message, underlined, label);
    }
    // as floating-point numbers, these sum up to a little more than 1
    let all = [("a", 0.05), ("b", 0.55), ("c", 0.3), ("d", 0.1)]
        .map(|(name, share)| format!("{{ name = \"{name}\", weight = 1, reservable = {share} }}"));
    assert_eq!(router(&format!("classes = [{}]", all.join(", "))).config.classes.len(), 4);
}

#[test]
fn rules_that_cannot_be() {
    for (keys, message, underlined, label) in [
        ("rules = [{ class = \"a\" }]", "`rules` has no `from`", "{ class = \"a\" }", "`from` must be given"),
        (
            "rules = [{ from = \"10.0.0.0/8\", class = \"defolt\" }]",
            "there is no class `defolt`",
            "\"defolt\"",
            "did you mean `default`?",
        ),
        (
            "rules = [{ from = \"10.0.0.1/8\" }]",
            "`from` has bits after its prefix",
            "\"10.0.0.1/8\"",
            "write \"10.0.0.0/8\", or \"10.0.0.1\" for this address alone",
        ),
        (
            "rules = [{ from = \"10.0.0.0/8\", preemption = 64 }]",
            "`preemption` is too large",
            "64",
            "at most 63",
        ),
        (
            "rules = [{ from = \"10.0.0.0/8\", available = \"1 bit/s\" }]",
            "`available` is too small",
            "\"1 bit/s\"",
            "at least 1 kbit/s",
        ),
        (
            "rules = [{ from = \"10.0.0.0/8\", guaranteed = \"1 bit/s\" }]",
            "`guaranteed` is too small",
            "\"1 bit/s\"",
            "at least 1 kbit/s",
        ),
        (
            "rules = [{ from = \"10.0.0.0/8\" }, { from = [\"11.0.0.1\", \"10.1.0.0/16\"] }]",
            "this prefix is never looked at",
            "\"10.1.0.0/16\"",
            "an earlier rule has 10.0.0.0/8; the first that matches applies",
        ),
    ] {
        points_at(&with(keys), message, underlined, label);
    }
    points_at(
        &with("rules = [{ from = [\"10.55.0.1\", \"10.1.0.0/16\"] }]"),
        "no host has an address with this prefix",
        "\"10.1.0.0/16\"",
        "the rule has no effect",
    );
    let narrow_first = "rules = [{ from = \"10.55.0.0/24\" }, { from = [\"10.0.0.0/8\", \"::/0\"] }]";
    assert_eq!(router(narrow_first).config.policy.rules.len(), 3);
}

#[test]
fn what_check_prints_loads_back_to_the_same_scenario() {
    let rules = "rules = [{ from = [\"10.55.0.1\", \"fd55::/16\"], class = \"rest\", \
                 available = \"1.5 Mbit/s\" }, { from = \"10.55.0.0/16\", guaranteed = \"64 kbit/s\", \
                 preemption = 3, delay = 63 }]";
    let others = "utilisation = 0.1\nmtu = \"1280 B\"\nidle = \"1.5 s\"";
    let timeline = "[[timeline]]\nat = \"10 s\"\nlink = \"bottleneck\"\nrate = \"20 Mbit/s\"";
    let up = "[[flow_routers]]\nname = \"up\"\nlink = \"sky\"\nrate = \"1 Mbit/s\"";
    let down = "[[flow_routers]]\nname = \"down\"\nlink = \"b2-return\"";
    let texts = [
        with(""),
        with(&format!("{CLASSES}\n{rules}\n{others}\n\n{timeline}")),
        format!("{RICH}\n{up}\n\n{down}\n"),
    ];
    for text in texts {
        let scenario = loads(&text, &[]);
        let printed = to_toml(&scenario);
        assert_eq!(loads(&printed, &[]), scenario, "{printed}");
        assert_eq!(to_toml(&loads(&printed, &[])), printed);
    }
}
