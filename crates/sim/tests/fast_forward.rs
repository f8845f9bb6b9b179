//! Exact fast-forward: a run that skips what repeats itself gives the same bytes as one that does not.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod random_networks;

use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Addr, Duration, Instant, NodeId, Purpose, Rng};
use bentpipe_report::Report;
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_sim::{RecordOptions, run, run_each_event, run_recorded, run_skipping};
use random_networks::{RandomNetwork, random_network};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

fn scenario(text: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    load(&Source::new("s.toml", text), &sets, Some(1)).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// The repetitions skipped; panics if the reports differ.
fn skipped(scenario: &Scenario, what: &str) -> u64 {
    let (report, _, skipped) = run_skipping(scenario, None);
    same(&report.to_json(), &run_each_event(scenario).to_json(), &format!("{what}, {skipped} skips"));
    skipped
}

/// Panics with the first lines that differ.
fn same(fast: &str, plain: &str, what: &str) {
    let lines = fast.lines().zip(plain.lines()).enumerate().filter(|(_, (a, b))| a != b);
    let others: Vec<_> = lines.map(|(i, (a, b))| format!("line {i}: {a} instead of {b}")).take(12).collect();
    assert!(fast == plain, "other bytes:\n{}\n{what}", others.join("\n"));
}

#[test]
fn a_window_over_a_satellite_is_the_same() {
    let window = include_str!("../../../scenarios/window.toml");
    let sets: [&[(&str, &str)]; 6] = [
        &[("window", "32 segments")],
        &[("window", "128 segments")],
        &[("duration", "100 s")],
        &[("segment", "1460 B"), ("tcp", "sack")],
        &[("window", "7 segments"), ("tcp", "cubic"), ("rtt", "123.456789 ms")],
        &[("window", "20 segments"), ("flows", "2")],
    ];
    for sets in sets {
        assert!(skipped(&scenario(window, sets), &format!("{sets:?}")) > 0, "{sets:?}: nothing was skipped");
    }
    for sets in [&[("ber", "1e-7")][..], &[("loss", "1e-5")], &[("tcp", "bbr")]] {
        assert_eq!(skipped(&scenario(window, sets), "chance"), 0, "{sets:?}");
    }
}

/// Two hosts and a link, and nothing more than `host` said about the hosts.
fn plain(host: &str) -> Scenario {
    let text = format!(
        "schema = 1\ntitle = \"plain\"\nduration = \"$duration\"\n[parameters]\nduration = \"700 s\"\n\
         [[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n[host]\n{host}\n[[links]]\nname = \"sat\"\n\
         from = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\ndelay = \"250 ms\"\nbuffer = \"100 packets\"\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n"
    );
    scenario(&text, &[])
}

/// What a host has if its file does not say otherwise does not forbid a skip.
#[test]
fn the_defaults_of_a_host_are_the_same() {
    for (host, least) in [
        ("window = \"64 KiB\"", 100),
        ("window = \"64 KiB\"\ndelayed_ack = false", 1000),
        ("window = \"1 segments\"", 1000),
        ("stack = \"linux\"\nwindow = \"64 KiB\"", 30),
        ("stack = \"linux\"\nwindow = \"7 segments\"", 50),
        ("send_buffer = \"64 KiB\"\ntimestamps = false", 1000),
        ("window = \"64 KiB\"\ntimestamps = false", 1000),
        ("window = \"2 segments\"\ntimestamps = false", 1000),
        ("window = \"1 segments\"\ntimestamps = false", 1000),
        ("stack = \"linux\"\nwindow = \"64 KiB\"\ntimestamps = false", 1000),
        ("stack = \"linux\"\nwindow = \"64 KiB\"\ntimestamps = false\ntcp = \"newreno\"", 1000),
        ("stack = \"linux\"\nwindow = \"3 segments\"\ntimestamps = false", 50),
        ("stack = \"linux\"\nwindow = \"1 segments\"\ntimestamps = false", 1000),
    ] {
        let skips = skipped(&plain(host), host);
        assert!(skips >= least, "{host}: {skips}");
    }
}

/// Between two losses that are drawn as gaps, rounds are skipped; nothing is if each packet is drawn for.
#[test]
fn a_window_with_losses_drawn_as_gaps_is_the_same() {
    let window = include_str!("../../../scenarios/window.toml");
    let gaps = window.replace("loss = \"$loss\"", "loss = \"$loss\"\nloss_draw = \"gap\"");
    assert_ne!(gaps, window);
    for (loss, window) in [("1e-5", "32 segments"), ("1e-4", "12 segments"), ("3e-4", "8 segments")] {
        let sets = [("loss", loss), ("window", window), ("duration", "4000 s"), ("ber", "0")];
        let scenario = scenario(&gaps, &sets);
        let lost = run(&scenario).links[0].drops["packet_loss"];
        let skips = skipped(&scenario, loss);
        assert!(lost > 0 && skips > 500, "{loss}: {lost} losses, {skips} repetitions");
    }
}

/// Rain that changes the link's rate and stops it, in steps at random instants.
#[test]
fn rain_over_a_link_that_adapts_is_the_same() {
    let rain = include_str!("../../../scenarios/availability.toml");
    for (step, window, tcp) in [("1 min", "64 segments", "newreno"), ("17 s", "20 segments", "sack")] {
        let sets = [("duration", "5000 s"), ("m", "1.5"), ("p0", "0.8"), ("step", step)];
        let sets = [&sets[..], &[("window", window), ("tcp", tcp)]].concat();
        let skips = skipped(&scenario(rain, &sets), step);
        assert!(skips > 1000, "{skips} repetitions with steps of {step}");
    }
}

/// Every scenario of the folder, its first minute.
#[test]
fn every_scenario_is_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "toml")) {
        let text = std::fs::read_to_string(file).unwrap();
        let Ok(mut scenario) = load(&Source::new(&*file.to_string_lossy(), &*text), &[], Some(2)) else {
            continue; // a sweep or a file with traces of its own
        };
        let least = scenario.measure.map_or(60, |(from, _)| from.0 / 1_000_000_000 + 20);
        scenario.duration = scenario.duration.min(Duration::from_secs(least));
        let skips = skipped(&scenario, &file.to_string_lossy());
        eprintln!("{}: {skips}", file.display());
    }
}

