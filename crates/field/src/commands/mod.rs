//! The subcommands of `field`.

mod matrix;

use bentpipe_field::cell::{RunConfig, options};
use bentpipe_field::hop::record::write_pcap;
use bentpipe_field::reader::Reader;
use bentpipe_field::recognition::{SENDERS, is_model, simulate_seed};
use bentpipe_field::{lines, report, run, slow, untouched};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;

/// A subcommand: its name, its usage and what runs it with the rest of the command line.
pub(crate) type Subcommand = (&'static str, &'static str, fn(&[String]) -> Result<(), String>);

pub(crate) const SUBCOMMANDS: &[Subcommand] = &[
    ("matrix", matrix::USAGE, matrix::command),
    ("readers", READERS, readers),
    ("recognise", RECOGNISE, recognise),
    ("untouched", UNTOUCHED, compare_untouched),
];

const READERS: &str = "usage: field readers [--live] [--only WORD] [--seed 1] [--bin FILE]      slow readers, simulated or in the bed; --only: cases whose name holds the word";
const RECOGNISE: &str = "usage: field recognise [--runs 100] [--first 1] [--wide] [--flows 1] [--only WORDS] [--bin FILE]      simulated flows, drawn by seed: of BBR, and of cubic and reno as they are, paced, limited by their application; --wide: rates, round trips and queues that the matrix has not; --only: senders whose name has the words";
const UNTOUCHED: &str = "usage: field untouched [--bin FILE]      connections of several kinds, captured before and after the gateway (needs root, tcpdump, python3)";

/// The `bentpipe` program in the directory of this one.
fn bentpipe() -> Result<PathBuf, String> {
    Ok(std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("bentpipe"))
}

/// Parses a whole number.
fn whole(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} {value}: a whole number is needed"))
}

/// Runs the bed once; writes and prints the results.
pub(crate) fn once(cell: &RunConfig) -> Result<(), String> {
    let ran = run::run(cell)?;
    let figures = report::figures(cell, &ran);
    if let Some(out) = &cell.out {
        for (name, at_gateway) in [("gateway.pcap", true), ("receiver.pcap", false)] {
            let path = out.join(name);
            let failed = |e| format!("{}: {e}", path.display());
            let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
            write_pcap(&ran.hop.records, at_gateway, &mut file).map_err(failed)?;
        }
        let path = out.join("figures.json");
        fs::write(&path, figures.to_string()).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if cell.json {
        println!("{figures}");
    } else {
        print!("{}", lines::lines(cell, &figures));
    }
    Ok(())
}

/// Runs slow readers and compares them with their limits.
fn readers(words: &[String]) -> Result<(), String> {
    let (mut only, mut seed, mut live, mut program) = ("", 1, false, bentpipe()?);
    for (name, value) in options(words, &["--live"], READERS)? {
        match name {
            "--live" => live = true,
            "--only" => only = value,
            "--bin" => program = value.into(),
            "--seed" => seed = whole(name, value)?,
            _ => return Err(format!("unknown option {name}\n{READERS}")),
        }
    }
    let came = |case: Reader| if live { case.live(&program, seed) } else { case.simulate(&program, seed) };
    let chosen: Vec<Reader> = slow::cases().into_iter().filter(|c| c.to_string().contains(only)).collect();
    // only the cases with stops need this figure
    let needs = chosen.iter().any(|c| matches!(c, Reader::Stops(..)));
    let eager = if needs { came(Reader::Eager)?.read } else { 0.0 };
    for case in chosen {
        let (text, is_met) = case.judge(came(case)?, eager);
        print_verdict(&case.to_string(), &text, is_met);
    }
    Ok(())
}

/// Counts the flows of each kind of sender that the gateway classifies as unable to gain.
fn recognise(words: &[String]) -> Result<(), String> {
    let (mut runs, mut first, mut program) = (100, 1, bentpipe()?);
    let (mut is_wide, mut flows, mut only) = (false, 1, "");
    for (name, value) in options(words, &["--wide"], RECOGNISE)? {
        match name {
            "--runs" => runs = whole(name, value)?,
            "--first" => first = whole(name, value)?,
            "--flows" => flows = whole(name, value)? as u32,
            "--wide" => is_wide = true,
            "--only" => only = value,
            "--bin" => program = value.into(),
            _ => return Err(format!("unknown option {name}\n{RECOGNISE}")),
        }
    }
    for sender in SENDERS.into_iter().filter(|sender| sender.contains(only)) {
        let mut passed = 0;
        for seed in first..first + runs {
            let (words, n) = simulate_seed(sender, seed, is_wide, flows, &program)?;
            passed += n;
            let right = if is_model(sender) { u64::from(flows) } else { 0 };
            if n != right {
                eprintln!("{sender}, seed {seed}: {words}: {n} passed");
            }
        }
        println!("{sender}: {passed} of {} passed", runs * u64::from(flows));
    }
    Ok(())
}

/// Checks that the gateway leaves unchanged what it must not change.
fn compare_untouched(words: &[String]) -> Result<(), String> {
    let mut program = bentpipe()?;
    for (name, value) in options(words, &[], UNTOUCHED)? {
        match name {
            "--bin" => program = value.into(),
            _ => return Err(format!("unknown option {name}\n{UNTOUCHED}")),
        }
    }
    for (kind, settings) in untouched::KINDS {
        let compared = untouched::run(&program, kind, settings)?;
        let first = compared.faults.first().map_or(String::new(), |f| format!(", first: {f}"));
        let figure = format!("{} pairs, {} differences{first}", compared.pairs, compared.faults.len());
        print_verdict(kind, &figure, compared.faults.is_empty() && compared.pairs > 0);
    }
    Ok(())
}

/// Prints a result in the form that the acceptance list reads.
fn print_verdict(what: &str, figure: &str, is_met: bool) {
    println!("{what:<28} {figure:<74} {}", if is_met { "ok" } else { "MISS" });
}
