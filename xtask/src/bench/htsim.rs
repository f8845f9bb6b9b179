//! CPU time of a data packet beside htsim, another fast packet simulator, in the simplest network. htsim's
//! TCP has no handshake, no SACK and no receive window, so only the cost of a packet is compared.

use super::{Bench, measure};
use crate::Outcome;
use crate::item::{Item, Verdict};
use lab::stats::median;
use std::path::PathBuf;

const PAIRS: usize = 9;
const LOSS: &str = "1e-4";
const SECONDS: &str = "2000";

/// Compared if the variable `BENTPIPE_HTSIM` names the program of `bench/htsim.cpp`.
pub(super) fn items(bench: &Bench) -> Outcome<Vec<Item>> {
    let what = format!("CPU time of a data packet, two hosts, one link, loss {LOSS}: less than htsim's");
    let Some(program) = std::env::var_os("BENTPIPE_HTSIM").map(PathBuf::from) else {
        let why = "set BENTPIPE_HTSIM to the program of bench/htsim.cpp";
        return Ok(vec![Item::new(what, why, Verdict::Skipped)]);
    };
    let args = [LOSS.to_owned(), SECONDS.to_owned()];
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        let theirs = measure::run(&program, &args, &bench.output)?;
        let line = std::fs::read_to_string(&bench.output).map_err(|e| format!("htsim's output: {e}"))?;
        let packets = sent(&line).ok_or_else(|| format!("htsim printed: {line}"))?;
        let (ours, report) = bench.simulate("bench/spine.toml", &[("loss", LOSS)])?;
        pairs.push([theirs.cpu_s * 1e9 / packets, ours.cpu_s * 1e9 / report.segments as f64]);
    }
    let ns = |i: usize| median(&pairs.iter().map(|pair| pair[i]).collect::<Vec<_>>());
    let ratio = median(&pairs.iter().map(|[theirs, ours]| ours / theirs).collect::<Vec<_>>());
    let item = Item::new(what, format!("{ratio:.3}: {:.0} ns, htsim {:.0} ns", ns(1), ns(0)), ratio < 1.0);
    println!("{item}");
    Ok(vec![item])
}

/// Data packets that it sent, the first number of its last line.
fn sent(text: &str) -> Option<f64> {
    text.lines().last()?.split(',').next()?.parse().ok().filter(|n| *n > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_htsim_is_read() {
        assert_eq!(sent("Setting flow size\n1200,1248000\n"), Some(1200.0));
        assert_eq!(sent("0,0\n"), None);
        assert_eq!(sent("usage"), None);
    }
}
