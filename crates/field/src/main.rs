//! `field`: runs the bed once and prints the results, or runs another measurement of the gateway by name.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

mod commands;

use bentpipe_field::cell::{RunConfig, USAGE};
use commands::{matrix, once, readers, recognise, untouched};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|w| w == "--help") {
        let others = [matrix::USAGE, readers::USAGE, recognise::USAGE, untouched::USAGE];
        println!("{USAGE}\n\n{}", others.join("\n\n"));
        return ExitCode::SUCCESS;
    }
    let done = match words.split_first() {
        Some((first, rest)) if first == "matrix" => matrix::command(rest),
        Some((first, rest)) if first == "readers" => readers::command(rest),
        Some((first, rest)) if first == "recognise" => recognise::command(rest),
        Some((first, rest)) if first == "untouched" => untouched::command(rest),
        _ => RunConfig::parse(&words).and_then(|cell| once::command(&cell)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("field: {why}");
            ExitCode::FAILURE
        }
    }
}
