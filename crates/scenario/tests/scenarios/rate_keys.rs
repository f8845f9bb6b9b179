//! Keys of ends that ask the network for a rate: valid and invalid ones.

use crate::support::{DUMBBELL, RICH, edit, loads, points_at, refuses};
use bentpipe_advice::negotiation::Terms;
use bentpipe_advice::tia1039::RateType;
use bentpipe_base::{Duration, Instant, IpVersion, Rate};
use bentpipe_scenario::{App, DatagramSpec, FlowSpec, Start, Stop, WhenRefused, to_toml};
use bentpipe_tcp::cc::explicit_rate::{self, ExplicitRateParams};
use bentpipe_tcp::cc::law::Growth;
use bentpipe_tcp::{AskConfig, Encoding, Scheme, Signalling};

/// A dumbbell whose flows have these additional keys.
fn with(keys: &str) -> String {
    format!("{DUMBBELL}{keys}\n")
}

/// The first flow of a dumbbell with additional keys.
fn flow(keys: &str) -> FlowSpec {
    loads(&with(keys), &[]).flows.remove(0)
}

fn mbps(n: u64) -> Rate {
    Rate::from_bps(n * 1_000_000).expect("more than zero")
}

fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

fn scheme(name: &str) -> Scheme {
    Scheme::named(name).expect("it is built in")
}

/// Checks for each line of a flow the message, underlined text and label of its error.
#[track_caller]
fn refused(cases: &[(&str, &str, &str, &str)]) {
    for (keys, message, underlined, label) in cases {
        points_at(&with(keys), message, underlined, label);
    }
}

#[test]
fn without_an_encoding_nobody_asks() {
    for keys in ["", "encoding = \"off\"", "encoding = \"off\"\nask = \"1 Mbit/s\"\ntake = \"1 Mbit/s\""] {
        let flow = flow(keys);
        assert_eq!(
            (flow.sender.signalling.clone(), flow.receiver.signalling.clone()),
            (None, None),
            "{keys}"
        );
        assert_eq!((flow.sender.scheme, flow.sender.ip), (scheme("newreno"), IpVersion::V4), "{keys}");
    }
}

#[test]
fn a_sender_asks_and_a_receiver_answers() {
    let flow = flow("encoding = \"tia-1039\"");
    let ask = AskConfig { encoding: Encoding::Tia1039, ask: Some(mbps(10_000)), ..AskConfig::default() };
    let sender = Signalling { ask: ask.clone(), fallback: 0.1, fallback_to: scheme("newreno") };
    let receiver = Signalling { ask: AskConfig { ask: None, ..ask }, ..sender.clone() };
    assert_eq!(
        (flow.sender.signalling.clone(), flow.receiver.signalling.clone()),
        (Some(sender), Some(receiver))
    );
    assert_eq!((flow.sender.scheme, flow.receiver.scheme), (scheme("explicit-rate"), scheme("newreno")));
    assert!(flow.sender.options.sack, "explicit rate uses it, the scheme after a fallback does not");
}

#[test]
fn the_keys_reach_the_ends() {
    let flow = flow(
        "encoding = \"tia-1039\"\nask = \"155 Mbit/s\"\ntake = \"20 Mbit/s\"\ntrust_path = true\n\
         ask_fallback = 0.2\nip = 6\nreceiver = { ask = \"2 Mbit/s\", take = \"none\" }",
    );
    let (sender, receiver) =
        (flow.sender.signalling.clone().unwrap(), flow.receiver.signalling.clone().unwrap());
    assert_eq!((sender.ask.ask, sender.ask.take), (Some(mbps(155)), Some(mbps(20))));
    assert_eq!((receiver.ask.ask, receiver.ask.take), (Some(mbps(2)), None));
    assert!(sender.ask.trust_path && receiver.ask.trust_path);
    assert!((sender.fallback - 0.2).abs() < 1e-12 && (receiver.fallback - 0.2).abs() < 1e-12);
    assert_eq!((flow.sender.ip, flow.receiver.ip), (IpVersion::V6, IpVersion::V6));
    assert_eq!(flow.receiver.scheme, scheme("explicit-rate"), "it asks as well");
}

