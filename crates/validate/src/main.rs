//! `make validate`: runs all checks, prints the table, writes the page.
//!
//! With `--check` it writes nothing, and fails if the page is outdated. With `--only TEXT` it runs only the
//! checks whose table or labels contain the text, and writes nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

use bentpipe_validate::figures::{self, Results};
use bentpipe_validate::{Verdict, all, judge, judge_results, page, run_jobs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

const USAGE: &str = "usage: bentpipe-validate [--check | --only TEXT]";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => run(false),
        ["--check"] => run(true),
        ["--only", text] => only(text),
        _ => return failure(USAGE),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => failure(&message),
    }
}

fn failure(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}

fn only(text: &str) -> Result<(), String> {
    let mut checks = all();
    checks.retain(|c| c.name().contains(text));
    print!("{}", page::terminal(&judge(&checks)?));
    Ok(())
}

fn run(only_check: bool) -> Result<(), String> {
    let checks = all();
    let jobs = checks.iter().flat_map(|c| c.jobs.iter().cloned());
    let seen = run_jobs(jobs.chain(figures::jobs()))?;
    let judged = judge_results(&checks, &seen);
    print!("{}", page::terminal(&judged));
    println!("\nvalidate: {}", page::summary(&judged));
    let files = files(&Results { judged: &judged, seen: &seen });
    if only_check {
        return check(&files);
    }
    for (path, text) in files {
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    match judged.iter().filter(|j| j.verdict == Verdict::Misses).count() {
        0 => Ok(()),
        misses => Err(format!("validate: {misses} missed")),
    }
}

/// All output files with their text.
fn files(results: &Results<'_>) -> Vec<(PathBuf, String)> {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let pictures = figures::all(results).into_iter().map(|(name, text)| (book.join("img").join(name), text));
    pictures.chain([(book.join("validation.md"), page::markdown(results.judged))]).collect()
}

fn check(files: &[(PathBuf, String)]) -> Result<(), String> {
    let stale: Vec<String> = files
        .iter()
        .filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text))
        .map(|(path, _)| format!("{} is not what `make validate` writes", path.display()))
        .collect();
    if stale.is_empty() { Ok(()) } else { Err(stale.join("\n")) }
}
