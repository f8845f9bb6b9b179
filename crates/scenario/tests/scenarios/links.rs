//! Resolved links, stations, applications and instruments.

use crate::support::{DUMBBELL, GRAPH, RICH, SATELLITE, bottleneck, edit, loads};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_link::{
    Access, Capacity, CapacityTrace, Coding, Drift, FadeEffect, FadeSource, Handover, Longer, Mtu, Orbit,
    Outages, Pointing,
};
use bentpipe_scenario::{
    App, Direction, InstrumentKind, LinkSpec, Pattern, Scenario, profiles, reference, to_toml,
};

fn link<'a>(s: &'a Scenario, name: &str) -> &'a LinkSpec {
    s.links.iter().find(|l| *l.name == *name).unwrap_or_else(|| panic!("no link {name}"))
}

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).expect("more than zero")
}

#[test]
fn every_mechanism_arrives() {
    let s = loads(RICH, &[]);
    let there = link(&s, "sky").forward.dynamics.as_deref().expect("it changes");
    let Some(CapacityTrace::Steps { points, repeat }) = &there.capacity else { panic!("{there:?}") };
    assert_eq!(points[1], (Instant(10_000_000_000), None));
    assert_eq!(*repeat, Some(Duration::from_secs(60)));
    let Some(Orbit::Slots(slots)) = &there.orbit else { panic!("{there:?}") };
    assert_eq!((slots.pair.as_str(), slots.period), ("sky", Duration::from_secs(15)));
    assert_eq!(slots.handover, Handover::Outage(Duration::from_millis(100), Duration::from_millis(300)));
    let fade = there.fade.as_ref().expect("it fades");
    let FadeSource::Rain(rain) = &fade.source else { panic!("{fade:?}") };
    assert_eq!((rain.m, rain.sigma, rain.p0, rain.beta, rain.scale), (-3.0, 1.65, 0.05, 2e-4, 1.9));
    assert_eq!((rain.station.as_str(), fade.every), ("sky", Duration::from_secs(2)));
    // loss 0.01 in bursts of 100 ms: the good state lasts 99 times as long
    let bursts = there.bursts.expect("bursts");
    assert_eq!((bursts.good, bursts.bad), (Duration::from_millis(9900), Duration::from_millis(100)));
    assert_eq!((bursts.loss_good, bursts.loss_bad), (Probability::ZERO, Probability::ONE));
    let second = Duration::from_secs;
    let outages = Outages { every: second(60), random: true, shortest: second(1), longest: second(2) };
    assert_eq!(there.outages, Some(outages));

    let back = &link(&s, "sky").backward;
    let dynamics = back.dynamics.as_deref().expect("it changes");
    assert!(matches!(&dynamics.orbit, Some(Orbit::Pass(p)) if p.every == second(1)));
    // twice the delay and two frames
    let Some(Access::Dama(dama)) = dynamics.access else { panic!("{dynamics:?}") };
    assert_eq!((back.delay, dama.latency), (Duration::from_millis(30), Duration::from_millis(113)));
    // the anchor: at 5 dB the bit error rate is 1e-5
    let Some(FadeEffect::Coding { coding, clear_db, .. }) = dynamics.fade.as_ref().map(|f| f.effect) else {
        panic!("{dynamics:?}")
    };
    assert!((coding.ber(clear_db - 5.0) / 1e-5 - 1.0).abs() < 1e-6 && (clear_db - 14.59).abs() < 0.01);
    assert_eq!(coding, Coding::Uncoded);
    // RFC 3449: 100 Mbit/s * 40 / (2 * 1040)
    assert_eq!(link(&s, "a1").backward.rate, rate(1_923_077));
}

#[test]
fn a_dish_that_does_not_track_and_a_drift_arrive_and_are_written_back() {
    let text = bottleneck(
        "fade = { pointing = { dish = \"65 cm\", frequency = \"29600 MHz\", aim = \"2 h\" }, coding = \"viterbi\", \
         clear = \"9.2 dB\", drift = { amplitude = \"-0.5 dB\", start = \"1 h\" } }",
    );
    let fade_of = |s: &Scenario| {
        let dynamics = link(s, "bottleneck").forward.dynamics.clone().expect("it changes");
        dynamics.fade.expect("it fades")
    };
    let s = loads(&text, &[]);
    let hour = Duration::from_secs(3600);
    let dish = Pointing { dish_m: 0.65, frequency_ghz: 29.6, ..Pointing::default() };
    let drift = Drift { amplitude_db: -0.5, period: hour * 24, start: Instant::ZERO + hour };
    assert_eq!(fade_of(&s).source, FadeSource::Pointing(dish));
    let effect = FadeEffect::Coding { coding: Coding::Viterbi, clear_db: 9.2, drift: Some(drift) };
    assert_eq!(fade_of(&s).effect, effect);
    assert_eq!(fade_of(&loads(&to_toml(&s), &[])), fade_of(&s));
}