/// Skips do not change what a run of a fixed length ends with.
#[test]
fn a_run_of_any_length_ends_the_same() {
    let window = include_str!("../../../scenarios/window.toml");
    for ms in [60_000, 61_234, 77_777, 123_456] {
        let duration = format!("{ms} ms");
        let scenario = scenario(window, &[("window", "40 segments"), ("duration", &duration)]);
        assert_eq!(run(&scenario).to_json(), run_each_event(&scenario).to_json(), "{duration}");
    }
}

/// Every packet event of the links, one a line: more than the captures of a link record.
#[derive(Default)]
struct Trace(String);

impl Sink for Trace {
    fn mask(&self) -> Mask {
        Mask::PACKETS
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        use std::fmt::Write as _;
        writeln!(self.0, "{} {} {event:?}", now.0, node.0).unwrap();
    }
}

/// Report, series and packets of a network that is captured.
fn captured(scenario: &Scenario, watch: &RecordOptions) -> (Report, [String; 3]) {
    let trace = Rc::new(RefCell::new(Trace::default()));
    let (report, record) = run_recorded(scenario, watch, |_| Some(trace.clone()));
    let bytes = [report.to_json(), format!("{record:#?}"), trace.take().0];
    (report, bytes)
}

/// The repetitions skipped in a network, and its report; panics unless report, series and captures are the
/// same.
fn skipped_in(network: &RandomNetwork, what: &str) -> (u64, Report) {
    let scenario = scenario(&network.text, &[]);
    let what = format!("{what}: {:?}, series {:?}\n{}", network.features, network.series, network.text);
    let every = network.series.unwrap_or(Duration::from_secs(1));
    let options = |each_packet| RecordOptions { every, sequences: 0, round_trips: false, each_packet };
    if network.has("capture") {
        let [(report, fast), (_, plain)] =
            [false, true].map(|each_packet| captured(&scenario, &options(each_packet)));
        assert!(!fast[2].is_empty(), "nothing was captured: {what}");
        fast.iter().zip(&plain).for_each(|(fast, plain)| same(fast, plain, &what));
        return (0, report);
    }
    let watch = network.series.map(|_| options(false));
    let (report, record, skipped) = run_skipping(&scenario, watch.as_ref());
    let what = format!("{skipped} skips in {what}");
    if record.is_none() {
        same(&report.to_json(), &run_each_event(&scenario).to_json(), &what);
    } else {
        // traced, so with an event for each arrival at each link
        let trace = Rc::new(RefCell::new(Trace::default()));
        let (plain, plain_record) = run_recorded(&scenario, &options(true), |_| Some(trace));
        same(&report.to_json(), &plain.to_json(), &what);
        same(&format!("{record:#?}"), &format!("{:#?}", Some(plain_record)), &what);
    }
    (skipped, report)
}

