//! `field`: runs the bed once and prints the results, or runs another measurement of the gateway by name.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

mod commands;

use bentpipe_field::cell::{RunConfig, USAGE};
use commands::{SUBCOMMANDS, once};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|w| w == "--help") {
        println!("{USAGE}");
        for (_, usage, _) in SUBCOMMANDS {
            println!("\n{usage}");
        }
        return ExitCode::SUCCESS;
    }
    let chosen = words.first().and_then(|word| SUBCOMMANDS.iter().find(|(name, ..)| name == word));
    let done = match chosen {
        Some((.., run)) => run(&words[1..]),
        None => RunConfig::parse(&words).and_then(|cell| once(&cell)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("field: {why}");
            ExitCode::FAILURE
        }
    }
}
