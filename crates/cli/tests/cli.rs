//! Tests the command-line interface: output streams and exit codes.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use std::path::PathBuf;
use std::process::{Command, Output};

const BAD_INPUT: i32 = 2;

fn bentpipe(args: &[&str]) -> Output {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(args).current_dir(root).output().expect("it starts")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Creates a file for this test run.
fn file(name: &str, bytes: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("the folder for test files is writable");
    path.to_str().expect("UTF-8").to_owned()
}

#[track_caller]
fn refused(args: &[&str], words: &str) {
    let output = bentpipe(args);
    assert_eq!(output.status.code(), Some(BAD_INPUT), "{args:?}\n{}", err(&output));
    assert_eq!(out(&output), "", "data belongs to runs that work");
    assert!(err(&output).contains(words), "{}", err(&output));
}

#[test]
fn check_prints_a_file_that_checks() {
    for name in ["window", "transfer", "burst", "sharing", "demo"] {
        let first = bentpipe(&["check", &format!("scenarios/{name}.toml")]);
        assert_eq!((first.status.code(), err(&first)), (Some(0), String::new()), "{name}");
        let path = file(&format!("{name}-resolved.toml"), &first.stdout);
        assert_eq!(out(&bentpipe(&["check", &path])), out(&first), "{name}");
    }
}

#[test]
fn sets_and_seed_reach_the_scenario() {
    let output = bentpipe(&[
        "check",
        "scenarios/sharing.toml",
        "--set",
        "loss=1e-3",
        "--set",
        "window=32 segments",
        "--seed",
        "7",
    ]);
    let text = out(&output);
    assert!(text.contains("\nseed = 7\n") && text.contains("loss = 0.001"), "{text}");
    assert!(text.contains("\nwindow = \"32000 B\"\n"), "{text}");
}

#[test]
fn a_bad_file_is_shown_with_its_place() {
    let path = file("bad.toml", b"schema = 1\ntitle = \"x\"\nduratoin = \"1 s\"\n");
    let output = bentpipe(&["check", &path]);
    let picture = format!(
        "\
error: unknown key `duratoin` in the file
 --> {path}:3:1
  |
3 | duratoin = \"1 s\"
  | ^^^^^^^^ did you mean `duration`?
  = help: keys of the file: schema, title, duration, flows, seed, stop, measure, parameters, resolved, \
dumbbell, satellite, hosts, routers, links, gateways, flow_routers, middleboxes, nodes, host, timeline, instruments, captures, references, sweep
"
    );
    assert_eq!((output.status.code(), err(&output)), (Some(BAD_INPUT), picture));
}

#[test]
fn bad_input_exits_with_2() {
    refused(&["check", "scenarios/sharing.toml", "--set", "loss=1.5"], "--> command line:1:12");
    refused(&["sim", "scenarios/sharing.toml", "--set", "loss=1.5"], "--> command line:1:12");
    refused(&["check", "scenarios/sharing.toml", "--set", "los=1"], "did you mean `loss`?");
    refused(&["check", "scenarios/sharing.toml", "--set", "loss"], "write it as NAME=VALUE");
    refused(&["check", "scenarios/sharing.toml", "--seed=-1"], "--seed");
    refused(&["check", "scenarios/nothing.toml"], "error: scenarios/nothing.toml: there is no such file");
    refused(&["check", "scenarios"], "error: scenarios: ");
    refused(&["check"], "Usage");
    refused(&["fly"], "Usage");
    refused(&["check", &file("latin1.toml", b"title = \"caf\xe9\"")], "is not UTF-8 text");
}

#[test]
fn a_run_is_a_value() {
    let run = || bentpipe(&["sim", "scenarios/transfer.toml", "--set", "size=10 kB", "--json"]);
    let (first, second) = (run(), run());
    assert_eq!((first.status.code(), err(&first)), (Some(0), String::new()));
    assert!(out(&first).starts_with('{') && out(&first).ends_with("}\n"), "{}", out(&first));
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn help_and_version_are_data() {
    for args in [&["--version"][..], &["--help"], &["sim", "--help"], &["check", "--help"]] {
        let output = bentpipe(args);
        assert_eq!(output.status.code(), Some(0));
        assert!(out(&output).contains("bentpipe") && err(&output).is_empty(), "{args:?}");
    }
    assert_eq!(out(&bentpipe(&["--version"])), concat!("bentpipe ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bentpipe"))
        .args(["generate", "schema"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
}

#[test]
fn links_are_listed_for_people_and_machines() {
    let text = out(&bentpipe(&["links"]));
    let json: serde_json::Value = serde_json::from_str(&out(&bentpipe(&["links", "--json"]))).expect("JSON");
    let all = json.as_array().expect("a list");
    assert_eq!(all.len(), 9);
    for link in all {
        let (name, source) =
            (link["name"].as_str().expect("a name"), link["source"].as_str().expect("a source"));
        assert!(text.contains(&format!("\n{name} ")) && text.contains(source), "{name}");
        assert!(link["forward"]["rate_bps"].as_u64().is_some_and(|r| r > 0), "{link}");
    }
}

#[test]
fn traces_lie_beside_their_scenario_and_a_wrong_line_is_named() {
    let scenario = "schema = 1\ntitle = \"t\"\nduration = \"1 s\"\n\n[dumbbell]\nprofile = \"geo-t1\"\ncapacity = { mahimahi = \"lines.trace\" }\naccess = { rate = \"1 Gbit/s\", delay = \"1 ms\", buffer = \"1 MB\" }\n\n[[flows]]\nname = \"f\"\nfrom = \"src1\"\nto = \"dst1\"\n";
    let path = file("traced.toml", scenario.as_bytes());
    file("lines.trace", b"1\n5\n");
    let output = bentpipe(&["check", &path]);
    assert!(out(&output).contains("opportunities_ms = [1, 5]"), "{}", err(&output));
    file("lines.trace", b"1\nfive\n");
    refused(&["check", &path], "error: lines.trace:2: \"five\" is not a time");
}

#[test]
fn scenarios_of_the_program_are_listed_printed_and_run_by_name() {
    let list = out(&bentpipe(&["scenarios"]));
    assert!(
        list.contains("\nsharing ") && list.contains("  GEO satellite, 10 Mbit/s: long connections"),
        "{list}"
    );
    let json = out(&bentpipe(&["scenarios", "--json"]));
    assert_eq!(json.matches("\"title\"").count(), list.lines().count() - 3, "{json}");
    let text = bentpipe(&["scenarios", "sharing"]).stdout;
    assert_eq!(
        text,
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/sharing.toml")).unwrap()
    );
    assert_eq!(
        out(&bentpipe(&["check", "sharing"])),
        out(&bentpipe(&["check", &file("sharing.toml", &text)]))
    );
    refused(&["scenarios", "shering"], "there is no scenario `shering`: did you mean `sharing`?");
}

#[test]
fn a_file_that_is_not_there_or_of_another_kind_is_answered_with_what_to_write() {
    for (name, words) in [
        ("geo-10m", "help: real programs over it: bentpipe emulate geo-10m -- COMMAND"),
        ("demo.toml", "help: the scenario that comes with the program is called `demo`"),
        ("scenarios/geo.toml", "error: scenarios/geo.toml: there is no such file"),
        ("shering", "neither a file nor a scenario `shering`: did you mean `sharing`?"),
        ("examples/gateway.toml", "a gateway file is for bentpipe gateway check examples/gateway.toml"),
        ("examples/agent.toml", "an agent file is for bentpipe agent check examples/agent.toml"),
        ("papers/003/figure-5.toml", "a figure file is for bentpipe figure papers/003/figure-5.toml"),
    ] {
        refused(&["sim", name], words);
    }
}

#[test]
fn values_that_people_write_are_answered_with_what_to_write() {
    refused(&["check", "window", "--set", "loss=150%"], "more than 100 %");
    refused(&["check", "window", "--set", "loss=50 %"], "write 0.5");
    let text = out(&bentpipe(&["scenarios", "window"]));
    let large =
        file("terabits.toml", text.replace("1.544 Mbit/s\"\nbuffer", "9 Tbit/s\"\nbuffer").as_bytes());
    refused(&["check", &large], "^^^^^^^^^^ the largest unit is Gbit/s");
    for title in ["My first link", "GEO satellite, 1.544 Mbit/s: windows"] {
        let plain = file("unquoted.toml", format!("schema = 1\ntitle = {title} # mine\n").as_bytes());
        refused(&["check", &plain], &format!("in quotes: \"{title}\""));
    }
}

#[test]
fn json_of_a_command_is_refused() {
    for args in [&["emulate", "geo-10m", "--json", "--", "true"][..], &["emulate", "--json", "geo-10m"]] {
        refused(args, "--json prints the report of a scenario's own flows");
    }
}

#[test]
fn an_outage_without_a_unit_is_answered_with_both() {
    refused(&["link", "outage", "2"], "write 2s or 2ms");
}

#[test]
fn several_metrics_in_one_option_are_answered_with_one_each() {
    let out = std::env::temp_dir().join("bentpipe-measure-never-written");
    let out = out.to_str().unwrap();
    let words =
        ["sweep", "sharing", "--measure", "goodput, rtt_p50", "--set", "duration=1 s", "--seeds", "1"];
    let words = [&words[..], &["--axis", "loss=1e-3", "--out", out]].concat();
    refused(&words, "write --measure goodput --measure rtt_p50");
    refused(&[&words[..3], &["goodput,rtt_p51"], &words[4..]].concat(), "error: ");
}

/// Percentiles are rounded to bins: the reference of the report says to which.
#[test]
fn the_report_says_how_percentiles_are_rounded() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/report.md")).unwrap();
    assert!(text.contains("all percentiles of this report are within 0.4 % of the exact ones"), "{text}");
}