#[test]
fn an_end_that_only_answers_runs_what_tcp_says() {
    let flow = flow("encoding = \"tia-1039\"\nask = \"none\"");
    assert_eq!((flow.sender.scheme, flow.receiver.scheme), (scheme("newreno"), scheme("newreno")));
    assert_eq!(flow.sender.signalling.clone().unwrap().ask.ask, None);
}

#[test]
fn explicit_rate_keeps_its_parameters_and_falls_back_to_cubic() {
    let table = "tcp = { scheme = \"explicit-rate\", wish = 3 }\nencoding = \"tia-1039\"";
    let flow = loads(&edit(DUMBBELL, "tcp = \"newreno\"", table), &[]).flows.remove(0);
    let params = ExplicitRateParams { wish: 3.0, ..ExplicitRateParams::default() };
    assert_eq!(flow.sender.scheme.growth, Growth::with(&explicit_rate::ALGORITHM, params));
    assert_eq!(flow.sender.signalling.clone().unwrap().fallback_to, scheme("cubic"));
    assert_eq!(flow.receiver.scheme, scheme("cubic"));
}

#[test]
fn a_receiver_may_be_incapable() {
    let flow = flow("encoding = \"tia-1039\"\nreceiver = { encoding = \"off\" }");
    assert!(flow.sender.signalling.is_some() && flow.receiver.signalling.is_none());
    assert_eq!(flow.receiver.scheme, scheme("newreno"));
}

/// The same file describes runs with and without signalling, so the other keys stay where they are.
#[test]
fn a_parameter_switches_the_encoding_off() {
    let text = with(
        "encoding = \"$encoding\"\nask = \"1 Mbit/s\"\ntake = \"2 Mbit/s\"\ntrust_path = true\n\
         ask_fallback = 0.3",
    );
    let text = edit(&text, "[parameters]", "[parameters]\nencoding = \"tia-1039\"");
    assert!(loads(&text, &[]).flows[0].sender.signalling.is_some());
    let off = loads(&text, &[("encoding", "off")]).flows.remove(0);
    assert_eq!((off.sender.signalling.clone(), off.sender.scheme), (None, scheme("newreno")));
    let text = edit(&with("ip = \"$ip\""), "[parameters]", "[parameters]\nip = 4");
    assert_eq!(loads(&text, &[("ip", "6")]).flows[0].receiver.ip, IpVersion::V6);
}

/// With advice or an approved start the sender runs the scheme that `tcp` names.
#[test]
fn the_other_encodings_keep_the_scheme() {
    for (word, encoding) in [("scone-tcp", Encoding::SconeTcp), ("quick-start", Encoding::QuickStart)] {
        let flow = flow(&format!("encoding = \"{word}\"\ntake = \"3 Mbit/s\""));
        assert_eq!((flow.sender.scheme, flow.receiver.scheme), (scheme("newreno"), scheme("newreno")));
        let (sender, receiver) =
            (flow.sender.signalling.clone().unwrap(), flow.receiver.signalling.clone().unwrap());
        assert_eq!((sender.ask.encoding, sender.ask.ask), (encoding, Some(mbps(10_000))));
        assert_eq!((receiver.ask.ask, receiver.ask.take), (None, Some(mbps(3))));
    }
    let grants = edit(&with("encoding = \"scone-tcp\""), "tcp = \"newreno\"", "tcp = \"explicit-rate\"");
    refuses(
        &grants,
        &[],
        r#"
error: `explicit-rate` needs rates as `tia-1039` grants them
  --> test.toml:27:12
   |
27 | encoding = "scone-tcp"
   |            ^^^^^^^^^^^ use "tia-1039", or another scheme in `tcp`
"#,
    );
}

#[test]
fn an_encoding_that_there_is_not() {
    refused(&[(
        "encoding = \"tia1039\"",
        "`encoding` cannot be \"tia1039\"",
        "\"tia1039\"",
        "did you mean `tia-1039`?",
    )]);
}

