//! `mutants`: checks that a test fails when a changed line is wrong, and that the packet scripts detect the
//! mutants they name.
//!
//! Both use `cargo mutants` (of crates.io) to make the mutants and run tests against each.

use crate::{Outcome, metadata, tidy};
use lab::{once::output, rig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const BUDGET: Duration = Duration::from_secs(120);
/// Time limit of the scripts with one mutant, s: with some mutants they never end.
const PATIENCE: &str = "20";
/// If time is short, one of this many scripts is checked, since each needs a build.
pub(crate) const SAMPLE: usize = 16;

pub(crate) fn command(args: &[String]) -> Outcome {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => of_the_change(),
        ["--scripts"] => scripts(1).map(|n| println!("{n} scripts notice their mutants")),
        _ => Err("usage: cargo xtask mutants [--scripts]".to_owned()),
    }
}

/// True if cargo-mutants exists or could be installed.
fn is_installed() -> bool {
    let install = || {
        println!("installing cargo-mutants (cargo install --locked cargo-mutants)");
        let args = ["install", "--locked", "cargo-mutants"];
        output("cargo install", Command::new(metadata::cargo()).args(args)).is_ok()
    };
    rig::has("cargo-mutants") || install()
}

/// `cargo mutants`, with one build folder for all runs.
fn cargo_mutants(args: &[&str]) -> Command {
    let mut command = Command::new(metadata::cargo());
    command.arg("mutants").args(args).current_dir(metadata::root());
    command.env("CARGO_TARGET_DIR", metadata::root().join("target/mutants/build"));
    command
}

/// Tests mutants of the lines changed since the main branch, within the time limit. Survivors are listed.
#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "there is a limit of time")]
fn of_the_change() -> Outcome {
    if !is_installed() {
        eprintln!("SKIPPED mutants: cargo-mutants is not there and could not be installed");
        return Ok(());
    }
    let folder = metadata::root().join("target/mutants");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let Ok(base) = base() else {
        eprintln!("SKIPPED mutants: git has no commit to compare with");
        return Ok(());
    };
    let diff = folder.join("change.diff");
    fs::write(&diff, git(&["diff", &base, "--", "*.rs"])?).map_err(|e| format!("{}: {e}", diff.display()))?;
    let packages = changed_packages(&git(&["diff", "--name-only", &base, "--", "*.rs"])?)?;
    let until = std::time::Instant::now() + BUDGET;
    for (package, tests) in &packages {
        if std::time::Instant::now() >= until {
            println!("mutants: {package}: not tried, no time");
            continue;
        }
        let out = folder.join(package);
        let _ = fs::remove_dir_all(&out);
        let mut command = cargo_mutants(&["--package", package, "--in-diff"]);
        command.arg(&diff).arg("--output").arg(&out).args(*tests).stdout(Stdio::null());
        let fault = |e| format!("cargo mutants: {e}");
        let mut child = command.spawn().map_err(fault)?;
        let left = until.saturating_duration_since(std::time::Instant::now());
        let ended = rig::ended_within(&mut child, left).map_err(fault)?.is_some();
        if !ended && let Some(pid) = Pid::from_raw(child.id() as i32) {
            // on SIGINT it stops its tests and keeps the results so far
            let _ = kill_process(pid, Signal::INT);
            rig::ended_within(&mut child, Duration::from_secs(20)).map_err(fault)?;
            let _ = child.kill();
            let _ = child.wait();
        }
        report(package, &out.join("mutants.out"), ended);
    }
    println!("mutants: {} packages changed since {base}", packages.len());
    Ok(())
}

fn git(args: &[&str]) -> Outcome<String> {
    let mut command = Command::new("git");
    let text = output(&format!("git {}", args.join(" ")), command.args(args).current_dir(metadata::root()))?;
    Ok(text.trim_end().to_owned())
}

/// The merge base with the main branch; on the main branch itself the previous commit.
fn base() -> Outcome<String> {
    let head = git(&["rev-parse", "HEAD"])?;
    let left = ["origin/main", "main"].iter().find_map(|main| git(&["merge-base", main, "HEAD"]).ok());
    left.filter(|base| *base != head).map_or_else(|| git(&["rev-parse", "HEAD~1"]), Ok)
}

