//! Tests the command-line interface: output streams and exit codes.

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
    refused(&["check", "scenarios/nothing.toml"], "error: scenarios/nothing.toml: ");
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
