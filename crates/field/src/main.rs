//! `field`: one run of the bed, its figures on standard output; `field matrix`: cells simulated with a gateway and without.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

use bentpipe_field::cell::{Cell, USAGE};
use bentpipe_field::hop::dice::Dice;
use bentpipe_field::hop::record::pcap;
use bentpipe_field::matrix::cell::cells;
use bentpipe_field::matrix::{self, Matrix};
use bentpipe_field::slow::{self, Case};
use bentpipe_field::{report, run};
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|w| w == "--help") {
        println!("{USAGE}\n\n{MATRIX}\n\n{READERS}");
        return ExitCode::SUCCESS;
    }
    let done = match words.split_first() {
        Some((first, rest)) if first == "matrix" => matrix(rest),
        Some((first, rest)) if first == "readers" => readers(rest),
        _ => Cell::parse(&words).and_then(|cell| go(&cell)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("field: {why}");
            ExitCode::FAILURE
        }
    }
}

const MATRIX: &str =
    "usage: field matrix [OPTION VALUE]...      cells simulated with a gateway and without, worst last
  --only rate=24|2,rtt=1000,loss=0,receiver=old|modern|slow,sender=bbr,flows=1      some of the cells
  --sample N         so many of them, drawn by --draw 1
  --seeds 5          pairs for each cell        --most 50      where the interval holds the limit
  --transfer BYTES   transfers in place of flows without end: ratio of times
  --threads N        runs at a time             --bin FILE     bentpipe beside this program
  --out FILE         JSON of all cells";

fn matrix(words: &[String]) -> Result<(), String> {
    let (mut only, mut transfer, mut sample, mut draw, mut out) = (String::new(), None, None, 1, None);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let program = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("bentpipe");
    let mut matrix = Matrix { program, cells: Vec::new(), seeds: 5, most: 50, threads };
    for pair in words.chunks(2) {
        let [name, value] = pair else { return Err(format!("{}: what?\n{MATRIX}", pair[0])) };
        let n = || value.parse::<u64>().map_err(|_| format!("{name} {value}: a whole number is needed"));
        match name.as_str() {
            "--only" => only.clone_from(value),
            "--transfer" => transfer = Some(n()?),
            "--sample" => sample = Some(n()? as usize),
            "--draw" => draw = n()?,
            "--seeds" => matrix.seeds = n()?.max(2),
            "--most" => matrix.most = n()?,
            "--threads" => matrix.threads = n()? as usize,
            "--bin" => matrix.program = value.into(),
            "--out" => out = Some(value),
            _ => return Err(format!("unknown option {name}\n{MATRIX}")),
        }
    }
    matrix.cells = cells(&only, transfer)?;
    let mut dice = Dice::new(draw, 0);
    while sample.is_some_and(|n| n < matrix.cells.len()) {
        let i = (dice.uniform() * matrix.cells.len() as f64) as usize;
        matrix.cells.swap_remove(i);
    }
    let mut ran = matrix::run(&matrix, |ran| eprintln!("{}", ran.line()))?;
    if let Some(out) = out {
        let all: Vec<_> = ran.iter().map(matrix::Ran::json).collect();
        std::fs::write(out, serde_json::Value::from(all).to_string()).map_err(|e| format!("{out}: {e}"))?;
    }
    ran.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
    println!(
        "worst of {} cells, {} of them WORSE than without:",
        ran.len(),
        ran.iter().filter(|r| !r.is_met()).count()
    );
    ran.iter().skip(ran.len().saturating_sub(40)).for_each(|r| println!("{}", r.line()));
    Ok(())
}

const READERS: &str = "usage: field readers [--only WORD] [--seed 1] [--bin FILE]      slow readers, simulated; --only: cases whose name holds the word";

fn readers(words: &[String]) -> Result<(), String> {
    let (mut only, mut seed) = (String::new(), 1);
    let mut program = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("bentpipe");
    for pair in words.chunks(2) {
        match pair {
            [name, value] if name == "--only" => only.clone_from(value),
            [name, value] if name == "--bin" => program = value.into(),
            [name, value] if name == "--seed" => {
                seed = value.parse().map_err(|_| format!("--seed {value}\n{READERS}"))?;
            }
            _ => return Err(format!("{}: unknown, or without value\n{READERS}", pair[0])),
        }
    }
    let file = std::env::temp_dir().join(format!("bentpipe-readers-{}.toml", std::process::id()));
    let eager = Case::Stops(0.0).simulate(&program, seed, &file)?.read;
    for case in slow::cases().into_iter().filter(|c| c.to_string().contains(&only)) {
        let judged = case.judge(case.simulate(&program, seed, &file)?, eager);
        println!("{:<28} {:<70} {}", case.to_string(), judged.text, if judged.met { "ok" } else { "MISS" });
    }
    std::fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))
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
