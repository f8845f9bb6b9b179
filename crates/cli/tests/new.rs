//! `bentpipe new`: what it writes is accepted and runs; what exists is kept.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod support;

use std::fs;
use std::process::Stdio;
use support::{bentpipe, err, folder, program};

const BAD_INPUT: i32 = 2;

/// A file for this test run that is not there yet.
fn file(name: &str) -> String {
    let dir = folder(&format!("new-{name}"));
    fs::create_dir_all(&dir).unwrap();
    dir.join("mine.toml").to_str().unwrap().to_owned()
}

#[track_caller]
fn refused(flags: &[&str], words: &[&str]) {
    let output = bentpipe(&[&["new", "-"], flags].concat());
    let said = err(&output);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(BAD_INPUT), true), "{flags:?} {said}");
    for word in words {
        assert!(said.contains(word), "{flags:?}: no `{word}` in {said}");
    }
}

/// Every combination of a link, an application, errors and schemes.
#[test]
fn every_file_checks_and_runs() {
    let path = file("matrix");
    let links: [&[&str]; 6] = [
        &[],
        &["--link", "geo-hts", "--buffer", "100 packets", "--queue", "codel"],
        &["--link", "leo"],
        &["--link", "meo", "--rate", "20 Mbit/s"],
        &["--rate", "2 Mbit/s", "--rtt", "0.3 s", "--return-rate", "500 kbit/s"],
        &["--link", "terrestrial", "--rtt", "40 ms"],
    ];
    let apps: [&[&str]; 3] = [&[], &["--size", "100 kB"], &["--flows", "3", "--duration", "4 s"]];
    let rest: [&[&str]; 3] = [
        &[],
        &["--loss", "1e-3", "--tcp", "hybla"],
        &["--tcp", "cubic,bbr,newreno", "--title", "\"a\" beside b"],
    ];
    let (mut texts, mut runs) = (Vec::new(), 0);
    for (link, app, more) in links.iter().flat_map(|l| apps.iter().flat_map(move |a| rest.map(|r| (l, a, r))))
    {
        let flags = [*link, *app, more].concat();
        let written = bentpipe(&[&["new", &path, "--force"], &flags[..]].concat());
        assert_eq!(written.status.code(), Some(0), "{flags:?}: {}", err(&written));
        let text = fs::read_to_string(&path).unwrap();
        let checked = bentpipe(&["check", &path]);
        assert_eq!(checked.status.code(), Some(0), "{flags:?}: {}\n{text}", err(&checked));
        let resolved = String::from_utf8(checked.stdout).unwrap();
        assert!(!more.contains(&"1e-3") || resolved.contains("loss = 0.001"), "{resolved}");
        let run = bentpipe(&["sim", &path, "--set", "duration=5 s", "--expect", "acked > 1 kB"]);
        assert_eq!(run.status.code(), Some(0), "{flags:?}: {}\n{text}", err(&run));
        texts.push(text);
        runs += 1;
    }
    texts.sort();
    texts.dedup();
    assert_eq!((runs, texts.len()), (54, 54), "each says something else");
}

#[test]
fn every_named_link_and_scheme_has_a_file() {
    let path = file("names");
    let links: serde_json::Value = serde_json::from_slice(&bentpipe(&["links", "--json"]).stdout).unwrap();
    for link in links.as_array().unwrap() {
        let written = bentpipe(&["new", &path, "--force", "--link", link["name"].as_str().unwrap()]);
        assert_eq!(written.status.code(), Some(0), "{}", err(&written));
        assert_eq!(bentpipe(&["check", &path]).status.code(), Some(0), "{link}");
    }
    let schemes =
        ["reno", "sack", "vegas", "westwood", "bbr3", "careful-resume", "peach", "swift-sat", "parallel"];
    for scheme in schemes {
        let run = bentpipe(&["new", &path, "--force", "--tcp", scheme, "--duration", "3 s"]);
        assert_eq!(run.status.code(), Some(0), "{}", err(&run));
        let run = bentpipe(&["sim", &path]);
        let text = String::from_utf8(run.stdout).unwrap();
        assert!(text.contains(scheme), "{text}");
    }
}

#[test]
fn a_file_that_exists_is_kept() {
    let path = file("kept");
    let said = err(&bentpipe(&["new", &path, "--link", "leo"]));
    assert!(said.contains("wrote ") && said.contains("bentpipe sim "), "{said}");
    let first = fs::read(&path).unwrap();
    let output = bentpipe(&["new", &path, "--link", "meo"]);
    assert_eq!(output.status.code(), Some(BAD_INPUT));
    assert!(err(&output).contains("exists\nhelp: choose another name, or --force"), "{}", err(&output));
    assert_eq!(fs::read(&path).unwrap(), first);
    // nor is anything written over a file when the options are wrong
    assert_eq!(bentpipe(&["new", &path, "--force", "--loss", "2"]).status.code(), Some(BAD_INPUT));
    assert_eq!(fs::read(&path).unwrap(), first);
    assert_eq!(bentpipe(&["new", &path, "--force", "--link", "meo"]).status.code(), Some(0));
    assert_ne!(fs::read(&path).unwrap(), first);
}

#[test]
fn slips_are_shown_in_their_option() {
    refused(&["--link", "geo10m"], &["--link geo10m", "did you mean `geo-10m`?"]);
    refused(&["--rate", "10 MB"], &["command line:1:8", "--rate 10 MB", "10 Mbit/s"]);
    refused(&["--loss", "50 %"], &["--loss 50 %", "write 0.5"]);
    refused(
        &["--tcp", "bbr,cubik"],
        &["command line:1:11", "--tcp bbr,cubik", "      ^^^^^ did you mean `cubic`?"],
    );
    refused(&["--tcp", "bbr,bbr"], &["called `bbr"]);
    refused(&["--flows", "0"], &["--flows 0"]);
    refused(&["--return-rate", "5"], &["--return-rate 5"]);
    refused(&["--link", "leo", "--rtt", "600 ms"], &["--rtt 600 ms", "satellites of `leo` move"]);
    refused(&["--link", "leo", "--rate", "1 Mbit/s"], &["--rate 1 Mbit/s", "a rate of its own"]);
    refused(&["--scenario", "shering"], &["did you mean `sharing`?"]);
    refused(&["--scenario", "sharing", "--rtt", "1 s"], &["cannot be used with"]);
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    let path = file("usual");
    let output = program().args(["new", &path]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("link = { default = \"geo-10m\"") && text.contains(&format!("sim {path}")),
        "{text}"
    );
    let printed = program().args(["new", "-"]).stdin(Stdio::null()).output().unwrap().stdout;
    // without the commands in the comments, which name the file
    let body = |text: &str| text[text.find("\nschema").unwrap()..].to_owned();
    assert_eq!(body(&text), body(&String::from_utf8(printed).unwrap()));
}

#[test]
fn a_scenario_of_the_program_is_copied() {
    let path = file("copied");
    assert_eq!(bentpipe(&["new", &path, "--scenario", "sharing"]).status.code(), Some(0));
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("# Twenty long") && text.contains(&format!("bentpipe sim {path} --set")),
        "{text}"
    );
    assert_eq!(bentpipe(&["check", &path]).stdout, bentpipe(&["check", "sharing"]).stdout);
}
