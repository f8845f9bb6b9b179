//! Changes a scenario with all features one key at a time: each that affects results changes the key.

use super::{CellKey, run_key};
use bentpipe_scenario::{Files, Scenario, Source, load_with, to_toml};
use std::collections::BTreeSet;

#[path = "../../scenario/tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests of scenario files use more of it")]
mod support;

use support::{RICH, edit};

/// Trace files: names and contents.
struct Traces<'a>(&'a [(&'a str, &'a str)]);

impl Files for Traces<'_> {
    fn read(&self, path: &str) -> Result<String, String> {
        let found = self.0.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "there is none".to_owned())
    }
}

fn loads(text: &str, traces: &[(&str, &str)]) -> Scenario {
    load_with(&Source::new("rich.toml", text), &[], None, &Traces(traces)).unwrap_or_else(|e| panic!("{e}"))
}

/// Delay for a link without a timeline.
const GEO: &str = "delay = { satellite = \"-100 deg\", stations = [[\"39.3 deg\", \"-82.1 deg\"], [\"41.4 deg\", \"-81.9 deg\"]] }";

/// Text in the file, and its replacement.
const CHANGES: &[(&str, &str)] = &[
    ("duration = \"100 s\"", "duration = \"101 s\""),
    ("duration = \"100 s\"", "duration = \"100 s\"\nseed = 2"),
    ("duration = \"100 s\"", "duration = \"100 s\"\nstop = \"finished\""),
    ("duration = \"100 s\"", "duration = \"100 s\"\nmeasure = { from = \"0 s\", to = \"50 s\" }"),
    ("duration = \"100 s\"", "duration = \"100 s\"\nmeasure = { from = \"1 s\", to = \"50 s\" }"),
    ("k = 2.0", "k = 2.5"),
    ("keepalive = \"on\"", "keepalive = \"off\""),
    // links
    ("name = \"a1\"\nfrom", "name = \"a1\"\nreverse_name = \"back\"\nfrom"),
    ("framing = \"4 B\"", "framing = \"5 B\""),
    ("loss_draw = \"gap\"", "loss_draw = \"packet\""),
    ("buffer = \"1000 packets\"", "buffer = \"1001 packets\""),
    ("buffer = \"1000 packets\"", "buffer = \"1000 kB\""),
    ("buffer = \"1000 packets\"", "buffer = \"1000 packets\"\ndiscipline = \"pushout\""),
    ("buffer = \"1000 packets\"", "buffer = \"1000 packets\"\ndiscipline = \"drop-head\""),
    ("buffer = \"1000 packets\"", "buffer = \"1000 packets\"\ndiscipline = \"codel\""),
    (
        "buffer = \"1000 packets\"",
        "buffer = \"1000 packets\"\ndiscipline = { codel = { target = \"6 ms\" } }",
    ),
    (
        "buffer = \"1000 packets\"",
        "buffer = \"1000 packets\"\ndiscipline = { codel = { interval = \"99 ms\" } }",
    ),
    ("buffer = \"1000 packets\"", "buffer = \"1000 packets\"\ndiscipline = { codel = { ecn = false } }"),
    ("buffer = \"1000 packets\"", "buffer = \"1000 packets\"\ndiscipline = \"fq_codel\""),
    ("buffer = \"1000 packets\"", "buffer = \"1000 packets\"\ndiscipline = { fq_codel = { flows = 1023 } }"),
    (
        "buffer = \"1000 packets\"",
        "buffer = \"1000 packets\"\ndiscipline = { fq_codel = { quantum = \"1501 B\" } }",
    ),
    (
        "buffer = \"1000 packets\"",
        "buffer = \"1000 packets\"\ndiscipline = { fq_codel = { target = \"6 ms\" } }",
    ),
    ("rate = \"10 Mbit/s\"", "rate = \"10.000001 Mbit/s\""),
    ("loss = 0.001\nloss_draw", "loss = 0.002\nloss_draw"),
    ("loss = 0.001\nloss_draw = \"gap\"", "loss = 0.001\nber = 1e-12"),
    ("delay = \"30 ms\"", "delay = \"30.000001 ms\""),
    ("[\"39.3 deg\"", "[\"39.4 deg\""),
    (GEO, "delay = { steps = [[\"0 s\", \"30 ms\"]] }"),
    (GEO, "delay = { steps = [[\"0 s\", \"30 ms\"], [\"1 s\", \"31 ms\"]] }"),
    (GEO, "delay = { steps = [[\"0 s\", \"30 ms\"], [\"1 s\", \"31 ms\"]], repeat = \"2 s\" }"),
    ("buffer = \"1000 packets\"", "buffer = \"1000 packets\"\nloss = { steps = [[\"0 s\", 0.1]] }"),
    (
        "buffer = \"1000 packets\"",
        "buffer = \"1000 packets\"\nloss = { steps = [[\"0 s\", 0.1]], repeat = \"2 s\" }",
    ),
    // capacity
    ("\"5 Mbit/s\"], [\"10 s\"", "\"6 Mbit/s\"], [\"10 s\""),
    ("[\"10 s\", \"none\"]", "[\"10 s\", \"1 bit/s\"]"),
    ("[\"11.5 s\"", "[\"11.6 s\""),
    (", repeat = \"60 s\"", ""),
    ("repeat = \"60 s\"", "repeat = \"61 s\""),
    ("[0, 0, 3, 7]", "[0, 3, 7]"),
    ("[0, 0, 3, 7]", "[0, 0, 3, 8]"),
    // fades
    ("m = -3, scale", "m = -3.0000000000000004, scale"),
    ("scintillation = \"0.2 dB\"", "scintillation = \"0.3 dB\""),
    ("scale = 1.9", "scale = 2"),
    ("scale = 1.9", "scale = 1.9, sigma = 1.6"),
    ("scale = 1.9", "scale = 1.9, p0 = 0.06"),
    ("scale = 1.9", "scale = 1.9, beta = \"3e-4 1/s\""),
    ("scale = 1.9", "scale = 1.9, step = \"2 s\""),
    ("scale = 1.9", "scale = 1.9, station = \"other\""),
    ("clear = \"16 dB\"", "clear = \"15 dB\""),
    ("clear = \"16 dB\"", "clear = \"16 dB\", hysteresis = \"0.7 dB\""),
    ("clear = \"16 dB\"", "clear = \"16 dB\", margin = \"2 dB\""),
    ("clear = \"16 dB\"", "clear = \"16 dB\", delay = \"3 s\""),
    ("every = \"2 s\"", "every = \"3 s\""),
    ("coding = \"uncoded\"", "coding = \"viterbi\""),
    ("ber = 1e-5 }", "ber = 2e-5 }"),
    ("[\"7200 s\", \"0 dB\"]", "[\"7200 s\", \"1 dB\"]"),
    ("[\"7200 s\", \"0 dB\"]", "[\"7201 s\", \"0 dB\"]"),
    ("threshold = \"3 dB\"", "threshold = \"4 dB\""),
    ("clear = \"7.25 dB\"", "clear = \"7.26 dB\""),
    // bursts, outages, access
    ("loss = 0.01, burst", "loss = 0.02, burst"),
    ("burst = \"100 ms\"", "burst = \"101 ms\""),
    ("good = \"10 s\"", "good = \"11 s\""),
    ("bad = \"0.5 s\"", "bad = \"0.6 s\""),
    ("loss_good = 0.001", "loss_good = 0.002"),
    ("loss_bad = 0.5", "loss_bad = 0.6"),
    ("every = \"60 s\", length", "every = \"61 s\", length"),
    ("[\"1 s\", \"2 s\"] }", "[\"1 s\", \"3 s\"] }"),
    ("[\"1 s\", \"2 s\"] }", "[\"1.5 s\", \"2 s\"] }"),
    ("idle = \"0.3 s\"", "idle = \"0.4 s\""),
    ("setup = \"4.75 s\"", "setup = \"4.76 s\""),
    ("free = \"100 kbit/s\"", "free = \"101 kbit/s\""),
    ("dama = { free = \"100 kbit/s\" }", "dama = {}"),
    ("free = \"100 kbit/s\"", "free = \"100 kbit/s\", frame = \"47 ms\""),
    // orbits
    ("altitude = \"8062 km\"", "altitude = \"8063 km\""),
    ("altitude = \"8062 km\"", "altitude = \"8062 km\", min_elevation = \"11 deg\""),
    ("altitude = \"8062 km\"", "altitude = \"8062 km\", every = \"2 s\""),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\" } }\nidle_release"),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\", period = \"14 s\" } }\nidle_release"),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\", offset = \"1 s\" } }\nidle_release"),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\", pair = \"p\" } }\nidle_release"),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\", jitter = \"1 ms\" } }\nidle_release"),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\", jitter_step = \"11 ms\" } }\nidle_release"),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\", rate = \"9 Mbit/s\" } }\nidle_release"),
    ("idle_release", "orbit = { slots = { delay = [\"20 ms\", \"21 ms\"] } }\nidle_release"),
    (
        "idle_release",
        "orbit = { slots = { delay = \"20 ms\", handover = { outage = \"1 s\" } } }\nidle_release",
    ),
    (
        "idle_release",
        "orbit = { slots = { delay = \"20 ms\", handover = { loss = 0.5, time = \"1 s\" } } }\nidle_release",
    ),
    (
        "idle_release",
        "orbit = { slots = { delay = \"20 ms\", handover = { loss = 0.5, time = \"2 s\" } } }\nidle_release",
    ),
    ("idle_release", "orbit = { slots = { delay = \"20 ms\", reorder = true } }\nidle_release"),
    // applications
    ("name = \"parted\"", "name = \"divided\""),
    ("transfer = \"1001 B\"", "transfer = \"1002 B\""),
    ("connections = 3", "connections = 4"),
    ("{ transfer = \"1001 B\" }\nconnections = 3", "\"bulk\""),
    ("{ transfer = \"1001 B\" }\nconnections = 3", "{ rate = \"1 Mbit/s\" }"),
    ("response = \"50 kB\"", "response = \"51 kB\""),
    ("response = \"50 kB\"", "response = \"50 kB\", request = \"301 B\""),
    ("think = \"2 s\"", "think = \"3 s\""),
    (", count = 9", ""),
    ("count = 9", "count = 8"),
    ("telnet = {}", "telnet = { size = \"2 B\" }"),
    ("telnet = {}", "telnet = { gap = \"2 s\" }"),
    ("rate = \"64 kbit/s\"", "rate = \"65 kbit/s\""),
    ("size = \"160 B\"", "size = \"161 B\""),
    ("pattern = \"poisson\"", "pattern = \"constant\""),
    ("on = \"1 s\"", "on = \"1.1 s\""),
    ("off = \"3 s\"", "off = \"3.1 s\""),
    ("app = { telnet = {} }", "app = { telnet = {} }\nstart = \"1 s\""),
    ("app = { telnet = {} }", "app = { telnet = {} }\nstart = { from = \"0 s\", to = \"1 s\" }"),
    ("app = { telnet = {} }", "app = { telnet = {} }\nreader = { rate = \"1 kbit/s\" }"),
    ("app = { telnet = {} }", "app = { telnet = {} }\nreader = { stop_at = \"10 s\" }"),
    ("app = { telnet = {} }", "app = { telnet = {} }\nreader = { pause = { from = \"1 s\", to = \"2 s\" } }"),
    ("app = { telnet = {} }", "app = { telnet = {} }\nreader = { pause = { from = \"1 s\", to = \"3 s\" } }"),
    // timeline
    ("at = \"20 s\"", "at = \"21 s\""),
    ("outage = \"5 s\"", "outage = \"6 s\""),
    ("outage = \"5 s\"", "up = false"),
    ("link = \"sky-return\"\noutage", "link = \"sky\"\noutage"),
    ("\nloss = 0.1\n", "\nloss = 0.2\n"),
    ("link = \"sky-return\"\nrate = \"1 Mbit/s\"", "link = \"sky-return\"\nrate = \"2 Mbit/s\""),
    ("delay = \"40 ms\"", "delay = \"41 ms\""),
    ("buffer = \"9 packets\"", "buffer = \"10 packets\""),
    ("ber = 1e-7", "ber = 2e-7"),
    // instruments
    ("name = \"side\"", "name = \"beside\""),
    ("kind = \"side-channel\"", "kind = \"side-channel\"\nrate = \"1 kbit/s\""),
    ("kind = \"side-channel\"", "kind = \"counters\""),
    ("every = \"15 s\"\n\n[[inst", "every = \"16 s\"\n\n[[inst"),
    ("flow = \"web\"", "flow = \"typing\""),
    // measurements in the report
    (
        "duration = \"100 s\"",
        "duration = \"100 s\"\nmeasure = { from = \"0 s\", to = \"50 s\", links = true }",
    ),
    (
        "[[captures]]",
        "[[references]]\nmetric = \"goodput\"\nvalue = \"1 Mbit/s\"\nsource = \"s\"\n\n[[captures]]",
    ),
    // a receiver that differs from the sender
    ("app = { telnet = {} }", "app = { telnet = {} }\nreceiver = { window = \"64 KiB\" }"),
    ("app = { telnet = {} }", "app = { telnet = {} }\nreceiver = { sack = false }"),
];