#[test]
fn keys_of_signalling_that_would_do_nothing() {
    let label = "give `encoding = \"tia-1039\"`, or \"off\" to keep this for later";
    refused(&[
        ("ask = \"1 Mbit/s\"", "`ask` has no effect without an `encoding`", "\"1 Mbit/s\"", label),
        ("take = \"none\"", "`take` has no effect without an `encoding`", "\"none\"", label),
        ("trust_path = true", "`trust_path` has no effect without an `encoding`", "true", label),
        ("ask_fallback = 0.2", "`ask_fallback` has no effect without an `encoding`", "0.2", label),
        (
            "receiver = { ask = \"1 Mbit/s\" }",
            "`ask` has no effect without an `encoding`",
            "\"1 Mbit/s\"",
            label,
        ),
    ]);
    // from [host], too
    let host = edit(DUMBBELL, "[host]", "[host]\nask = \"3 Mbit/s\"");
    points_at(&host, "`ask` has no effect without an `encoding`", "\"3 Mbit/s\"", label);
    assert_eq!(loads(&format!("{host}encoding = \"off\"\n"), &[]).flows[0].sender.signalling, None);
}

#[test]
fn a_rate_comes_from_one_source() {
    let message = "`grant` and `encoding` exclude each other";
    let label = "routers say the rate: give `grant = \"none\"`, or `encoding = \"off\"`";
    refused(&[
        ("encoding = \"tia-1039\"\ngrant = \"3 Mbit/s\"", message, "\"3 Mbit/s\"", label),
        (
            "grant = { rate = \"3 Mbit/s\" }\nencoding = \"tia-1039\"",
            message,
            "{ rate = \"3 Mbit/s\" }",
            label,
        ),
    ]);
    let host = edit(DUMBBELL, "[host]", "[host]\ngrant = \"3 Mbit/s\"");
    points_at(&format!("{host}encoding = \"tia-1039\"\n"), message, "\"3 Mbit/s\"", label);
    let mended = loads(&format!("{host}encoding = \"tia-1039\"\ngrant = \"none\"\n"), &[]);
    assert!(mended.flows[0].sender.signalling.is_some());
}

#[test]
fn values_out_of_range() {
    let on = |keys: &str| format!("encoding = \"tia-1039\"\n{keys}");
    for (keys, message, underlined, label) in [
        (on("ask = \"999 bit/s\""), "`ask` is too small", "\"999 bit/s\"", "at least 1 kbit/s"),
        (on("receiver = { ask = \"1 bit/s\" }"), "`ask` is too small", "\"1 bit/s\"", "at least 1 kbit/s"),
        (on("take = \"999 bit/s\""), "`take` is too small", "\"999 bit/s\"", "at least 1 kbit/s"),
        (on("ask = \"10\""), "`ask` needs a unit", "\"10\"", "write \"10 Mbit/s\" if that is meant"),
        (
            on("ask_fallback = 1.5"),
            "`ask_fallback` is a probability between 0 and 1",
            "1.5",
            "greater than 1",
        ),
        (on("trust_path = 1"), "`trust_path` is a switch", "1", "this is a bare number"),
        (
            on("stack = \"linux\""),
            "a Linux host that asks for a rate is not modelled",
            "\"tia-1039\"",
            "give `stack = \"rfc\"`, or `ask = \"none\"` if it only answers",
        ),
    ] {
        points_at(&with(&keys), message, underlined, label);
    }
    let linux = loads(&with(&on("receiver = { stack = \"linux\" }")), &[]).flows.remove(0);
    assert!(linux.receiver.signalling.is_some(), "a Linux receiver answers");
}

