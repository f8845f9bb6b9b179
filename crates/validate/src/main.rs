//! `make validate`: runs every check, prints the table, writes the page.
//!
//! With `--check` nothing is written, and a page that is not up to date is the failure.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

use bentpipe_validate::{Judged, Verdict, all, figures, judge, page};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

const USAGE: &str = "usage: bentpipe-validate [--check]";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let only_check = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => return failure(USAGE),
    };
    match run(only_check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => failure(&message),
    }
}

fn failure(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}

fn run(only_check: bool) -> Result<(), String> {
    let judged = judge(&all()?)?;
    print!("{}", page::terminal(&judged));
    println!("\nvalidate: {}", page::summary(&judged));
    let files = files(&judged);
    if only_check {
        return check(&files);
    }
    for (path, text) in &files {
        write(path, text)?;
    }
    let misses = judged.iter().filter(|j| j.verdict == Verdict::Misses).count();
    if misses == 0 { Ok(()) } else { Err(format!("validate: {misses} missed")) }
}

/// Everything that is written, with its text.
fn files(judged: &[Judged]) -> Vec<(PathBuf, String)> {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let pictures = figures::all(judged).into_iter().map(|(name, text)| (book.join("img").join(name), text));
    pictures.chain([(book.join("validation.md"), page::markdown(judged))]).collect()
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let fault = |e| format!("{}: {e}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fault)?;
    }
    fs::write(path, text).map_err(fault)
}

fn check(files: &[(PathBuf, String)]) -> Result<(), String> {
    let stale: Vec<String> = files
        .iter()
        .filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text))
        .map(|(path, _)| format!("{} is not what `make validate` writes", path.display()))
        .collect();
    if stale.is_empty() { Ok(()) } else { Err(stale.join("\n")) }
}
