//! Chains: links that are told of their packets ahead give the same bytes as those with an event for each
//! arrival.

#![allow(
    clippy::unwrap_used,
    clippy::format_push_string,
    reason = "a test may say what it takes for granted"
)]

use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Duration, Instant, NodeId, Purpose, Rng};
use bentpipe_report::{LinkReport, Report};
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_sim::build::build;
use bentpipe_sim::{RecordOptions, run_each_event, run_each_packet, run_recorded};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

fn scenario(text: &str) -> Scenario {
    load(&Source::new("s.toml", text), &[], Some(1)).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// A draw of a network.
struct Draw(Rng);

impl Draw {
    fn chance(&mut self, p: f64) -> bool {
        self.0.unit() < p
    }

    /// A whole number of these, both included.
    fn whole(&mut self, from: u64, to: u64) -> u64 {
        self.0.between(from as f64, to as f64 + 1.0) as u64
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.whole(0, of.len() as u64 - 1) as usize]
    }

    /// A link, with numbers that make equal times the rule, or not.
    fn link(&mut self, name: &str, ends: [&str; 2], is_even: bool, more: &str) -> String {
        let [rate, delay] = if is_even {
            [self.whole(1, 8) * 500_000, self.whole(1, 4) * 1_000_000]
        } else {
            [self.whole(300_000, 20_000_000), self.whole(1, 3) * self.whole(1, 20_000_000)]
        };
        let buffer = if self.chance(0.5) { self.whole(0, 8) } else { self.whole(20, 200) };
        let special = if more.is_empty() {
            self.one(&[
                "",
                "",
                "",
                "",
                "loss = 0.003\n",
                "ber = 1e-7\n",
                "loss = 0.01\nloss_draw = \"gap\"\n",
                "discipline = \"codel\"\n",
                "discipline = \"fq_codel\"\n",
                "discipline = \"drop-head\"\n",
                "discipline = \"pushout\"\n",
            ])
        } else {
            more
        };
        let [a, b] = ends;
        format!(
            "[[links]]\nname = \"{name}\"\nfrom = \"{a}\"\nto = \"{b}\"\nrate = \"{rate} bit/s\"\n\
             delay = \"{delay} ns\"\nbuffer = \"{buffer} packets\"\n{special}"
        )
    }
}

/// Pairs of hosts over one, two or three shared hops in a row; perhaps hosts between them.
fn random_network(draw: &mut Draw) -> String {
    let is_even = draw.chance(0.7);
    let (pairs, hops) = (draw.whole(1, 4), draw.whole(1, 3));
    let mut text = format!(
        "schema = 1\ntitle = \"chains\"\nduration = \"{} ms\"\n[host]\ntcp = \"{}\"\nwindow = \"{} segments\"\n\
         segment = \"{} B\"\ndelayed_ack = {}\necn = {}\n",
        draw.whole(2000, 20_000),
        draw.one(&["newreno", "cubic", "bbr", "sack", "peach"]),
        draw.whole(2, 60),
        draw.one(&["500", "960", "1210"]),
        draw.one(&["true", "false"]),
        draw.one(&["true", "false"]),
    );
    if draw.chance(0.2) {
        text += "jitter = \"1 ms\"\n";
    }
    for hop in 0..=hops {
        text += &format!("[[routers]]\nname = \"r{hop}\"\n");
    }
    for hop in 0..hops {
        let more =
            if draw.chance(0.1) { "idle_release = { idle = \"0.3 s\", setup = \"0.5 s\" }\n" } else { "" };
        let ends = [format!("r{hop}"), format!("r{}", hop + 1)];
        text += &draw.link(&format!("hop{hop}"), [&ends[0], &ends[1]], is_even, more);
    }
    for n in 1..=pairs {
        // a few begin or end in the middle of the row
        let from = if draw.chance(0.15) { draw.whole(0, hops - 1) } else { 0 };
        let to = if draw.chance(0.15) { draw.whole(from + 1, hops) } else { hops };
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        text += &format!("[[hosts]]\nname = \"{a}\"\n[[hosts]]\nname = \"{b}\"\n");
        text += &draw.link(&format!("near{n}"), [&a, &format!("r{from}")], is_even, "");
        text += &draw.link(&format!("far{n}"), [&format!("r{to}"), &b], is_even, "");
    }
    for n in 1..=pairs {
        let start = if is_even { 100_000_000 } else { draw.whole(0, 300_000_000) };
        let (from, to) = if draw.chance(0.2) { ("b", "a") } else { ("a", "b") };
        let app = draw.one(&[
            "",
            "",
            "",
            "app = { transfer = \"300 kB\" }\n",
            "app = { udp = { rate = \"400 kbit/s\" } }\n",
            "app = { requests = { response = \"20 kB\", think = \"0.2 s\" } }\n",
        ]);
        text += &format!(
            "[[flows]]\nname = \"f{n}\"\nfrom = \"{from}{n}\"\nto = \"{to}{n}\"\nstart = \"{start} ns\"\n{app}"
        );
    }
    if draw.chance(0.4) {
        text += "[[instruments]]\nname = \"i\"\nkind = \"counters\"\nlink = \"far1\"\nevery = \"77 ms\"\n";
    }
    if draw.chance(0.4) {
        text += "[measure]\nfrom = \"700 ms\"\nto = \"1900 ms\"\nlinks = true\n";
    }
    if text.contains("transfer") && draw.chance(0.5) {
        text = text.replacen("title", "stop = \"finished\"\ntitle", 1);
    }
    text
}

