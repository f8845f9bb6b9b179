//! `docs/src/speed.md`: what was measured, on which machine and commit.

use crate::Outcome;
use crate::item::Item;
use crate::metadata;
use lab::once::output;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// ns-3 and ns-2 on one core of one machine, CPU seconds, measured once: ns-3 takes minutes.
const NS3: &str =
    "ns-3 is not run here. Version 3.44, whose packaged libraries have logging compiled in, took 26.5 s of
CPU for the first case where ns-2 took 0.88 s on the same machine: 30 times as long.";

pub(super) fn write(items: &[Item]) -> Outcome {
    let root = metadata::root();
    let git = |words: &[&str]| output("git", Command::new("git").args(words).current_dir(&root));
    let commit = git(&["rev-parse", "--short=8", "HEAD"])?;
    // but for the page itself, which is written after each part
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/src/speed.md"])?;
    let mark = if changed.trim().is_empty() { "" } else { "-dirty" };
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let mut text = format!(
        "# Speed of the simulator\n\n\
         `make bench` measures it and writes this page. Each ratio is the median of nine pairs of runs, one of each program by \
         turns on the same machine (three rounds with many flows); the range is that of the pairs. *Before* is the revision \
         before the simulator was made faster. Fast-forward is off where it is not named.\n\n\
         Machine: {model}. Revision: {}{mark}.\n\n| what | measured | |\n|---|---|---|\n",
        commit.trim()
    );
    for item in items {
        let verdict = format!("{:?}", item.verdict).to_lowercase();
        let _ = writeln!(text, "| {} | {} | {verdict} |", item.what, item.figure);
    }
    let _ = writeln!(text, "\n{NS3}");
    let path = root.join("docs/src/speed.md");
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}