/// Gateway keys, each with a value other than its default.
const GATEWAY: &[&str] = &[
    "",
    "rate = \"none\"",
    "rate = \"9 Mbit/s\"",
    "framing = \"14 B\"",
    "mode = \"strict\"",
    "alpha = 0.9",
    "k = 16",
    "keep_alive = \"150 ms\"",
    "share = 0.9",
    "copies = 2",
    "limits = { flows = 7 }",
    "limits = { memory = \"1 MB\" }",
    "limits = { per_flow = \"1 MB\" }",
    "accelerate = false",
];

/// Options of `[host]`, each with a value other than its default.
const OPTIONS: &[&str] = &[
    "tcp = \"reno\"",
    "tcp = \"newreno\"",
    "tcp = \"sack\"",
    "tcp = \"rate-halving\"",
    "tcp = \"vegas\"",
    "tcp = { scheme = \"vegas\", alpha = 1.5 }",
    "tcp = { scheme = \"vegas\", beta = 4 }",
    "tcp = { scheme = \"vegas\", gamma = 2 }",
    "tcp = { scheme = \"cubic\", beta = 0.8 }",
    "tcp = { scheme = \"cubic\", c = 0.5 }",
    "tcp = { scheme = \"cubic\", fast_convergence = false }",
    "tcp = { scheme = \"cubic\", hystart = false }",
    "tcp = { scheme = \"cubic\", recovery = { detection = \"sack\" } }",
    "tcp = { scheme = \"cubic\", recovery = { reduction = \"at-once\" } }",
    "tcp = { scheme = \"cubic\", recovery = { frto = false } }",
    "segment = \"1000 B\"",
    "window = \"64 KiB\"",
    "window = { initial = \"32 KiB\", max = \"6 MiB\" }",
    "window = { initial = \"64 KiB\", max = \"5 MiB\" }",
    "iw = 4",
    "ssthresh = \"window\"",
    "delayed_ack = false",
    "delayed_ack = { count = 3, timeout = \"40 ms\" }",
    "delayed_ack = { count = 2, timeout = \"41 ms\" }",
    "send_buffer = \"1 MB\"",
    "nagle = false",
    "jitter = \"1 ms\"",
    "jitter = \"1 ms\"\njitter_kind = \"packet\"",
    "min_rto = \"0.5 s\"",
    "max_rto = \"61 s\"",
    "initial_rto = \"3 s\"",
    "rto_granularity = \"2 ms\"",
    "max_timeouts = 14",
    "user_timeout = \"30 s\"",
    "keep_alive = true",
    "keep_alive = { idle = \"60 s\" }",
    "keep_alive = { interval = \"60 s\" }",
    "keep_alive = { count = 5 }",
    "limited_transmit = false",
    "validation = \"keep\"",
    "validation = \"restart\"",
    "pacing = true",
    "ecn = true",
    "ecn = \"answer\"",
    "timestamps = false",
    "sack = false",
    "window_scale = false\nwindow = \"65535 B\"",
    "mss_option = false",
    "time_wait = \"30 s\"",
];

