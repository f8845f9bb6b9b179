//! The project's own tools: `cargo xtask <command>`. `USAGE` lists the commands.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

mod accept;
mod bench;
mod examples;
mod item;
mod metadata;
mod mutants;
mod pages;
mod program;
mod tidy;

use std::process::ExitCode;

/// Result of a command or measurement; the error is a sentence for the user.
type Outcome<T = ()> = Result<T, String>;

const USAGE: &str = "usage: cargo xtask <command>
  tidy [--lines [FOLDER]]   style limits, layering, duplicates, words; lines only
  accept AREA [PARTS] [--long]   acceptance list of an area, one line per item; some take hours in full
  examples [--write]   commands in the documents, and the outputs shown there
  pages [--shots DIR]   pages in a browser, narrow and wide, light and dark
  mutants [--scripts]   mutants of changed lines, within 2 minutes; packet scripts against the mutants that they name
  bench [--strict]   CPU time beside ns-2, growth with many flows, live links";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let outcome = match args.first().map(String::as_str) {
        Some("tidy") => tidy::command(rest),
        Some("accept") => accept::command(rest),
        Some("bench") => bench::command(rest),
        Some("examples") => examples::command(rest),
        Some("measure") => bench::measure::command(rest),
        Some("mutants") => mutants::command(rest),
        Some("pages") => pages::command(rest),
        Some(other) => Err(format!("unknown command `{other}`\n{USAGE}")),
        None => Err(USAGE.to_owned()),
    };
    let Err(message) = outcome else { return ExitCode::SUCCESS };
    eprintln!("{message}");
    ExitCode::FAILURE
}