/// What has happened in a run: causes of drops, and marks.
fn happened(report: &Report) -> BTreeSet<&'static str> {
    let drops = |cause: &str| report.links.iter().any(|link| link.drops.get(cause).is_some_and(|n| *n > 0));
    let mut all: BTreeSet<_> = DROPS.into_iter().filter(|cause| drops(cause)).collect();
    if report.links.iter().any(|link| link.marked.is_some_and(|n| n > 0)) {
        all.insert("marked");
    }
    all
}

/// Sources of the packets that enter a link, each with its time.
#[derive(Default)]
struct Entries {
    link: NodeId,
    all: Vec<(Instant, Addr)>,
}

impl Sink for Entries {
    fn mask(&self) -> Mask {
        Mask::PACKETS
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        if let Event::Sent(packet) = event
            && node == self.link
        {
            self.all.push((now, packet.src));
        }
    }
}

/// A transmission stops where the state of its link ends, also if the next is the same. If nothing else is in
/// flight the link is called there, and requests the arrival only then: of two packets that arrive at one
/// time, this one is the second. So a state must not last longer than its process says, however many
/// repetitions could be skipped then: that would be another order of equal times.
#[test]
fn a_step_without_a_change_has_its_place_in_the_order_of_equal_times() {
    let hop = |n: u64, more: &str| {
        format!(
            "[[links]]\nname = \"hop{n}\"\nfrom = \"a{n}\"\nto = \"r\"\nrate = \"100 kbit/s\"\ndelay = \"1 ms\"\n\
             buffer = \"100 packets\"\nforward = {{ {more} }}\n\
             [[flows]]\nname = \"f{n}\"\nfrom = \"a{n}\"\nto = \"b\"\napp = {{ udp = {{ rate = \"8 kbit/s\" }} }}\nstart = \"950 ms\"\n"
        )
    };
    // a datagram of 1028 B takes 82 ms, and the state ends each second
    let fade =
        "fade = { profile = [[\"0 s\", \"0 dB\"]], coding = { threshold = \"3 dB\" }, clear = \"30 dB\" }";
    let first = |hops: [&str; 2]| {
        let text = format!(
            "schema = 1\ntitle = \"ties\"\nduration = \"5 s\"\nhosts = [{{ name = \"a1\" }}, {{ name = \"a2\" }}, \
             {{ name = \"b\" }}]\nrouters = [{{ name = \"r\" }}]\n[host]\nsegment = \"1000 B\"\n\
             [[links]]\nname = \"last\"\nfrom = \"r\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
             buffer = \"10 packets\"\n{}{}",
            hop(1, hops[0]),
            hop(2, hops[1])
        );
        let entries = Rc::new(RefCell::new(Entries::default()));
        run_recorded(&scenario(&text, &[]), &RecordOptions::default(), |net| {
            entries.borrow_mut().link = net.links.iter().find(|(name, _)| **name == *"last").unwrap().1;
            Some(entries.clone())
        });
        let entries = entries.take().all;
        assert!(entries.len() >= 2 && entries[0].0 == entries[1].0, "{entries:?}");
        (entries[0].1, entries[1].1)
    };
    let (a1, a2) = first(["", ""]);
    assert_ne!(a1, a2);
    assert_eq!(first([fade, ""]), (a2, a1), "the first is stopped for a moment");
    assert_eq!(first(["", fade]), (a1, a2), "the second is");
    assert_eq!(first([fade, fade]), (a1, a2), "both are");
}