#[test]
fn an_ip_version_that_both_ends_have() {
    refused(&[
        ("ip = 5", "there is no IP version 5", "5", "4 or 6"),
        ("ip = 7", "`ip` is too large", "7", "at most 6"),
        ("ip = \"6\"", "`ip` is a whole number", "\"6\"", "this is text"),
        (
            "ip = 6\nreceiver = { ip = 4 }",
            "both ends of a flow have the same IP version",
            "4",
            "give `ip` to the flow",
        ),
    ]);
    assert_eq!(flow("ip = 6\nreceiver = { ip = 6 }").receiver.ip, IpVersion::V6);
    let host = edit(DUMBBELL, "[host]", "[host]\nip = 6");
    assert_eq!(loads(&host, &[]).flows[1].receiver.ip, IpVersion::V6);
}

/// TCP options have no effect on datagrams, and what `check` prints has no receiver for them.
#[test]
fn datagrams_ask_for_nothing() {
    let udp = "app = { udp = { rate = \"1 Mbit/s\" } }";
    let text = edit(&with(udp), "[host]", "[host]\nencoding = \"tia-1039\"");
    let scenario = loads(&text, &[]);
    assert_eq!(loads(&to_toml(&scenario), &[]), scenario);
}

#[test]
fn a_flow_that_sends_for_some_time() {
    assert_eq!(flow("app = { lasting = \"20 s\" }").app, App::Lasting(Duration::from_secs(20)));
    refused(&[
        ("app = { lasting = \"0 s\" }", "`lasting` must be more than zero", "\"0 s\"", ""),
        (
            "app = { lasting = \"1 s\", transfer = \"1 B\" }",
            "`app` takes exactly one of transfer, rate, lasting, requests, telnet, udp",
            "{ lasting = \"1 s\", transfer = \"1 B\" }",
            "",
        ),
        (
            "app = { lasting = \"1 s\" }\nconnections = 2",
            "these connections have nothing to share",
            "2",
            "only `app = { transfer = ... }` can be parted",
        ),
    ]);
    // it ends, so a run can stop with it
    let text = with("app = { lasting = \"20 s\" }");
    let text = edit(&text, "[parameters]", "stop = \"finished\"\n[parameters]");
    assert_eq!(loads(&text, &[]).stop, Stop::Finished);
}

#[test]
fn flows_of_a_count_start_one_after_another() {
    let starts = |keys: &str| {
        let flows = loads(&with(&format!("start = {{ {keys} }}")), &[]).flows;
        flows.iter().map(|flow| flow.start).collect::<Vec<_>>()
    };
    assert_eq!(starts("every = \"0.4 s\""), [Start::At(at(0)), Start::At(at(400))]);
    assert_eq!(starts("from = \"3 s\", every = \"0.4 s\""), [Start::At(at(3000)), Start::At(at(3400))]);
    assert_eq!(starts("every = \"99.9 s\"")[1], Start::At(at(99_900)));
}

#[test]
fn starts_that_cannot_be() {
    let late = "the last of these flows starts after the run";
    refused(&[
        (
            "start = { every = \"1 s\", to = \"9 s\" }",
            "`to` and `every` exclude each other",
            "\"9 s\"",
            "`every` and `from` say all starts: drop one of the two",
        ),
        ("start = { every = \"0 s\" }", "`every` must be more than zero", "\"0 s\"", ""),
        (
            "start = { every = \"100 s\" }",
            late,
            "\"100 s\"",
            "that would be at 100 s, and the run lasts 100 s",
        ),
        (
            "start = { from = \"200 s\", every = \"1 s\" }",
            late,
            "\"200 s\"",
            "that would be at 201 s, and the run lasts 100 s",
        ),
        ("start = {}", "`start` has no `from`", "{}", "`from` must be given"),
        ("start = { from = \"1 s\" }", "`start` has no `to`", "{ from = \"1 s\" }", "`to` must be given"),
        (
            "start = { from = \"2 s\", to = \"1 s\" }",
            "`start` ends before it begins",
            "\"1 s\"",
            "it begins at 2 s",
        ),
    ]);
    let alone = edit(&with("start = { every = \"1 s\" }"), "count = 2\nfrom = \"src\"", "from = \"src1\"");
    let alone = edit(&alone, "to = \"dst\"", "to = \"dst1\"");
    points_at(
        &alone,
        "`every` is between the flows of a `count`",
        "\"1 s\"",
        "this is one flow: give `count`",
    );
}