#[test]
fn whatever_can_change_a_result_changes_the_key_and_what_check_prints() {
    let options =
        OPTIONS.iter().map(|option| edit(RICH, "[[hosts]]", &format!("[host]\n{option}\n\n[[hosts]]")));
    let gateway = |link: &str, keys: &str| {
        edit(
            RICH,
            "[[timeline]]",
            &format!("[[gateways]]\nname = \"gw\"\nlink = \"{link}\"\n{keys}\n\n[[timeline]]"),
        )
    };
    let gateways = GATEWAY.iter().map(|keys| gateway("b2-return", keys)).chain([gateway("a1-return", "")]);
    let texts = CHANGES.iter().map(|(from, to)| edit(RICH, from, to)).chain(options).chain(gateways);
    let all: Vec<Scenario> =
        [RICH.to_owned()].into_iter().chain(texts).map(|text| loads(&text, &[])).collect();
    assert_eq!(all.len(), 2 + CHANGES.len() + OPTIONS.len() + GATEWAY.len());
    let (mut keys, mut printed) = (BTreeSet::new(), BTreeSet::new());
    for scenario in &all {
        let plain = Scenario { title: String::new(), parameters: Vec::new(), ..scenario.clone() };
        assert!(keys.insert(run_key(scenario)), "another scenario has this key:\n{}", to_toml(scenario));
        assert!(printed.insert(to_toml(&plain)), "another scenario prints this:\n{}", to_toml(scenario));
    }
}

