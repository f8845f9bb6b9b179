//! `field matrix`: compares goodput with and without the gateway.

use super::{bentpipe, options, whole};
use bentpipe_field::hop::dice::RandomNumbers;
use bentpipe_field::matrix::cell::cells;
use bentpipe_field::matrix::{self, CellResult, Matrix, page};
use serde_json::Value;
use std::fs;

/// The path of an output, if it is asked for, and the function that makes its text.
type Output<'a> = (Option<&'a str>, fn(&[CellResult]) -> String);

pub(crate) const USAGE: &str =
    "usage: field matrix [OPTION VALUE]...      cells simulated with a gateway and without, worst last
  --only rate=24|2,rtt=1000,loss=0,receiver=old|modern|slow,sender=bbr,flows=1      some of the cells
  --sample N         so many of them, drawn by --draw 1
  --seeds 5          pairs for each cell        --most 50      where the interval holds the limit
  --transfer BYTES   transfers in place of flows without end: ratio of times
  --live             in the bed in place of simulated
  --threads N        runs at a time; a run for each core, live one after another
  --bin FILE         bentpipe, if it does not lie beside this program
  --out FILE         JSON of all cells          --page FILE    a page with a picture
  --summary FILE     a table for a document      --picture FILE   its picture, SVG
  --from FILES       what earlier runs wrote with --out, by commas, in place of running";

pub(crate) fn command(words: &[String]) -> Result<(), String> {
    let (mut only, mut transfer, mut sample, mut draw) = (String::new(), None, None, 1);
    let (mut out, mut page, mut summary, mut picture, mut from) = (None, None, None, None, None);
    let mut threads = None;
    let mut matrix =
        Matrix { program: bentpipe()?, cells: Vec::new(), seeds: 5, most: 50, threads: 1, live: false };
    for (name, value) in options(words, &["--live"], USAGE)? {
        let n = || whole(name, value);
        match name {
            "--only" => value.clone_into(&mut only),
            "--transfer" => transfer = Some(n()?),
            "--sample" => sample = Some(n()? as usize),
            "--draw" => draw = n()?,
            "--seeds" => matrix.seeds = n()?.max(2),
            "--most" => matrix.most = n()?,
            "--threads" => threads = Some(n()? as usize),
            "--bin" => matrix.program = value.into(),
            "--out" => out = Some(value),
            "--summary" => summary = Some(value),
            "--page" => page = Some(value),
            "--picture" => picture = Some(value),
            "--from" => from = Some(value),
            "--live" => matrix.live = true,
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
    }
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    matrix.threads = threads.unwrap_or_else(|| if matrix.live { 1 } else { cores() }).max(1);
    matrix.cells = cells(&only, transfer)?;
    let mut dice = RandomNumbers::new(draw, 0);
    while sample.is_some_and(|n| n < matrix.cells.len()) {
        let i = (dice.uniform() * matrix.cells.len() as f64) as usize;
        matrix.cells.swap_remove(i);
    }
    let mut ran = match from {
        Some(files) => files.split(',').map(read).collect::<Result<Vec<_>, _>>()?.concat(),
        None => matrix::run(&matrix, |ran| eprintln!("{}", ran.line())),
    };
    let json: fn(&[CellResult]) -> String =
        |ran| ran.iter().map(CellResult::json).collect::<Value>().to_string();
    let outputs: [Output<'_>; 4] =
        [(out, json), (page, page::html), (summary, page::summary), (picture, page::svg)];
    for (path, text) in outputs {
        let Some(path) = path else { continue };
        fs::write(path, text(&ran)).map_err(|e| format!("{path}: {e}"))?;
    }
    ran.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
    let worse = ran.iter().filter(|r| !r.is_met()).count();
    println!("worst of {} cells, {worse} of them WORSE than without:", ran.len());
    ran.iter().skip(ran.len().saturating_sub(40)).for_each(|r| println!("{}", r.line()));
    Ok(())
}

/// Reads the results of an earlier run.
fn read(file: &str) -> Result<Vec<CellResult>, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let all: Vec<Value> = serde_json::from_str(&text).map_err(|e| format!("{file}: {e}"))?;
    all.iter().map(|json| CellResult::from_json(json).map_err(|e| format!("{file}: {e}"))).collect()
}