#[test]
fn an_mtu_holds_for_both_directions_and_exists_in_simulated_time_only() {
    let of = |line: &str| loads(&bottleneck(line), &[]);
    let cut = of("mtu = { size = \"576 B\", longer = \"fragment\" }");
    let mtu = Some(Mtu { bytes: 576, longer: Longer::Fragment });
    for s in [&cut, &loads(&to_toml(&cut), &[])] {
        assert_eq!((link(s, "bottleneck").forward.mtu, link(s, "bottleneck").backward.mtu), (mtu, mtu));
    }
    let live = of("mtu = \"1500 B\"").simulated_only().expect("no MTU in real packets");
    assert_eq!((live.what.as_str(), live.instead), ("link `bottleneck`", "without `mtu`"));
    for none in ["mtu = \"unlimited\"", "mtu = { size = \"unlimited\" }", ""] {
        assert_eq!((link(&of(none), "bottleneck").forward.mtu, of(none).simulated_only()), (None, None));
    }
}

#[test]
fn a_hop_over_a_geostationary_satellite_takes_a_quarter_of_a_second() {
    let delay = link(&loads(RICH, &[]), "b2").forward.delay;
    assert!((delay.as_secs_f64() - 0.251).abs() < 0.002, "{delay}");
    // both stations are directly below the satellite: twice 35 786 km
    let under =
        "delay = { satellite = \"10 deg\", stations = [[\"0 deg\", \"10 deg\"], [\"0 deg\", \"10 deg\"]] }";
    let delay = link(&loads(&edit(GRAPH, "delay = \"270 ms\"", under), &[]), "r12").forward.delay;
    assert!((delay.as_secs_f64() - 2.0 * 35_786.0 / 299_792.458).abs() < 1e-5, "{delay}");
}

#[test]
fn the_timeline_is_sorted_and_an_outage_is_two_changes() {
    let s = loads(RICH, &[]);
    let changes = &link(&s, "sky").backward.dynamics.as_ref().expect("it changes").changes;
    let seen: Vec<_> =
        changes.iter().map(|(at, c)| (at.0 / 1_000_000_000, c.up, c.loss.map(Probability::get))).collect();
    assert_eq!(seen, [(10, None, None), (20, Some(false), Some(0.1)), (25, Some(true), None)]);
    // the second outage starts after the end of the run
    let changes = &link(&s, "a1").forward.dynamics.as_ref().expect("it changes").changes;
    assert_eq!(changes.iter().map(|(_, c)| c.up).collect::<Vec<_>>(), [Some(false)]);
}

#[test]
fn parted_transfers_switched_flows_and_patterns() {
    let s = loads(RICH, &[]);
    let parts: Vec<_> = s.flows[..3].iter().map(|f| (&*f.name, f.app, f.group.as_deref())).collect();
    let part = |name, bytes| (name, App::Transfer(Size(bytes)), Some("parted"));
    assert_eq!(parts, [part("parted.1", 334), part("parted.2", 334), part("parted.3", 333)]);
    let think = Duration::from_secs(2);
    let web = App::Requests { request: Size(300), response: Size(50_000), think, count: Some(9) };
    assert_eq!(s.flows[3].app, web);
    assert_eq!(s.flows[4].app, App::Telnet { size: Size(1), gap: Duration::from_secs(1) });
    assert_eq!(s.flows[5].app, App::Udp { size: Size(160), pattern: Pattern::Constant(rate(64_000)) });
    assert_eq!(&*s.flows[6].name, "noise");
    let quiet = loads(RICH, &[("keepalive", "off")]);
    assert_eq!(quiet.flows.len(), s.flows.len() - 1);
    assert!(quiet.flows.iter().all(|f| *f.name != *"noise"));
}

