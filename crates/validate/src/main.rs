//! `make validate`: runs all checks, prints the table, writes the page.
//!
//! With `--check` it writes nothing, and fails if the page is outdated. With `--only TEXT` it runs only what
//! has the text in its table and name, and writes nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

use bentpipe_validate::table::Table;
use bentpipe_validate::{Verdict, all, figures, judge, page};
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

/// Runs kept while the program runs, for figures that have the same ones.
struct Runs(PathBuf);

impl Runs {
    fn new() -> Self {
        Self(env::temp_dir().join(format!("bentpipe-validate-{}", std::process::id())))
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn only(text: &str) -> Result<(), String> {
    let mut checks = all();
    checks.retain(|c| c.name().contains(text));
    let (mut tables, runs) = (page::tables(&judge(&checks)?), Runs::new());
    // a name begins with the title of its table
    let mut wanted = page::figures()?;
    wanted.retain(|f| f.title().contains(text) || text.contains(f.title()));
    for mut table in figures::tables(&wanted, &runs.0)? {
        table.rows = table.rows.iter().filter(|row| table.name(row).contains(text)).cloned().collect();
        tables.push(table);
    }
    print!("{}", page::terminal(&tables));
    Ok(())
}

fn run(only_check: bool) -> Result<(), String> {
    let (mut tables, runs) = (page::tables(&judge(&all())?), Runs::new());
    tables.extend(figures::tables(&page::figures()?, &runs.0)?);
    print!("{}", page::terminal(&tables));
    println!("\nvalidate: {}", page::summary(&tables));
    let files = files(&tables);
    if only_check {
        return check(&files);
    }
    for (path, text) in files {
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let misses = tables.iter().flat_map(|t| &t.rows).filter(|row| row.verdict == Verdict::Misses);
    match misses.count() {
        0 => Ok(()),
        misses => Err(format!("validate: {misses} missed")),
    }
}

/// All output files with their text.
fn files(tables: &[Table]) -> Vec<(PathBuf, String)> {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let pictures = tables.iter().filter_map(|t| t.picture.clone());
    let pictures = pictures.map(|(name, text)| (book.join("img").join(name), text));
    pictures.chain([(book.join("validation.md"), page::markdown(tables))]).collect()
}

fn check(files: &[(PathBuf, String)]) -> Result<(), String> {
    let stale: Vec<String> = files
        .iter()
        .filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text))
        .map(|(path, _)| format!("{} is not what `make validate` writes", path.display()))
        .collect();
    if stale.is_empty() { Ok(()) } else { Err(stale.join("\n")) }
}
