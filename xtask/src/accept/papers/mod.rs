//! Figures and tables of five papers by one command: the rows of its table of verdicts, time, resuming, page;
//! inverse questions, and wrong figure files.

mod live;
mod table;

use super::Part;
use super::list::{List, Outcome, Setup, Tests};
use crate::{bench, metadata, pages};
use lab::once::output;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use table::Verdicts;

pub(super) const PARTS: [Part; 8] = [
    ("rows", rows),
    ("quick", quick),
    ("full", full),
    ("resume", resume),
    ("page", |_, list| pages::item(None).map(|item| list.item(&item))),
    ("live", live::live),
    ("find", |_, list| prove(list, "-p bentpipe-cli --test find", FIND)),
    ("bad", |_, list| prove(list, "-p bentpipe-scenario -p bentpipe-sweep --test deployed --lib", BAD)),
];

/// Longest times on two cores, s.
const QUICK_S: f64 = 120.0;
const FULL_S: f64 = 1800.0;
const MOST_DIFFER: usize = 12;
const MOST_NOT_RUN: usize = 10;
/// Seeds of a figure whose runs have chance in them.
const SEEDS: usize = 5;
/// What is killed and resumed, and after how many runs.
const RESUMED: [&str; 2] = ["002", "003"];
const KILLED_AFTER: usize = 5;

const FIND: &str = "
* window for a rate, within 2 % of rate times round trip
  window_for_a_rate
* buffer for no loss, within 2 % of half of the window
  buffer_without_loss
* BER for a loss, within 2 % of the closed form
  bit_error_rate_for_a_packet_loss
* round trip for the limit of a window, within 2 % of window over rate
  round_trip_for_a_window
* load for the queue of M/D/1, within 2 %
  load_for_a_queue";

const BAD: &str = "
* an axis without values, a reference without source, no tolerance: refused with place and mend
  what_cannot_be_checked_is_refused_at_its_place errors_say_what_to_write
* an unknown metric, parameter or unit: refused with place and mend
  what_the_scenario_does_not_have_is_refused_in_the_figure_file";