/// Packages with changes in their sources, and which of their tests to run: all if they are fast, unit
/// tests only if others wait for real packets.
fn changed_packages(files: &str) -> Outcome<BTreeMap<String, &'static [&'static str]>> {
    let mut changed = BTreeMap::new();
    for package in metadata::packages()? {
        let folder = package.manifest_path.with_file_name("src");
        let folder = folder.strip_prefix(metadata::root()).unwrap_or(&folder);
        if files.lines().any(|file| Path::new(file).starts_with(folder)) {
            let name = package.name.to_string();
            let is_engine = tidy::is_below_the_drivers(name.trim_start_matches("bentpipe-"));
            let is_library = package.targets.iter().any(cargo_metadata::Target::is_lib);
            let tests: &[&str] = match (is_engine, is_library) {
                (true, _) => &[],
                (false, true) => &["--", "--lib"],
                (false, false) => &["--", "--bins"],
            };
            changed.insert(name, tests);
        }
    }
    Ok(changed)
}

fn report(package: &str, outcomes: &Path, ended: bool) {
    let list = |name: &str| fs::read_to_string(outcomes.join(name)).unwrap_or_default();
    let (caught, missed) = (list("caught.txt"), list("missed.txt"));
    let stopped = if ended { "" } else { ", stopped: no time" };
    let (caught, survivors) = (caught.lines().count(), missed.lines().count());
    println!("mutants: {package}: {caught} noticed, {survivors} survived{stopped}");
    missed.lines().for_each(|line| println!("SURVIVED {line}"));
}

/// A packet script, and the mutant that it must detect.
struct Script {
    name: String,
    /// The mutated file, below `crates/tcp/src`.
    guards: String,
    mutant: String,
}

/// Checks one of `every` scripts: it must name a mutant and fail with it. Returns the number of scripts
/// checked.
pub(crate) fn scripts(every: usize) -> Outcome<usize> {
    if !is_installed() {
        return Err("cargo-mutants is not there: cargo install --locked cargo-mutants".to_owned());
    }
    let scripts: Vec<Script> = read_scripts()?.into_iter().step_by(every).collect();
    let mutants = list(&scripts)?;
    let chosen: Vec<Option<&String>> =
        scripts.iter().map(|s| mutants.get(&(s.guards.clone(), s.mutant.clone()))).collect();
    let found = outcomes(&chosen.iter().copied().flatten().collect())?;
    let mut misses = Vec::new();
    for (script, mutant) in scripts.iter().zip(chosen) {
        let why = match mutant.map(|mutant| found.get(mutant).map(|(summary, log)| (summary.as_str(), log))) {
            None => "cargo-mutants lists no such mutant",
            Some(Some(("CaughtMutant", log))) if names(log, &script.name) => continue,
            Some(Some(("Timeout", _))) => "with its mutant the engine never comes to an end",
            Some(Some(("Unviable", _))) => "its mutant does not compile",
            Some(_) => "it holds although the mutant is on",
        };
        misses.push(format!("{}: {}: {}: {why}", script.name, script.guards, script.mutant));
    }
    if misses.is_empty() { Ok(scripts.len()) } else { Err(misses.join("\n")) }
}

/// True if the test output says that a script failed.
fn names(log: &str, script: &str) -> bool {
    log.lines().any(|line| line.strip_prefix(script).is_some_and(|rest| rest.starts_with([' ', ':'])))
}

fn read_scripts() -> Outcome<Vec<Script>> {
    let folder = metadata::root().join("crates/tcp/tests/scripts");
    let topics = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let files = topics.flatten().flat_map(|topic| fs::read_dir(topic.path())).flatten().flatten();
    let paths: BTreeSet<PathBuf> = files.map(|file| file.path()).collect();
    let mut scripts = Vec::new();
    for path in paths.into_iter().filter(|p| p.extension().is_some_and(|e| e == "tcp")) {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let value = |key: &str| {
            let line = text.lines().take_while(|l| !l.is_empty()).find_map(|l| l.strip_prefix(key));
            line.map(|l| l.trim_start_matches(':').trim().to_owned()).unwrap_or_default()
        };
        let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        scripts.push(Script { name, guards: value("guards"), mutant: value("mutant") });
    }
    Ok(scripts)
}