#[test]
fn what_only_people_read_does_not() {
    let of = |text: &str| run_key(&loads(text, &[]));
    let (here, before) = ("[[captures]]\nlink = \"sky\"\n", of(RICH));
    for (from, to) in [
        ("title = \"everything\"", "title = \"anything\""),
        ("k = 2.0", "k = { default = 2, doc = \"ratio\" }"),
        (here, ""),
        ("snap = \"96 B\"", "snap = \"97 B\""),
        ("duration = \"100 s\"", "duration = \"100000 ms\"\nseed = 1"),
        ("schema = 1\n", "schema = 1 # remark\n"),
        ("[[instruments]]", "[sweep]\naxes = { k = [1, 2] }\n\n[[instruments]]"),
    ] {
        assert_eq!(of(&edit(RICH, from, to)), before, "{to}");
    }
}

/// The name of a run depends on the contents of a trace, not on its path.
#[test]
fn a_trace_counts_by_what_is_in_it() {
    let of = |name: &str, trace: &'static str| {
        let text = edit(RICH, "opportunities_ms = [0, 0, 3, 7]", &format!("mahimahi = \"{name}\""));
        run_key(&loads(&text, &[("a", trace), ("b", trace)]))
    };
    assert_eq!(of("a", "0\n0\n3\n7\n"), run_key(&loads(RICH, &[])));
    assert_eq!(of("a", "0\n3\n7\n"), of("b", "0\n3\n7"));
    assert_ne!(of("a", "0\n3\n7\n"), of("a", "0\n4\n7\n"));
}

#[test]
fn a_version_with_other_results_has_other_keys() {
    let scenario = loads(RICH, &[]);
    assert_eq!(
        run_key(&scenario),
        CellKey::with(bentpipe_sim::FINGERPRINTS, &scenario).of_run(scenario.seed)
    );
    assert_ne!(run_key(&scenario), CellKey::with("other", &scenario).of_run(scenario.seed));
}