#[test]
fn what_check_prints_loads_back_to_the_same_scenario() {
    let mut texts: Vec<String> = [
        "encoding = \"tia-1039\"",
        "encoding = \"tia-1039\"\nask = \"none\"\nip = 6",
        "encoding = \"tia-1039\"\nreceiver = { encoding = \"off\" }",
        "encoding = \"off\"\nreceiver = { encoding = \"tia-1039\", ask = \"3 Mbit/s\", take = \"4 Mbit/s\" }",
        "encoding = \"tia-1039\"\nreceiver = { ask = \"1.5 Mbit/s\", sack = false }",
        "encoding = \"tia-1039\"\nreceiver = { ask = \"10 Gbit/s\" }",
        "encoding = \"tia-1039\"\nask = \"none\"\nreceiver = { ask = \"10 Gbit/s\" }",
        "encoding = \"tia-1039\"\nreceiver = { tcp = \"reno\", stack = \"linux\" }",
        "encoding = \"tia-1039\"\nask_fallback = 0.25\ntake = \"7 Mbit/s\"\ntrust_path = true\nsack = false",
        "start = { every = \"0.4 s\" }\napp = { lasting = \"20 s\" }",
    ]
    .map(with)
    .into();
    for tcp in [
        "\"explicit-rate\"",
        "{ scheme = \"explicit-rate\", wish = 3, copies = false }",
        "{ scheme = \"explicit-rate\", recovery = { frto = false } }",
        "{ scheme = \"vegas\", alpha = 1.5 }",
        "{ scheme = \"cubic\", recovery = { detection = \"sack\" } }",
        "\"peach\"",
    ] {
        for receiver in ["", "\nreceiver = { sack = false }", "\nreceiver = { encoding = \"off\" }"] {
            let keys = format!("tcp = {tcp}\nencoding = \"tia-1039\"{receiver}");
            texts.push(edit(DUMBBELL, "tcp = \"newreno\"", &keys));
        }
    }
    texts.push(edit(RICH, "name = \"web\"", "name = \"web\"\nencoding = \"tia-1039\""));
    for text in &texts {
        let scenario = loads(text, &[]);
        let printed = to_toml(&scenario);
        assert_eq!(loads(&printed, &[]), scenario, "{printed}");
        assert_eq!(to_toml(&loads(&printed, &[])), printed);
    }
}

#[test]
fn an_end_asks_for_reserved_rates_and_priorities() {
    let of = |ask: &str| {
        let flow = flow(&format!("encoding = \"tia-1039\"\nask = {ask}"));
        (flow.sender.signalling.clone().unwrap().ask, flow.receiver.signalling.clone().unwrap().ask)
    };
    for (ask, rate_type, asked, reserved) in [
        ("{ available = \"3 Mbit/s\", delay = 63 }", RateType::Available, 3, None),
        ("{ guaranteed = \"2 Mbit/s\" }", RateType::Guaranteed, 2, Some(2)),
        ("{ maximum = \"2 Mbit/s\" }", RateType::Maximum, 2, Some(2)),
        ("{ guaranteed = \"2 Mbit/s\", available = \"3 Mbit/s\" }", RateType::Composite, 3, Some(2)),
    ] {
        let (sender, receiver) = of(ask);
        assert_eq!((sender.ask, sender.terms.rate_type), (Some(mbps(asked)), rate_type), "{ask}");
        assert_eq!(sender.terms.guaranteed, reserved.map(mbps), "{ask}");
        assert_eq!((receiver.ask, receiver.terms), (None, Terms::default()), "{ask}");
    }
    let (sender, _) = of("{ maximum = \"1 Mbit/s\", preemption = 7, delay = 9, burst = \"70 ms\", \
                          charge = \"receiver\" }");
    let Terms { preemption, delay, burst_exponent, receiver_pays, .. } = sender.terms;
    assert_eq!((preemption, delay, burst_exponent, receiver_pays), (7, 9, 3, true), "62.5 ms");
}