/// The mutants of all files that scripts guard: file and name (`#2` for the second of that name), mapped to
/// their full names with line and column.
fn list(scripts: &[Script]) -> Outcome<BTreeMap<(String, String), String>> {
    let files: BTreeSet<String> = scripts.iter().map(|s| format!("crates/tcp/src/{}", s.guards)).collect();
    let files: Vec<&str> = files.iter().flat_map(|file| ["--file", file]).collect();
    let what = "cargo mutants --list";
    let words = [&["--list", "--json", "--package", "bentpipe-tcp"], &files[..]].concat();
    let text = output(what, &mut cargo_mutants(&words))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("{what}: {e}"))?;
    let (mut mutants, mut seen) = (BTreeMap::new(), BTreeMap::<_, usize>::new());
    for full in json.as_array().into_iter().flatten().filter_map(|m| m["name"].as_str()) {
        let [file, _, _, name] = full.splitn(4, ':').collect::<Vec<_>>()[..] else { continue };
        let (file, name) = (file.trim_start_matches("crates/tcp/src/"), name.trim());
        let count = seen.entry((file, name)).or_default();
        *count += 1;
        let name = if *count > 1 { format!("{name} #{count}") } else { name.to_owned() };
        mutants.insert((file.to_owned(), name), full.to_owned());
    }
    Ok(mutants)
}

/// Results of these mutants: the summary of cargo-mutants, and the output.
fn outcomes(mutants: &BTreeSet<&String>) -> Outcome<BTreeMap<String, (String, String)>> {
    let folder = metadata::root().join("target/mutants/scripts");
    let _ = fs::remove_dir_all(&folder);
    let patterns: Vec<String> = mutants.iter().map(|name| format!("^{}$", escaped(name))).collect();
    let patterns: Vec<&str> = patterns.iter().flat_map(|pattern| ["--re", pattern]).collect();
    let out = folder.display().to_string();
    let args = ["--package", "bentpipe-tcp", "--timeout", PATIENCE, "--output", &out, "--no-shuffle"];
    // a non-zero exit status is expected if mutants survive
    let done = cargo_mutants(&[&args, &patterns[..], &["--", "--test", "scripts"]].concat()).output();
    let done = done.map_err(|e| format!("cargo mutants: {e}"))?;
    let folder = folder.join("mutants.out");
    let json = rig::json(&folder.join("outcomes.json"))
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&done.stderr)))?;
    let mut found = BTreeMap::new();
    for one in json["outcomes"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if one["scenario"] == "Baseline" && one["summary"] != "Success" {
            return Err("the scripts do not hold without a mutant".to_owned());
        }
        let log = fs::read_to_string(folder.join(text(&one["log_path"]))).unwrap_or_default();
        found.insert(text(&one["scenario"]["Mutant"]["name"]), (text(&one["summary"]), log));
    }
    Ok(found)
}

/// A regular expression that matches exactly this text.
fn escaped(text: &str) -> String {
    let escape = |c: char| if "\\.+*?()|[]{}^$".contains(c) { vec!['\\', c] } else { vec![c] };
    text.chars().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_does_not_hold_is_found_in_the_log() {
        let log = "2 of 9 scripts do not hold:\nsack/a.tcp [rfc]: 3\nsack/b.tcp:1: no";
        assert!(names(log, "sack/a.tcp") && names(log, "sack/b.tcp"));
        assert!(!names(log, "sack/c.tcp") && !names(log, "a.tcp") && !names(log, "sack/a.tc"));
    }

    #[test]
    fn names_are_patterns_that_match_themselves() {
        assert_eq!(escaped("a.rs:1:2: replace || with < in f"), "a\\.rs:1:2: replace \\|\\| with < in f");
    }

    #[test]
    fn every_script_names_a_mutant() {
        let scripts = read_scripts().unwrap();
        assert!(scripts.len() > 100 && scripts.iter().all(|s| !s.guards.is_empty() && !s.mutant.is_empty()));
    }
}
