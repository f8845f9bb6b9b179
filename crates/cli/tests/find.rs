//! `bentpipe find` against closed forms, and its options.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{bentpipe, contents, err, folder};

const WINDOW: &str = "scenarios/window.toml";
const BURST: &str = "scenarios/burst.toml";
const NO_CROSSING: i32 = 4;
const BAD_INPUT: i32 = 2;

/// Searches; returns the answer as JSON and what is on standard error.
#[track_caller]
fn found(file: &str, vary: &str, until: &str, more: &[&str]) -> (Value, String) {
    let output = bentpipe(&[&["find", file, "--vary", vary, "--until", until, "--json"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    (serde_json::from_str(&text).expect("JSON"), err(&output))
}

/// Checks that the value is within 2 % of `wanted`, and that the interval is around the value.
#[track_caller]
fn is_near(answer: &Value, wanted: f64, unit: &str) {
    let [low, value, high] = ["low", "value", "high"].map(|key| answer[key].as_f64().expect("a number"));
    assert!((value / wanted - 1.0).abs() < 0.02, "{answer}, {wanted} wanted");
    assert!(low <= value && value <= high && high - low < 0.1 * value, "{answer}");
    assert_eq!(answer["unit"], unit);
}

/// A window W over a round trip T carries W/T. To the propagation come the times of a segment of 1000 B with
/// 40 B of headers, and of an ACK, on the bottleneck and on both access links.
fn round_trip_beyond_propagation() -> f64 {
    (1040.0 + 40.0) * 8.0 * (1.0 / 1.544e6 + 2.0 / 10e6)
}

#[test]
fn window_for_a_rate() {
    let (answer, _) = found(WINDOW, "window=20..200 kB", "goodput >= 1 Mbit/s", &["--seeds", "1"]);
    is_near(&answer, 1e6 / 8.0 * (0.585 + round_trip_beyond_propagation()) / 1000.0, "kB");
    assert_eq!(answer["metric"], "goodput");
    assert_eq!(answer.as_object().expect("an object").len(), 6);
}

#[test]
fn round_trip_for_a_window() {
    let set = ["--set", "window=64 segments", "--seeds", "1"];
    let (answer, _) = found(WINDOW, "rtt=100..900 ms", "goodput < 1 Mbit/s", &set);
    is_near(&answer, (64.0 * 8000.0 / 1e6 - round_trip_beyond_propagation()) * 1000.0, "ms");
}

/// Slow start brings two segments for each ACK, so half of the window waits.
#[test]
fn buffer_without_loss() {
    let (answer, notes) = found(BURST, "buffer=1..200 packets", "drops[bottleneck] <= 0", &["--seeds", "1"]);
    is_near(&answer, 64.0, "packets");
    let integers = ["value", "low", "high", "runs"].map(|key| answer[key].as_i64().expect("an integer"));
    assert_eq!([integers[0] - 1, integers[0]], integers[1..3]);
    assert!(notes.starts_with("note: The means of drops[bottleneck] neither rise nor fall"), "{notes}");
}

/// A packet of n bits is lost with the probability 1 - (1 - BER)^n, nearly 1 - exp(-n BER).
#[test]
fn bit_error_rate_for_a_packet_loss() {
    let text = "schema = 1\ntitle = \"t\"\nduration = \"10 s\"\n[parameters]\nber = 0.0\n\
                [[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n\
                [[links]]\nname = \"link\"\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n\
                buffer = \"1000 packets\"\nber = \"$ber\"\n[[flows]]\nname = \"x\"\nfrom = \"a\"\nto = \"b\"\n\
                app = { udp = { rate = \"7.776 Mbit/s\", size = \"972 B\" } }\n";
    let path = folder("find-ber.toml");
    std::fs::write(&path, text).expect("it can be written");
    // half of 10000 datagrams of 1000 B on the link
    let (answer, _) = found(path.to_str().expect("UTF-8"), "ber=1e-6..1e-3", "lost > 5000", &[]);
    is_near(&answer, core::f64::consts::LN_2 / 8000.0, "");
}

/// M/D/1: at the load 0.8 a mean of 1.6 packets waits (Pollaczek and Khinchine).
#[test]
fn load_for_a_queue() {
    let file = "crates/validate/data/poisson.toml";
    let (answer, _) =
        found(file, "rate=2..7.5 Mbit/s", "queue_mean[bottleneck] > 1.6", &["--set", "duration=20 s"]);
    is_near(&answer, 0.8 * 7.776, "Mbit/s");
}

/// Bare integers of a parameter that is a count; the condition is met by the lower values.
#[test]
fn a_count_stays_a_count() {
    let set = ["--set", "window=16 segments", "--set", "duration=50 s", "--seeds", "1"];
    for (until, value) in [("goodput >= 0.6 Mbit/s", 3), ("goodput < 0.6 Mbit/s", 2)] {
        let (answer, _) = found(WINDOW, "flows=1..8", until, &set);
        assert_eq!(
            (&answer["value"], &answer["low"], &answer["high"]),
            (&value.into(), &2.into(), &3.into())
        );
    }
    // bounds that are integers do not make a probability a count
    let (answer, _) = found(WINDOW, "ber=0..1", "goodput < 0.1 Mbit/s", &set);
    assert!(answer["value"].as_f64().expect("a number") < 0.5, "{answer}");
}

#[test]
fn decibels_are_varied_as_they_are() {
    let text = std::fs::read_to_string("../../scenarios/fade-2h.toml").expect("it is there");
    let path = folder("find-fade.toml");
    let fade = "[[\"0 s\", \"$rise\"], [\"100 s\", \"$rise\"]]";
    let text = text
        .replace("[[\"0 s\", \"5 dB\"], [\"7200 s\", \"0 dB\"], [\"10800 s\", \"$rise\"]]", fade)
        .replace("duration = \"10800 s\"", "duration = \"100 s\"");
    std::fs::write(&path, text).expect("it can be written");
    let path = path.to_str().expect("UTF-8");
    let (answer, _) = found(path, "rise=0..5 dB", "goodput < 0.5 Mbit/s", &["--seeds", "3"]);
    let value = answer["value"].as_f64().expect("a number");
    assert!(value > 1.0 && value < 5.0 && answer["unit"] == "dB", "{answer}");
}

fn noisy(out: &Path, until: &str, more: &[&str]) -> (String, String) {
    let vary = ["find", WINDOW, "--vary", "ber=1e-9..1e-4", "--set", "duration=50 s", "--until", until];
    let output = bentpipe(&[&vary, more, &["--out", out.to_str().expect("UTF-8")]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    (String::from_utf8(output.stdout.clone()).expect("UTF-8"), err(&output))
}

#[test]
fn the_same_bytes_with_any_number_of_threads_and_after_an_interrupt() {
    let folders = ["one", "four"].map(|name| folder(&format!("find-{name}")));
    let until = "goodput < 0.8 Mbit/s";
    let (sentence, made) = noisy(&folders[0], until, &["--threads", "1"]);
    assert!(sentence.starts_with("goodput falls below 0.8 Mbit/s at ber = "), "{sentence}");
    assert!(sentence.contains(", 95 %, 5 seeds, ") && !made.contains(" 0 runs made"), "{sentence}{made}");
    assert_eq!(noisy(&folders[1], until, &["--threads", "4"]).0, sentence);
    let files = contents(&folders[0]);
    assert!(files == contents(&folders[1]), "the folders differ");
    let names: Vec<&str> = files.keys().map(String::as_str).filter(|n| !n.starts_with("runs/")).collect();
    assert_eq!(names, ["crossing.svg", "points.csv", "report.html"]);
    let page = String::from_utf8_lossy(&files["report.html"]);
    assert!(page.contains(sentence.trim()) && page.contains("<svg"), "{page}");
    let table = String::from_utf8_lossy(&files["points.csv"]);
    let head = "ber,goodput_bps_mean,goodput_bps_half_width_95,goodput_bps_n,met\n1e-9,";
    assert!(table.starts_with(head) && table.trim_end().ends_with(",5,yes"), "{table}");
    // a lost run is made again, all others are kept
    let runs = files.keys().filter(|name| name.starts_with("runs/")).count();
    let lost = files.keys().find(|name| name.starts_with("runs/")).expect("a run");
    std::fs::remove_file(folders[0].join(lost)).expect("it is there");
    let (again, made) = noisy(&folders[0], until, &[]);
    assert!(again == sentence && made.starts_with(&format!("1 runs made, {} kept, in ", runs - 1)), "{made}");
    assert!(contents(&folders[0]) == files);
}

#[test]
fn no_crossing_has_its_own_exit_status() {
    let args = ["find", BURST, "--vary", "buffer=64..100 packets", "--until", "drops[bottleneck] > 0"];
    let args = [&args[..], &["--seeds", "1", "--set", "window=64 segments"]].concat();
    let sentence = "drops[bottleneck]: no crossing of 0 was found at 5 values from buffer = 64 packets to \
                    100 packets: it is 0 at 64 packets and 0 at 100 packets (1 seed, 5 runs).";
    let output = bentpipe(&args);
    assert_eq!((output.status.code(), err(&output)), (Some(NO_CROSSING), String::new()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{sentence}\n"));
    let output = bentpipe(&[&args[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(NO_CROSSING));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(answer["value"].is_null() && answer["error"] == sentence && answer["runs"] == 5, "{answer}");
}

#[test]
fn what_did_not_finish_does_not_meet_the_condition() {
    let path = folder("find-short.toml");
    let file = std::fs::read_to_string("../../scenarios/transfer.toml").expect("it is there");
    let cut =
        file.lines().map(|line| if line.starts_with("duration") { "duration = \"10 s\"" } else { line });
    std::fs::write(&path, cut.collect::<Vec<_>>().join("\n")).expect("it can be written");
    let until = ["--vary", "size=10..10000 kB", "--until", "finished < 20 s", "--seeds", "1"];
    let output = bentpipe(&[&["find", path.to_str().expect("UTF-8")], &until[..]].concat());
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), err(&output));
    assert!(text.starts_with("finished is below 20 s up to size = "), "{text}");
    assert!(text.contains(" runs finished has no value: what it measures did not happen"), "{text}");
}

/// Checks that the options are refused with exactly this message, before anything is written.
#[track_caller]
fn refused(vary: &str, until: &str, picture: &str) {
    let out = folder(&format!("find-{}", std::thread::current().name().unwrap_or_default()));
    let args = ["find", WINDOW, "--set", "tcp=sack", "--vary", vary, "--until", until, "--out"];
    let output = bentpipe(&[&args[..], &[out.to_str().expect("UTF-8")]].concat());
    let message = picture.trim_start_matches('\n').to_owned();
    assert_eq!((output.status.code(), err(&output)), (Some(BAD_INPUT), message));
    assert!(output.stdout.is_empty() && !out.exists(), "nothing is written");
}

const CONDITION: &str = "goodput < 1 Mbit/s";

#[test]
fn ranges_point_at_the_character() {
    refused(
        "br=1..2",
        CONDITION,
        "
error: there is no parameter `br`
 --> command line:1:8
  |
1 | --vary br=1..2
  |        ^^ did you mean `ber`?
  = help: parameters: tcp, window, flows, ber, loss, segment, rtt, duration
",
    );
    refused(
        "ber=1e-3,1e-2",
        CONDITION,
        "
error: the range has no `..`
 --> command line:1:12
  |
1 | --vary ber=1e-3,1e-2
  |            ^^^^^^^^^ write it as NAME=LOW..HIGH, as in ber=1e-9..1e-4 or 'rate=1..20 Mbit/s'
",
    );
    refused(
        "ber=1e-3..1e-3",
        CONDITION,
        "
error: both bounds of the range are equal
 --> command line:1:12
  |
1 | --vary ber=1e-3..1e-3
  |            ^^^^^^^^^^ write a lower and a higher value
",
    );
    refused(
        "rtt=1 s..20 ms",
        CONDITION,
        "
error: the first bound of the range is the higher one
 --> command line:1:12
  |
1 | --vary rtt=1 s..20 ms
  |            ^^^^^^^^^^ write rtt=20 ms..1 s
",
    );
    refused(
        "tcp=reno..sack",
        CONDITION,
        "
error: `tcp` is given by --set too
 --> command line:1:8
  |
1 | --vary tcp=reno..sack
  |        ^^^ leave one of them out
",
    );
}

#[test]
fn bounds_point_at_the_character() {
    refused(
        "window=1..5 packets",
        CONDITION,
        "
error: `window` has an unknown unit, `packets`
 --> command line:1:18
  |
1 | --vary window=1..5 packets
  |                  ^^^^^^^^^ windows are counted in segments, buffers in packets
  = help: units: B, kB, MB, GB, KiB, MiB, GiB, segments
  = note: used at scenarios/window.toml:34:10
",
    );
    refused(
        "window=1 kB..5 segments",
        CONDITION,
        "
error: the bounds of the range have different units: this is no amount of segments
 --> command line:1:15
  |
1 | --vary window=1 kB..5 segments
  |               ^^^^ a unit at the end holds for both
",
    );
    refused(
        "ber=..2",
        CONDITION,
        "
error: a bound of the range is missing
 --> command line:1:12
  |
1 | --vary ber=..2
  |            ^ write it as NAME=LOW..HIGH, as in ber=1e-9..1e-4 or 'rate=1..20 Mbit/s'
",
    );
    refused(
        "ber=-1..0.5",
        CONDITION,
        "
error: `ber` is a probability between 0 and 1
 --> command line:1:12
  |
1 | --vary ber=-1..0.5
  |            ^^ less than 0
  = note: used at scenarios/window.toml:27:7
",
    );
}

#[test]
fn conditions_point_at_the_character() {
    let vary = "ber=1e-9..1e-4";
    refused(
        vary,
        "goodput == 1 Mbit/s",
        "
error: a search needs a side of a limit
 --> command line:1:17
  |
1 | --until goodput == 1 Mbit/s
  |                 ^^ write <, <=, > or >=
",
    );
    refused(
        vary,
        "goodput < 5 ms",
        "
error: `5 ms` does not fit `goodput`: write a rate, as in 1 Mbit/s
 --> command line:1:9
  |
1 | --until goodput < 5 ms
  |         ^^^^^^^^^^^^^^
  = help: a search takes <, <=, > or >=
",
    );
    refused(
        vary,
        "goodput[flow7] < 1 Mbit/s",
        "
error: `goodput[flow7]`: the run has no flow `flow7`: did you mean `flow1`?
 --> command line:1:17
  |
1 | --until goodput[flow7] < 1 Mbit/s
  |                 ^^^^^
  = help: it has flow1
",
    );
}
