//! CPU cost of a data packet in the simplest network: two hosts, one link, one Reno connection.

use super::Bench;
use crate::item::{Item, Verdict};
use lab::stats::median;

const RUNS: usize = 5;
/// Limit of the CPU time per data packet, ns, including both TCP ends and its acknowledgment.
const LIMIT_NS: f64 = 300.0;

/// One item.
pub(super) fn items(bench: &Bench) -> Result<Vec<Item>, String> {
    let mut ns = Vec::new();
    for _ in 0..RUNS {
        let (cost, report) = bench.simulate("bench/spine.toml", &[])?;
        ns.push(cost.cpu_s * 1e9 / report.segments as f64);
    }
    Ok(vec![verdict(median(&ns))])
}

fn verdict(ns: f64) -> Item {
    let what = format!("CPU per data packet, two hosts and one link, at most {LIMIT_NS} ns");
    Item::new(what, format!("{ns:.0} ns"), Verdict::of(ns <= LIMIT_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_limit() {
        assert_eq!(verdict(299.0).verdict, Verdict::Pass);
        assert_eq!(verdict(301.0).verdict, Verdict::Miss);
        assert_eq!(verdict(f64::NAN).verdict, Verdict::Miss);
    }
}
