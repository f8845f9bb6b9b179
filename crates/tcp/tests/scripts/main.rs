//! Packet scripts: the engine's behaviour as dialogues in plain text, one folder per topic, played in virtual
//! time in both profiles.
//!
//! `README.md` in this folder describes the notation. Each script names the RFC section that it holds, the
//! file of the engine that it guards, and a mutant of that file which it notices
//! (`cargo xtask mutants --scripts` proves it). Here is what finds, plays and counts them.

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

/// Scripts in each topic at least.
const LEAST: usize = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// The scripts of a topic, in order of their names, as path below this folder and text.
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

/// Plays a script in each of its profiles; what went wrong.
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

/// All scripts of a topic hold.
fn topic(name: &str) {
    let all = texts(name);
    let faults: Vec<_> = all.iter().flat_map(|(name, text)| faults(name, text)).collect();
    // `cargo xtask mutants --scripts` reads which these are
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

/// Enough of each kind, each in both profiles, a third of them negative, no two under one title, and none
/// outside a topic.
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