/// Wants packets, so that nothing is chained.
struct Trace;

impl Sink for Trace {
    fn mask(&self) -> Mask {
        Mask::PACKETS
    }

    fn event(&mut self, _: Instant, _: NodeId, _: &Event<'_>) {}
}

/// The report; panics if it, or the series, are other bytes than those without chains.
fn same(scenario: &Scenario, text: &str) -> Report {
    let plain = run_each_event(scenario);
    assert!(run_each_packet(scenario).to_json() == plain.to_json(), "other bytes:\n{text}");
    let watch = RecordOptions {
        every: Duration::from_millis(43),
        sequences: 0,
        round_trips: false,
        each_packet: true,
    };
    let chained = run_recorded(scenario, &watch, |_| None);
    let traced = run_recorded(scenario, &watch, |_| Some(Rc::new(RefCell::new(Trace))));
    assert!(format!("{chained:#?}") == format!("{traced:#?}"), "other series:\n{text}");
    plain
}

/// What happened at links that are told of their packets, in how many networks.
fn note(with: &mut BTreeMap<&'static str, u32>, scenario: &Scenario, report: &Report) {
    let mut net = build(scenario);
    let told = net.chain();
    let ids: Vec<_> = net.links.iter().map(|(_, id)| *id).collect();
    let links = |are: &dyn Fn(NodeId) -> bool| -> Vec<_> {
        report.links.iter().zip(&ids).filter(|(_, id)| are(**id)).map(|(link, _)| link).collect()
    };
    let told_links = links(&|id| net.sim.is_told(id));
    let tellers = links(&|id| net.sim.tells(id));
    let dropped = |by: &[&LinkReport], cause: &str| by.iter().any(|link| link.drops.contains_key(cause));
    for (what, is_there) in [
        ("links told", told > 0),
        ("three in a row", told > 2 && scenario.flows.len() == 1),
        ("full queues", dropped(&told_links, "queue_full")),
        ("losses", dropped(&tellers, "packet_loss")),
        ("bit errors", dropped(&tellers, "bit_error")),
        ("marks", told_links.iter().any(|link| link.marked.is_some_and(|n| n > 0))),
        ("queues", told_links.iter().any(|link| link.queue_packets.peak > 1)),
        ("finished", told > 0 && report.simulated_s < scenario.duration.as_secs_f64()),
    ] {
        *with.entry(what).or_default() += u32::from(is_there);
    }
}

/// One of four parts of 1000 networks.
fn check_random_networks(part: u64) {
    let mut draw = Draw(Rng::new(18, &format!("chains {part}"), Purpose::Application));
    let mut with = BTreeMap::new();
    for _ in 0..250 {
        let text = random_network(&mut draw);
        let scenario = scenario(&text);
        let report = same(&scenario, &text);
        note(&mut with, &scenario, &report);
    }
    for (what, least) in LEAST {
        assert!(with[what] >= least, "{what}: too few networks\n{with:?}");
    }
}

/// In how many of 250 networks each is to be found: losses at links that tell of packets, the others at those
/// that are told.
const LEAST: [(&str, u32); 8] = [
    ("links told", 150),
    ("three in a row", 25),
    ("full queues", 20),
    ("losses", 40),
    ("bit errors", 4),
    ("marks", 1),
    ("queues", 50),
    ("finished", 8),
];

macro_rules! parts {
    ($($name:ident: $part:expr;)+) => { $(
        #[test]
        fn $name() {
            check_random_networks($part);
        }
    )+ };
}

parts! {
    networks_with_chains_are_the_same_1: 1;
    networks_with_chains_are_the_same_2: 2;
    networks_with_chains_are_the_same_3: 3;
    networks_with_chains_are_the_same_4: 4;
}

/// The access links behind the shared link are told in both directions, and nothing is with what may send to
/// anybody.
#[test]
fn in_a_dumbbell_the_links_behind_the_shared_one_are_told() {
    let sharing = include_str!("../../../scenarios/sharing.toml");
    let load = |text: &str| load(&Source::new("s.toml", text), &[], Some(1)).unwrap();
    let mut net = build(&load(sharing));
    assert_eq!((net.chain(), net.flows.len()), (40, 20));
    for (name, id) in &net.links {
        let leads_to_host = name.starts_with("dst") != name.ends_with("return");
        assert_eq!(net.sim.is_told(*id), leads_to_host && !name.starts_with("bottleneck"), "{name}");
    }
}