#[test]
fn what_no_end_can_ask_for() {
    let with = |ask: &'static str| format!("encoding = \"tia-1039\"\nask = {ask}");
    let least = "at least 15.258 us";
    for (ask, message, underlined, label) in [
        ("{}", "`ask` has no rate", "{}", "give `available`, `guaranteed`, both, or `maximum`"),
        (
            "{ maximum = \"1 Mbit/s\", guaranteed = \"2 Mbit/s\" }",
            "a `maximum` rate is asked for alone",
            "\"1 Mbit/s\"",
            "drop this, or the others",
        ),
        ("{ guaranteed = \"999 bit/s\" }", "`guaranteed` is too small", "\"999 bit/s\"", "at least 1 kbit/s"),
        ("{ maximum = \"1 Mbit/s\", burst = \"15 us\" }", "`burst` is too short", "\"15 us\"", least),
        (
            "{ maximum = \"1 Mbit/s\", burst = \"501 ms\" }",
            "`burst` is too large",
            "\"501 ms\"",
            "the limit is 500 ms",
        ),
        ("{ maximum = \"1 Mbit/s\", delay = 64 }", "`delay` is too large", "64", "at most 63"),
    ] {
        refused(&[(&with(ask), message, underlined, label)]);
    }
}

#[test]
fn datagrams_ask_for_reserved_rates_alone() {
    let udp = "app = { udp = { rate = \"1 Mbit/s\", lasting = \"9 s\", refused = \"send\" } }\n";
    let asks = |keys: &str| flow(&format!("{udp}{keys}")).asks_for_datagrams();
    let reserved = "ask = { maximum = \"2 Mbit/s\" }";
    assert!(asks(&format!("encoding = \"tia-1039\"\n{reserved}")));
    assert!(!asks(&format!("encoding = \"off\"\n{reserved}")), "switched off");
    assert!(!asks("encoding = \"tia-1039\""), "an available rate is none that datagrams could follow");
    assert!(!flow(&format!("encoding = \"tia-1039\"\n{reserved}")).asks_for_datagrams(), "it is TCP");
    let spec = flow(udp).datagrams;
    assert_eq!((spec.lasting, spec.when_refused), (Some(Duration::from_secs(9)), WhenRefused::Send));
    assert_eq!(flow("").datagrams, DatagramSpec::default());
    let other =
        flow(&format!("{udp}encoding = \"tia-1039\"\n{reserved}\nreceiver = {{ encoding = \"off\" }}"));
    assert!(other.asks_for_datagrams() && other.receiver.signalling.is_none());
    refused(&[(
        "app = { udp = { rate = \"1 Mbit/s\", lasting = \"0 s\" } }",
        "`lasting` must be more than zero",
        "\"0 s\"",
        "",
    )]);
}

#[test]
fn what_check_prints_of_reserved_rates_loads_back() {
    let udp = "app = { udp = { rate = \"1 Mbit/s\", lasting = \"9 s\", refused = \"send\" } }";
    for keys in [
        "ask = { available = \"3 Mbit/s\", delay = 63 }",
        "ask = { guaranteed = \"2 Mbit/s\", available = \"3 Mbit/s\", preemption = 5, burst = \"1 ms\" }",
        "ask = { maximum = \"2 Mbit/s\", charge = \"receiver\" }\nreceiver = { ask = { guaranteed = \"1 Mbit/s\" } }",
        &format!("ask = {{ guaranteed = \"2 Mbit/s\" }}\n{udp}\nreceiver = {{ take = \"1 Mbit/s\" }}"),
        &format!("{udp}\nask = {{ maximum = \"2 Mbit/s\" }}\nreceiver = {{ encoding = \"off\" }}"),
    ] {
        let scenario = loads(&with(&format!("encoding = \"tia-1039\"\n{keys}")), &[]);
        let printed = to_toml(&scenario);
        assert_eq!(loads(&printed, &[]), scenario, "{printed}");
    }
}