/// What a network may have and yet skip, and in how many of each quarter of the networks there are skips at
/// least. In all 1000 there are some in 384, for instance in 65 of 198 with a host's defaults, 43 of 193 with
/// Linux hosts and 108 of 325 with timestamps.
const MAY_SKIP: [(&str, u64); 25] = [
    ("any", 85),
    ("ECN", 15),
    ("capacity", 1),
    ("change of the buffer", 2),
    ("change of the delay", 2),
    ("change of the loss", 4),
    ("change of the rate", 6),
    ("delayed ACKs", 35),
    ("drop-head", 8),
    ("attenuation", 4),
    ("defaults", 14),
    ("instrument", 18),
    ("Linux", 6),
    ("losses as gaps", 20),
    ("measure window", 15),
    ("outage at a time", 1),
    ("outages", 4),
    ("packets in links at the end", 50),
    ("reverse traffic", 8),
    ("series", 12),
    ("several flows", 15),
    ("small window", 35),
    ("ties", 15),
    ("timestamps", 22),
    ("validation of the window", 40),
];

/// Causes of drops that are counted.
const DROPS: [&str; 7] = ["queue_full", "aqm", "packet_loss", "bit_error", "burst", "outage", "fade"];

/// What a network may have too, in how many of each quarter at least, and whether a skip is possible at all.
const MAY_HAVE: [(&str, u64, bool); 13] = [
    ("AQM", 20, false),
    ("a draw for each packet", 10, true),
    ("bursts", 8, true),
    ("capture", 6, false),
    ("gateway", 6, false),
    ("moving satellite", 8, true),
    ("aqm", 3, true),
    ("bit_error", 1, true),
    ("burst", 4, true),
    ("fade", 1, true),
    ("marked", 1, true),
    ("outage", 20, true),
    ("packet_loss", 40, true),
];

/// One of four parts of 1000 networks.
fn check_random_networks(part: u64) {
    let mut rng = Rng::new(18, &format!("networks {part}"), Purpose::Application);
    let mut with: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for i in 0..250 {
        let network = random_network(&mut rng);
        let (skipped, report) = skipped_in(&network, &format!("network {i} of part {part}"));
        let skips = u64::from(skipped > 0);
        for feature in network.features.iter().chain(&happened(&report)).chain(&["any"]) {
            let [networks, with_skips] = with.entry(*feature).or_default();
            (*networks, *with_skips) = (*networks + 1, *with_skips + skips);
        }
    }
    let lines: Vec<_> = with.iter().map(|(what, [of, n])| format!("{what}: skips in {n} of {of}")).collect();
    let table = lines.join("\n");
    for (feature, least) in MAY_SKIP {
        assert!(with[feature][1] >= least, "{feature}: too few skips\n{table}");
    }
    for (feature, least, may_skip) in MAY_HAVE {
        let [networks, with_skips] = with[feature];
        assert!(networks >= least && (may_skip || with_skips == 0), "{feature}\n{table}");
    }
}

macro_rules! parts {
    ($($name:ident: $part:expr;)+) => { $(
        #[test]
        fn $name() {
            check_random_networks($part);
        }
    )+ };
}

parts! {
    random_networks_are_the_same_1: 1;
    random_networks_are_the_same_2: 2;
    random_networks_are_the_same_3: 3;
    random_networks_are_the_same_4: 4;
}
