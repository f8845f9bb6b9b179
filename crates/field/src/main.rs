//! `field`: one run of the bed, its figures on standard output.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

use bentpipe_field::cell::{Cell, USAGE};
use bentpipe_field::hop::record::pcap;
use bentpipe_field::{report, run};
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|w| w == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match Cell::parse(&words).and_then(|cell| go(&cell)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("field: {why}");
            ExitCode::FAILURE
        }
    }
}

fn go(cell: &Cell) -> Result<(), String> {
    let ran = run::run(cell)?;
    let figures = report::figures(cell, &ran);
    if let Some(out) = &cell.out {
        for (name, at_gateway) in [("gateway.pcap", true), ("receiver.pcap", false)] {
            let path = out.join(name);
            let mut file =
                BufWriter::new(File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?);
            pcap(&ran.hop.records, at_gateway, &mut file).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let path = out.join("figures.json");
        std::fs::write(&path, figures.to_string()).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if cell.json {
        println!("{figures}");
    } else {
        print!("{}", report::lines(cell, &figures));
    }
    Ok(())
}
