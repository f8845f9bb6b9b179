//! Packet scripts: dialogues with the engine in plain text, one folder per topic, run in virtual time in both
//! profiles.
//!
//! `README.md` in this folder describes the notation. Each script names the RFC section that it tests, the
//! engine file that it covers, and a mutant of that file that it detects (`cargo xtask mutants --scripts`
//! checks this). This file finds, runs and counts the scripts.

mod parse;
mod play;
#[path = "../dialogue/script.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::option_option,
    clippy::needless_pass_by_value,
    reason = "the stage of the segment dialogues: scripts use a part of it"
)]
mod script;
mod segment;
mod settings;
mod unit;

use parse::Script;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Smallest number of scripts per topic and profile.
const LEAST: usize = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// The scripts of a topic as (path below this folder, text), sorted by name.
fn texts(topic: &str) -> Vec<(String, String)> {
    let mut paths: Vec<_> = fs::read_dir(folder().join(topic))
        .unwrap_or_else(|e| panic!("{topic}: {e}"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "tcp"))
        .collect();
    paths.sort();
    let read =
        |path: &PathBuf| fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let name = |path: &PathBuf| format!("{topic}/{}", path.file_name().unwrap_or_default().display());
    paths.iter().map(|path| (name(path), read(path))).collect()
}

fn read(name: &str, text: &str) -> Script {
    Script::parse(text).unwrap_or_else(|fault| panic!("{}", fault.at(name)))
}

/// Runs a script in each of its profiles; returns the errors.
fn faults(name: &str, text: &str) -> Vec<String> {
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(fault) => return vec![fault.at(name)],
    };
    let mut faults = Vec::new();
    for profile in &script.profiles {
        let played = catch_unwind(AssertUnwindSafe(|| play::play(&script, *profile)));
        match played {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => faults.push(fault.at(&format!("{name} [{}]", profile.key()))),
            Err(_) => faults.push(format!("{name} [{}]: the engine panicked", profile.key())),
        }
    }
    faults
}

/// Runs all scripts of a topic; fails if one fails.
fn topic(name: &str) {
    let all = texts(name);
    let faults: Vec<_> = all.iter().flat_map(|(name, text)| faults(name, text)).collect();
    // `cargo xtask mutants --scripts` reads the names from this message
    assert!(
        faults.is_empty(),
        "{} of {} scripts do not hold:\n{}",
        faults.len(),
        all.len(),
        faults.join("\n")
    );
}

macro_rules! topics {
    ($($topic:ident: $folder:literal;)*) => {
        const TOPICS: &[&str] = &[$($folder),*];
        $(#[test]
        fn $topic() {
            topic($folder);
        })*
    };
}

topics! {
    opening: "opening";
    closing: "closing";
    resets: "resets";
    paws: "paws";
    sack: "sack";
    timeouts: "timeouts";
    prr: "prr";
    windows: "windows";
    ecn: "ecn";
    path_mtu: "path-mtu";
    keep_alive: "keep-alive";


}

/// Each topic has enough scripts in both profiles, a third of all are negative, titles are unique, and no
/// folder is missing from the topics.
#[test]
fn every_topic_is_covered() {
    let mut titles = Vec::new();
    let (mut all, mut negative) = (0, 0);
    for topic in TOPICS {
        let scripts: Vec<_> = texts(topic).iter().map(|(name, text)| read(name, text)).collect();
        let of = |profile| scripts.iter().filter(|s| s.profiles.contains(&profile)).count();
        for profile in settings::Profile::ALL {
            assert!(of(profile) >= LEAST, "{topic}: {} scripts in profile {}", of(profile), profile.key());
        }
        all += scripts.len();
        negative += scripts.iter().filter(|s| s.negative).count();
        titles.extend(scripts.into_iter().map(|s| s.title));
    }
    assert!(negative * 3 >= all, "{negative} of {all} scripts are negative");
    titles.sort();
    assert!(titles.windows(2).all(|w| w[0] != w[1]), "two scripts have one title");
    for entry in fs::read_dir(folder()).unwrap().map(Result::unwrap).filter(|e| e.path().is_dir()) {
        let name = entry.file_name();
        assert!(TOPICS.iter().any(|t| **t == *name), "{} is no topic", name.display());
    }
}
