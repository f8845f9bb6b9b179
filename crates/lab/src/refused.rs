//! Checks invalid requests: each must give one clear message, exit status 2, and leave nothing behind.

use crate::census::SystemState;
use crate::rig::{ProgramResult, Rig, wait_for};
use crate::{Outcome, Step};
use std::time::Duration;

/// Time limit of a refusal.
const LIMIT: Duration = Duration::from_secs(30);
/// Exit status for refused input.
const REFUSED: i32 = 2;

/// Makes each invalid request that the rig's user can make; returns its message, or what is wrong with it.
pub fn all(rig: &Rig) -> Outcome<Vec<Step>> {
    rig.output(&["doctor", "--clean"], LIMIT)?;
    let before = SystemState::take(rig)?;
    let mut all = Vec::new();
    for (what, words, expected) in [
        ("an unknown link", &["emulate", "geo-10", "--", "true"][..], "geo-10m"),
        ("an unknown file", &["emulate", "scenarios/none.toml", "--", "true"], "scenarios/none.toml"),
        ("no link", &["emulate"], "Usage"),
        ("an unknown program", &["emulate", "geo-10m", "--", "no-such-program"], "no-such-program"),
        ("an unknown option", &["emulate", "geo-10m", "--lose", "1", "--", "true"], "--lose"),
        ("an invalid speed", &["emulate", "geo-10m", "--speed=-1", "--", "true"], "speed"),
        ("no session to show", &["link", "show"], "emulate"),
        ("a change without a value", &["link", "set"], "Usage"),
        ("a file that is not a journal", &["replay", "scenarios/window.toml"], "journal"),
        ("nothing to compare", &["compare", "scenarios/none.toml"], "scenarios/none.toml"),
    ] {
        all.push((what, check_refusal(rig, &rig.run(words, LIMIT)?, expected, &before)));
    }
    all.push(("a second session of the same name", second(rig, &before)));
    if rig.is_unprivileged() {
        let done = rig.run(&["emulate", "geo-10m", "--uplink", "--", "true"], LIMIT)?;
        all.push((
            "an uplink without permission",
            check_refusal(rig, &done, "sudo bentpipe emulate ... --uplink", &before),
        ));
    } else {
        all.push(("an interface name that is taken", taken(rig)));
        all.push(("no user namespaces", closed(rig, &before, "emulate geo-10m -- true")));
        let figure = format!("papers 002/window --live --out {}", rig.path("figure").display());
        all.push(("a live figure without user namespaces", closed(rig, &before, &figure)));
    }
    Ok(all)
}

/// Expects one message with `expected`, exit status 2, empty standard output, and nothing left behind.
fn check_refusal(rig: &Rig, done: &ProgramResult, expected: &str, before: &SystemState) -> Outcome<String> {
    if done.code != Some(REFUSED) {
        return Err(done.describe());
    }
    if !done.out.is_empty() || !done.err.contains(expected) || done.err.contains("panicked") {
        return Err(format!("`{expected}` is not in: {}{}", done.err.trim(), done.out.trim()));
    }
    let leaks = SystemState::leaks(rig, before, 1000)?;
    if let Some(first) = leaks.first() {
        return Err(format!("{} left behind: {first}", leaks.len()));
    }
    Ok(done.err.lines().next().unwrap_or_default().to_owned())
}

/// A second session of the same name; the first must keep running.
fn second(rig: &Rig, before: &SystemState) -> Outcome<String> {
    let ready = rig.path("ready");
    let script = format!("touch '{}'; sleep 60", ready.display());
    let first = rig.start(&["emulate", "geo-10m", "--name", "one", "--", "sh", "-c", &script])?;
    wait_for("the first session", || Ok(ready.exists())).map_err(|e| format!("{e}: {}", first.err()))?;
    let done = rig.run(&["emulate", "geo-10m", "--name", "one", "--", "true"], LIMIT)?;
    let still_there = rig.run(&["link", "show", "--json"], LIMIT)?;
    drop(first);
    rig.output(&["doctor", "--clean"], LIMIT)?;
    let _ = std::fs::remove_file(&ready);
    if still_there.code != Some(0) {
        return Err(format!("the first session suffered: {}", still_there.describe()));
    }
    check_refusal(rig, &done, "one", before)
}

/// An uplink whose interface name on the machine is taken.
fn taken(rig: &Rig) -> Outcome<String> {
    let add = "ip link add bent0 type dummy 2>/dev/null || ip link add bent0 type veth peer name bent1";
    rig.shell(add, LIMIT)?;
    let before = SystemState::take(rig)?;
    let done = rig.run(&["emulate", "geo-10m", "--uplink", "--name", "taken", "--", "true"], LIMIT)?;
    let judged = match done.code {
        // the uplink uses another name, so there is no conflict
        Some(0) => match SystemState::leaks(rig, &before, 1000)?.first() {
            None => Ok("no conflict: interfaces of an uplink have other names".to_owned()),
            Some(leak) => Err(format!("left behind: {leak}")),
        },
        _ => check_refusal(rig, &done, "bent0", &before),
    };
    rig.shell("ip link del bent0", LIMIT)?;
    judged
}

/// A command under a kernel that refuses user namespaces to unprivileged processes.
fn closed(rig: &Rig, before: &SystemState, words: &str) -> Outcome<String> {
    let program = rig.program().display().to_string();
    let script = format!(
        "unshare --user --map-root-user -- sh -c 'echo 0 >/proc/sys/user/max_user_namespaces &&
exec setpriv --bounding-set=-all --inh-caps=-all -- \"$0\" {words}' '{program}'; echo \"code $?\""
    );
    let done = rig.run_shell(&script, LIMIT)?;
    let code = done.out.trim().strip_prefix("code ").and_then(|c| c.parse().ok());
    let done = ProgramResult { code, out: String::new(), ..done };
    check_refusal(rig, &done, "max_user_namespaces", before)
}
