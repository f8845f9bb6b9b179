//! ns-2 with `bench/ns2-sat.tcl`.

use super::{Bench, measure};
use crate::Outcome;
use std::path::Path;

/// Runs it; returns its cost and the sum of the goodputs, bit/s.
pub(super) fn run(bench: &Bench, ns2: &Path, args: &str) -> Outcome<(measure::Cost, f64)> {
    let mut words = vec![bench.root.join("bench/ns2-sat.tcl").display().to_string()];
    words.extend(args.split(' ').map(str::to_owned));
    let cost = measure::run(ns2, &words, &bench.output)?;
    let line = std::fs::read_to_string(&bench.output).map_err(|e| format!("ns-2's output: {e}"))?;
    Ok((cost, goodput(&line).ok_or_else(|| format!("ns-2 printed: {line}"))?))
}

/// Total goodput, bit/s; the script prints bytes per second in its 17th column.
fn goodput(line: &str) -> Option<f64> {
    line.trim().split(',').nth(16)?.parse::<f64>().ok().map(|bytes| bytes * 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_ns2_is_read() {
        let line = "ns2,x,newreno,1,20,1e-4,0,1000,1040,0.5500,10e6,50,64,2,0,500.0000,999742.00,44316.00,1,2,,,3,4\n";
        assert_eq!(goodput(line), Some(999_742.0 * 8.0));
        assert_eq!(goodput("unknown key: x"), None);
    }
}