#[test]
fn instruments_and_captures_name_directions() {
    let s = loads(RICH, &[]);
    let sky = |backward| Direction { link: 1, backward };
    let instruments: Vec<_> = s.instruments.iter().map(|i| (i.kind, i.link)).collect();
    let side_channel = InstrumentKind::SideChannel { rate: rate(256_000) };
    assert_eq!(instruments[0], (side_channel, sky(false)));
    assert_eq!(instruments[1], (InstrumentKind::Counters, sky(true)));
    assert_eq!(instruments[2], (InstrumentKind::Bins { flow: 3 }, sky(false)));
    let [all, some] = &s.captures[..] else { panic!("{:?}", s.captures) };
    assert_eq!((all.link, all.from, all.to), (sky(false), Instant::ZERO, Instant(100_000_000_000)));
    assert_eq!((all.snap, all.limit), (Size(65_535), Size(64 << 20)));
    assert_eq!((some.link, some.snap, some.limit), (sky(true), Size(96), Size(1_000_000)));
}

#[test]
fn a_mesh_is_one_hop_and_a_star_is_two() {
    let one_way = |s: &Scenario, path: &[&str]| -> Duration {
        let direction = |name: &&str| {
            let found = s.links.iter().find_map(|l| match name {
                n if **n == *l.name => Some(l.forward.delay),
                n if **n == *l.reverse_name => Some(l.backward.delay),
                _ => None,
            });
            found.unwrap_or_else(|| panic!("no link {name}"))
        };
        path.iter().map(direction).fold(Duration::ZERO, |a, b| a + b)
    };
    let path = ["user1-access", "station1-uplink", "station3-downlink", "user3-access-return"];
    let mesh = loads(SATELLITE, &[]);
    assert_eq!(one_way(&mesh, &path), Duration::from_millis(275));
    assert_eq!(
        mesh.nodes.iter().map(|n| &*n.name).collect::<Vec<_>>(),
        ["user1", "user2", "user3", "station1", "station2", "station3", "satellite"]
    );
    let hop = link(&mesh, "station2-uplink");
    assert_eq!((hop.forward.rate.bps(), hop.backward.rate.bps()), (2_000_000, 1_544_000));
    assert_eq!((hop.backward.buffer, hop.backward.loss.get()), (Capacity::Packets(30), 0.001));
    let star = loads(SATELLITE, &[("topology", "star")]);
    // two hops of 273 ms and two access links
    assert_eq!(one_way(&star, &path), Duration::from_millis(548));
    assert_eq!(&*star.nodes[6].name, "hub");
    assert_eq!(link(&star, "station2-uplink").backward.buffer, Capacity::Packets(400));
}

#[test]
fn what_is_given_beside_a_profile_goes_before_it() {
    let t1 = edit(
        GRAPH,
        "rate = \"10 Mbit/s\"\ndelay = \"270 ms\"\nbuffer = \"50 packets\"",
        "profile = \"geo-t1\"\nframing = \"2 B\"",
    );
    let hop = link(&loads(&t1, &[]), "r12").clone();
    assert_eq!(
        (hop.forward.rate.bps(), hop.forward.framing, hop.forward.loss.get()),
        (1_544_000, Size(2), 0.01)
    );
    // precedence: direction, then link, then profile
    assert_eq!((hop.backward.rate.bps(), hop.backward.framing), (1_000_000, Size(8)));
    assert_eq!(hop.backward.delay, Duration::from_micros(292_500));

    let bell = edit(
        DUMBBELL,
        "rtt = \"550 ms\"\nrate = \"10 Mbit/s\"\nbuffer = \"50 packets\"",
        "profile = \"geo-hts\"",
    );
    let hop = link(&loads(&bell, &[]), "bottleneck").clone();
    assert_eq!(
        (hop.forward.delay, hop.backward.delay),
        (Duration::from_millis(300), Duration::from_millis(300))
    );
    assert_eq!((hop.forward.rate.bps(), hop.backward.rate.bps()), (50_000_000, 5_000_000));
    let hop =
        link(&loads(&edit(&bell, "pairs = 2", "pairs = 2\nrtt = \"550 ms\""), &[]), "bottleneck").clone();
    assert_eq!(hop.forward.delay, Duration::from_millis(273));
}