fn prove(list: &mut List, tests: &str, proofs: &str) -> Outcome {
    list.proofs(&Tests::of(tests, &[])?, proofs);
    Ok(())
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("bentpipe-accept-papers-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `bentpipe papers WORDS --threads 2 --out papers` in `folder`.
fn papers(folder: &Path, words: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(bench::build("bentpipe")?);
    command.arg("papers").args(words).args(["--threads", "2", "--out", "papers"]).current_dir(folder);
    Ok(command)
}

/// Runs it; returns the time, s, and the exit status.
fn timed(mut command: Command) -> Outcome<(f64, Option<i32>)> {
    let start = Instant::now();
    let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = done.map_err(|e| format!("bentpipe papers: {e}"))?;
    Ok((start.elapsed().as_secs_f64(), status.code()))
}

/// A run of all papers that ends with 0 in time.
fn whole(list: &mut List, folder: &Path, mode: &str, most_s: f64) -> Outcome {
    let run = papers(folder, &[mode]).map(|own| {
        // without a network: an empty network namespace
        let mut command = Command::new("unshare");
        command.arg("--net").arg(own.get_program()).args(own.get_args()).current_dir(folder);
        command
    });
    let what = format!(
        "papers {mode} in an empty folder without a network, 2 threads: at most {most_s:.0} s, exit 0"
    );
    list.judge(what, run.and_then(timed), |(time_s, status)| {
        (format!("{time_s:.1} s, exit {status:?}"), time_s <= most_s && status == Some(0))
    });
    Ok(())
}

fn quick(_: &Setup, list: &mut List) -> Outcome {
    let folder = Folder::new("quick")?;
    whole(list, &folder.0, "--quick", QUICK_S)?;
    let figures = fs::read_dir(folder.0.join("papers/figures")).map_err(|e| e.to_string())?.count();
    list.line("SVG, PNG and CSV of every figure", format!("{figures} files"), figures == 3 * figure_files()?);
    Ok(())
}

fn full(_: &Setup, list: &mut List) -> Outcome {
    let folder = Folder::new("full")?;
    whole(list, &folder.0, "--full", FULL_S)?;
    let verdicts = Verdicts::read(&folder.0.join("papers"))?;
    let (many, intervals) = verdicts.intervals(SEEDS);
    let what = format!("rows with {SEEDS} runs or more have an interval");
    list.line(what, format!("{intervals} of {many}"), many > 0 && intervals == many);
    check(list, &verdicts)
}

/// Rows, numbers and verdicts, and that each known difference is turned by its parameters.
fn rows(_: &Setup, list: &mut List) -> Outcome {
    let folder = Folder::new("rows")?;
    timed(papers(&folder.0, &["--quick"])?)?;
    let verdicts = Verdicts::read(&folder.0.join("papers"))?;
    check(list, &verdicts)?;
    let names: BTreeSet<&str> = verdicts.known_differences().collect();
    for name in names {
        let file = metadata::root().join(format!("papers/{name}.toml"));
        let mut command = Command::new(bench::build("bentpipe")?);
        command.arg("figure").arg(file).args(["--turned", "--out", "turned"]).current_dir(&folder.0);
        let what = format!("{name}: what differs holds with the parameters that turn it");
        list.judge(what, timed(command), |(time_s, status)| {
            (format!("exit {status:?}, {time_s:.0} s"), status == Some(0))
        });
    }
    Ok(())
}

fn check(list: &mut List, verdicts: &Verdicts) -> Outcome {
    let wanted = items()?;
    let (rows, same) = (verdicts.ids(), verdicts.ids() == wanted);
    list.line(
        format!("one row for each of {} items, in their order", wanted.len()),
        format!("{}", rows.len()),
        same,
    );
    let wrong = verdicts.without_number();
    list.line("`ours` is a number unless not-run", wrong.join(", "), wrong.is_empty());
    for (verdict, most) in [("differs", MOST_DIFFER), ("not-run", MOST_NOT_RUN)] {
        let ids = verdicts.with(verdict);
        list.line(
            format!("{verdict}: at most {most}"),
            format!("{}: {}", ids.len(), ids.join(", ")),
            ids.len() <= most,
        );
    }
    let unknown = verdicts.unexplained();
    list.line("each that differs says why and with what it holds", unknown.join(", "), unknown.is_empty());
    Ok(())
}

/// The items of `papers/items.csv`, as the table of verdicts names them.
fn items() -> Outcome<Vec<String>> {
    let path = metadata::root().join("papers/items.csv");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let id = |line: &str| {
        let mut fields = line.split(',');
        format!("{}-{}", fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
    };
    Ok(text.lines().skip(1).map(id).collect())
}

/// Number of figure files in the repository.
fn figure_files() -> Outcome<usize> {
    let mut command = Command::new(bench::build("bentpipe")?);
    Ok(output("bentpipe papers --list", command.args(["papers", "--list"]))?.lines().count())
}

/// A run that is killed and repeated gives the same bytes as one that is not.
fn resume(_: &Setup, list: &mut List) -> Outcome {
    let [one, other] = [Folder::new("one")?, Folder::new("other")?];
    timed(papers(&one.0, &RESUMED)?)?;
    let mut command = papers(&other.0, &RESUMED)?;
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|e| format!("bentpipe papers: {e}"))?;
    let runs = || fs::read_dir(other.0.join("papers/runs")).map_or(0, Iterator::count);
    while runs() < KILLED_AFTER && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = matches!(child.try_wait(), Ok(None)) && child.kill().is_ok();
    child.wait().map_err(|e| e.to_string())?;
    let (kept, begun) = (runs(), other.0.join("papers/index.html").exists());
    timed(papers(&other.0, &RESUMED)?)?;
    let [a, b] = [written(&one.0.join("papers"))?, written(&other.0.join("papers"))?];
    let differ: Vec<&str> = a.keys().filter(|k| a.get(*k) != b.get(*k)).map(String::as_str).collect();
    let figure =
        format!("killed after {kept} runs; {} files, {} differ {}", a.len(), differ.len(), differ.join(", "));
    list.line(
        "killed and resumed: the same bytes",
        figure,
        killed && !begun && differ.is_empty() && a.len() == b.len(),
    );
    Ok(())
}

/// All files below a folder, the stored runs too.
fn written(folder: &Path) -> Outcome<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(written(&path)?.into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            all.insert(name, fs::read(&path).map_err(failed)?);
        }
    }
    Ok(all)
}
