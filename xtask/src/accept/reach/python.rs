//! The Python package: installed in an empty environment, what it costs, the same tables whatever makes the
//! runs, and schemes written in Python.

use super::{List, Outcome, Setup};
use crate::metadata;
use lab::once::output;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Longest time from an empty environment to the first picture, s.
const PICTURE_S: f64 = 60.0;
const LEAST_TESTS: usize = 120;
const MOST_BESIDE_US: f64 = 50.0;
const LEAST_USED: f64 = 0.9;
const LEAST_ROWS: f64 = 1e6;
const LEAST_CALLS: f64 = 200_000.0;
const LEAST_STEPS: f64 = 1000.0;

/// Makes a run, and its page with pictures.
const PICTURE: &str = "import bentpipe
page = bentpipe.run('sharing', seed=1)._repr_html_()
assert page.count('svg') > 2";

/// A virtual environment in a folder of its own, which is also the home of a user who has nothing yet.
struct Venv(PathBuf);

impl Venv {
    fn new() -> Outcome<Self> {
        let folder = env::temp_dir().join(format!("bentpipe-accept-venv-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let venv = Self(folder);
        output("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(venv.0.join("venv")))?;
        Ok(venv)
    }

    /// A program of the environment, in the folder `python` of the repository.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.0.join("venv/bin").join(name));
        command.env("HOME", &self.0).env_remove("PYTHONPATH").current_dir(metadata::root().join("python"));
        command
    }
}

impl Drop for Venv {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn wheel() -> Outcome<PathBuf> {
    output("make wheel", Command::new("make").args(["--silent", "wheel"]).current_dir(metadata::root()))?;
    let folder = metadata::root().join("target/wheels");
    let all = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|e| e == "whl");
    let found = all.flatten().map(|entry| entry.path()).find(is_wheel);
    found.ok_or_else(|| format!("{}: no wheel", folder.display()))
}

/// The last line of a program's output, or why it failed.
fn last(name: &str, command: &mut Command) -> Outcome<String> {
    let done = command.output().map_err(|e| format!("{name}: {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let line = line.trim_matches('=').trim().to_owned();
    if done.status.success() {
        return Ok(line);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let why = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{name}: {line} {why}"))
}

/// Number before a word in the summary of pytest: `154 passed, 2 skipped in 60 s`.
fn counted(summary: &str, word: &str) -> usize {
    let words: Vec<&str> = summary.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    let at = words.iter().position(|w| *w == word);
    at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok()).unwrap_or(0)
}

pub(super) fn venv(_: &Setup, list: &mut List) -> Outcome {
    let (wheel, venv) = (wheel()?, Venv::new()?);
    let start = Instant::now();
    let installed = last("pip", venv.program("pip").args(["install", "--quiet"]).arg(&wheel));
    let picture = installed.and_then(|_| last("first picture", venv.program("python").args(["-c", PICTURE])));
    let what = format!("wheel installed, first picture: at most {PICTURE_S:.0} s");
    list.judge(what, picture, |_| {
        let time_s = start.elapsed().as_secs_f64();
        (format!("{time_s:.1} s"), time_s <= PICTURE_S)
    });
    let mut pip = venv.program("pip");
    last("pip", pip.args(["install", "--quiet", "abi3audit", "--requirement", "requirements-test.txt"]))?;
    list.judge(
        "mypy --strict of package, examples and tests",
        last("mypy", &mut venv.program("mypy")),
        |line| (line, true),
    );
    let mut pyright = venv.program("pyright");
    pyright.arg("--pythonpath").arg(venv.0.join("venv/bin/python"));
    list.judge("pyright of the same", last("pyright", &mut pyright), |line| (line, true));
    let audit = last("abi3audit", venv.program("abi3audit").arg("--strict").arg(&wheel));
    list.judge("abi3audit --strict", audit, |_| ("no violation".to_owned(), true));
    let mut python = venv.program("python");
    let version = last("python", python.args(["-c", "import platform; print(platform.python_version())"]))?;
    let what = format!("pytest on CPython {version}, tutorial included: at least {LEAST_TESTS} tests");
    tests(list, &venv.program("pytest"), what, &[], LEAST_TESTS);
    list.skip("pytest on CPython 3.10, 3.12 and later", "untested: only this one is installed");
    Ok(())
}

/// Runs tests of the package; those that could not run count as not met.
fn tests(list: &mut List, pytest: &Command, what: impl Into<String>, words: &[&str], least: usize) {
    let mut command = Command::new(pytest.get_program());
    for (name, value) in pytest.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(metadata::root().join("python"));
    command.args(["-q", "-p", "no:cacheprovider"]).args(words);
    list.judge(what, last("pytest", &mut command), |summary| {
        let ran = counted(&summary, "passed");
        let met = ran >= least && counted(&summary, "failed") == 0 && counted(&summary, "skipped") == 0;
        (summary, met)
    });
}

/// Programs of the environment of `make python-test`, with the wheel in it.
fn developed() -> Outcome<PathBuf> {
    let mut make = Command::new("make");
    output("make", make.args(["--silent", "python-install"]).current_dir(metadata::root()))?;
    Ok(metadata::root().join("target/python/bin"))
}

/// Measures with `python/bench/measure.py`.
fn measure(programs: &Path, what: &str) -> Outcome<serde_json::Value> {
    let mut python = Command::new(programs.join("python"));
    let line =
        last(what, python.args(["bench/measure.py", what]).current_dir(metadata::root().join("python")))?;
    serde_json::from_str(&line).map_err(|e| format!("{what}: {line}: {e}"))
}

fn number(measured: &serde_json::Value, key: &str) -> f64 {
    measured.get(key).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN)
}

pub(super) fn cost(_: &Setup, list: &mut List) -> Outcome {
    let programs = developed()?;
    let what = format!("a run beside the engine's time: at most {MOST_BESIDE_US:.0} us");
    list.judge(what, measure(&programs, "run"), |m| {
        let beside = number(&m, "beside_us");
        (format!("{beside:.1} us, median of 2000"), beside <= MOST_BESIDE_US)
    });
    for (how, name) in [("a sweep", "threads"), ("one by one", "single")] {
        let what = format!("10 000 small runs by threads, {how}: {:.0} % of the cores", 100.0 * LEAST_USED);
        list.judge(what, measure(&programs, name), |m| {
            let (used, cores, time_s) = (number(&m, "used"), number(&m, "cores"), number(&m, "seconds"));
            let figure = format!("{:.1} % of {cores} cores, {time_s:.1} s", 100.0 * used);
            (figure, used >= LEAST_USED && number(&m, "runs") >= 10_000.0)
        });
    }
    list.judge("a frame of a million rows, no column of numbers copied", measure(&programs, "frame"), |m| {
        let (rows, columns, copied) = (number(&m, "rows"), number(&m, "columns"), number(&m, "copied"));
        let figure = format!("{rows} rows, {columns} columns, {copied} copied");
        (figure, rows >= LEAST_ROWS && columns > 0.0 && copied == 0.0)
    });
    Ok(())
}

pub(super) fn table(_: &Setup, list: &mut List) -> Outcome {
    let pytest = Command::new(developed()?.join("pytest"));
    let same = "test_the_tables_are_those or test_any_executor or gives_the_tables_of_the_command \
                or test_a_store";
    tests(list, &pytest, "Ray, Dask, processes, threads: the bytes of the command", &["-k", same], 12);
    let killed = "test_a_worker_of or test_a_worker_that_dies or test_with_a_callers_executor";
    tests(list, &pytest, "a killed worker costs its batch again, nothing else", &["-k", killed], 4);
    let drivers = "test_a_driver_that_is_killed or test_a_sweep_that_is_killed";
    tests(list, &pytest, "a killed driver loses nothing that was finished", &["-k", drivers], 5);
    tests(list, &pytest, "mixed versions are refused", &["-k", "of_another_version"], 2);
    Ok(())
}

pub(super) fn scheme(_: &Setup, list: &mut List) -> Outcome {
    let programs = developed()?;
    let pytest = Command::new(programs.join("pytest"));
    let words = ["-k", "test_aimd_is_reno"];
    tests(list, &pytest, "AIMD in Python: goodput within 0.1 % of `reno`, three seeds", &words, 3);
    let what = format!("calls of a scheme in Python: at least {LEAST_CALLS:.0} /s");
    list.judge(what, measure(&programs, "calls"), |m| {
        let (rate, each) = (number(&m, "per_second"), number(&m, "each_us"));
        (format!("{rate:.0} /s, {each:.2} us each"), rate >= LEAST_CALLS)
    });
    let what = format!("steps of an environment: at least {LEAST_STEPS:.0} /s");
    list.judge(what, measure(&programs, "steps"), |m| {
        let rate = number(&m, "per_second");
        (format!("{rate:.0} /s"), rate >= LEAST_STEPS)
    });
    tests(
        list,
        &pytest,
        "check_env passes, the same seed is the same trajectory",
        &["tests/test_gym.py"],
        12,
    );
    Ok(())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_summary_of_pytest_is_read() {
        let summary = "3 failed, 154 passed, 2 skipped in 61.25s (0:01:01)";
        assert_eq!(
            ["failed", "passed", "skipped", "errors"].map(|word| counted(summary, word)),
            [3, 154, 2, 0]
        );
    }
}