#[test]
fn the_profiles_are_complete() {
    let names: Vec<_> = profiles().iter().map(|p| p.name.as_str()).collect();
    let wanted =
        ["geo-10m", "geo-t1", "ka-band-t1", "winds-24m", "geo-hts", "meo", "leo", "starlink", "terrestrial"];
    assert_eq!(names, wanted);
    for profile in profiles() {
        assert!(!profile.summary.is_empty() && !profile.rtt.is_empty() && !profile.source.is_empty());
        let text = edit(
            GRAPH,
            "rate = \"10 Mbit/s\"\ndelay = \"270 ms\"\nbuffer = \"50 packets\"\nforward = { loss = 0.01 }\nbackward = { rate = \"1 Mbit/s\", framing = \"8 B\" }",
            &format!("profile = \"{}\"", profile.name),
        );
        let s = loads(&edit(&text, "name = \"r12\"", &format!("name = \"{}\"", profile.name)), &[]);
        let link = link(&s, &profile.name);
        assert_eq!((&*link.forward, &*link.backward), (&profile.forward, &profile.backward));
        assert_eq!(loads(&to_toml(&s), &[]), s, "{}", profile.name);
        // a queue holds about one bandwidth-delay product, unless the profile has an orbit
        let round = profile.forward.delay + profile.backward.delay;
        for side in [&profile.forward, &profile.backward] {
            let Capacity::Bytes(buffer) = side.buffer else { panic!("{side:?}") };
            if side.dynamics.is_none() {
                assert_eq!(buffer, side.rate.bytes_in(round), "{}", profile.name);
            }
        }
    }
}

/// Returns the keys of a section of the reference page that have a literal default, as an inline table.
fn documented(section: &str) -> String {
    let page = reference();
    let rows =
        page.split(&format!("\n## {section}\n")).nth(1).unwrap_or_else(|| panic!("no section {section}"));
    let cells =
        rows.split("\n## ").next().unwrap_or("").lines().filter(|l| l.starts_with("| `")).filter_map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            let literal = cells[2].strip_prefix('`').and_then(|d| d.strip_suffix('`'))?;
            Some(format!("{} = {literal}", cells[0].trim_matches(['|', ' ', '`'])))
        });
    cells.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_documented_defaults_are_the_real_ones() {
    for (section, keys, frame) in [
        ("`pass`", 2, "orbit = { pass = { altitude = \"8062 km\", @ } }"),
        ("`slots`", 6, "orbit = { slots = { delay = \"5 ms\", @ } }"),
        ("`fade`", 1, "fade = { profile = [[\"0 s\", \"1 dB\"]], acm = { clear = \"9 dB\" }, @ }"),
        ("`rain`", 7, "fade = { acm = { clear = \"9 dB\" }, rain = { @ } }"),
        ("`acm`", 3, "fade = { rain = {}, acm = { clear = \"9 dB\", @ } }"),
        ("`bursts`", 2, "bursts = { good = \"1 s\", bad = \"1 s\", @ }"),
        ("`outages`", 1, "outages = { every = \"1 s\", length = \"1 s\", @ }"),
        ("`dama`", 1, "dama = { @ }"),
        ("`codel`", 3, "discipline = { codel = { @ } }"),
        ("`fq_codel`", 2, "discipline = { fq_codel = { @ } }"),
    ] {
        let given = documented(section);
        assert_eq!(given.matches(" = ").count(), keys, "{section}: {given}");
        let with = |keys: &str| {
            let line = frame.replace('@', keys).replace(", }", " }");
            loads(&edit(GRAPH, "forward = { loss = 0.01 }", &line), &[])
        };
        assert_eq!(with(&given), with(""), "{section}");
        assert_ne!(with(""), loads(&edit(GRAPH, "forward = { loss = 0.01 }", ""), &[]), "{section}");
    }
    for (section, keys, frame) in [
        ("`requests`", 2, "app = { requests = { response = \"1 kB\", @ } }"),
        ("`telnet`", 2, "app = { telnet = { @ } }"),
        ("`udp`", 3, "app = { udp = { rate = \"1 Mbit/s\", @ } }"),
    ] {
        let given = documented(section);
        assert_eq!(given.matches(" = ").count(), keys, "{section}: {given}");
        let with =
            |keys: &str| loads(&format!("{GRAPH}{}\n", frame.replace('@', keys).replace(", }", " }")), &[]);
        assert_eq!(with(&given), with(""), "{section}");
    }
}
