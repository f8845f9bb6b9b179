//! Exact fast-forward: a run that skips what repeats itself gives the same bytes as one that does not.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_base::{Duration, Purpose, Rng};
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_sim::{run, run_each_packet, run_skipping};
use std::path::Path;

fn scenario(text: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    load(&Source::new("s.toml", text), &sets, Some(1)).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// The repetitions skipped; panics if the reports differ.
fn skipped(scenario: &Scenario, what: &str) -> u64 {
    let (report, skipped) = run_skipping(scenario);
    let (fast, plain) = (report.to_json(), run_each_packet(scenario).to_json());
    let lines = fast.lines().zip(plain.lines()).enumerate().filter(|(_, (a, b))| a != b);
    let others: Vec<_> = lines.map(|(i, (a, b))| format!("line {i}: {a} instead of {b}")).take(12).collect();
    assert!(fast == plain, "{what}: other bytes after {skipped} skips:\n{}", others.join("\n"));
    skipped
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

/// One value of several.
fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[(rng.unit() * of.len() as f64) as usize]
}

fn random_network(rng: &mut Rng) -> String {
    let mut number = |least: f64, most: f64| rng.between(least, most);
    let (rate, delay, access) = (number(2e5, 5e6) as u64, number(1e6, 3e8) as u64, number(5e6, 1e8) as u64);
    let (window, segment, buffer) =
        (number(2.0, 60.0) as u64, number(400.0, 1460.0) as u64, number(2.0, 80.0));
    let (start, length) = (number(0.0, 2e9) as u64, number(2e10, 9e10) as u64);
    let app = if number(0.0, 1.0) < 0.3 {
        format!("app = {{ transfer = \"{} kB\" }}\n", number(300.0, 9000.0) as u64)
    } else {
        String::new()
    };
    let timeline = if number(0.0, 1.0) < 0.4 {
        let (at, rate) = (number(5.0, 19.0), number(2e5, 5e6) as u64);
        format!("[[timeline]]\nat = \"{at:.3} s\"\nlink = \"hop\"\nrate = \"{rate} bit/s\"\n")
    } else {
        String::new()
    };
    let instrument = if number(0.0, 1.0) < 0.4 {
        format!(
            "[[instruments]]\nname = \"i\"\nkind = \"counters\"\nlink = \"hop\"\nevery = \"{} ms\"\n",
            number(900.0, 9000.0) as u64
        )
    } else {
        String::new()
    };
    let stack = one(rng, &["rfc", "rfc", "rfc", "linux"]);
    // not all schemes are modelled as in Linux
    let others = if stack == "rfc" { "vegas" } else { "sack" };
    let tcp = one(rng, &["newreno", "sack", "reno", "cubic", "newreno", others]);
    let acks = one(rng, &["false", "true", "{ count = 2, timeout = \"40 ms\" }"]);
    let stamps = one(rng, &["true", "false", "false"]);
    let validation = one(rng, &["keep", "restart", "validate"]);
    let send_buffer = one(rng, &["", "", "send_buffer = \"20 kB\"\n"]);
    let jump = one(rng, &["", "ssthresh = \"window\"\n"]);
    let discipline = one(rng, &["fifo", "fifo", "fifo", "drop-head", "codel"]);
    format!(
        "schema = 1\ntitle = \"random\"\nduration = \"{length} ns\"\nhosts = [{{ name = \"a\" }}, {{ name = \"b\" }}]\nrouters = [{{ name = \"r\" }}]\n\
         [host]\nstack = \"{stack}\"\ntcp = \"{tcp}\"\nwindow = \"{window} segments\"\nsegment = \"{segment} B\"\n\
         delayed_ack = {acks}\ntimestamps = {stamps}\nvalidation = \"{validation}\"\n{send_buffer}{jump}\
         [[links]]\nname = \"near\"\nfrom = \"a\"\nto = \"r\"\nrate = \"{access} bit/s\"\ndelay = \"1 ms\"\nbuffer = \"1000 packets\"\n\
         [[links]]\nname = \"hop\"\nfrom = \"r\"\nto = \"b\"\nrate = \"{rate} bit/s\"\ndelay = \"{delay} ns\"\n\
         buffer = \"{} packets\"\ndiscipline = \"{discipline}\"\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nstart = \"{start} ns\"\n{app}{timeline}{instrument}",
        buffer as u64
    )
}

#[test]
fn random_networks_are_the_same() {
    let mut rng = Rng::new(18, "networks", Purpose::Application);
    let mut with_skips = 0;
    for i in 0..400 {
        let text = random_network(&mut rng);
        with_skips += u64::from(skipped(&scenario(&text, &[]), &format!("network {i}\n{text}")) > 0);
    }
    eprintln!("{with_skips} of 400 networks skipped");
    assert!(with_skips > 40, "{with_skips} of 400 networks had something to skip");
}

/// Skips do not change what a run of a fixed length ends with.
#[test]
fn a_run_of_any_length_ends_the_same() {
    let window = include_str!("../../../scenarios/window.toml");
    for ms in [60_000, 61_234, 77_777, 123_456] {
        let duration = format!("{ms} ms");
        let scenario = scenario(window, &[("window", "40 segments"), ("duration", &duration)]);
        assert_eq!(run(&scenario).to_json(), run_each_packet(&scenario).to_json(), "{duration}");
    }
}
