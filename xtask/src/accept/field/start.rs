//! How long 20 000 000 B take from the first data segment to the last byte acknowledged by the receiver (3).

use super::run::{Bed, values};
use crate::accept::List;
use crate::accept::place::judge;
use lab::stats::median;

/// Probabilities of loss, and the longest median, s.
const CASES: [(&str, f64); 3] = [("0", 14.6), ("1e-3", 16.5), ("1e-2", 21.0)];
const SEEDS: u64 = 10;

pub(super) fn check(bed: &Bed, list: &mut List) {
    for (loss, most) in CASES {
        let words = format!("--loss {loss} --bytes 20000000 --seconds 120");
        let times: Result<Vec<f64>, String> =
            bed.seeds(SEEDS).map(|seed| bed.run(&words, seed)?.figure("/flows/0/took_s")).collect();
        list.line(
            3,
            &judge(&format!("20 MB, modern, loss {loss}: median <= {most} s"), times, |all| {
                let middle = median(&all);
                (format!("{middle:.2} s of {}", values(&all, 1)), middle <= most)
            }),
        );
    }
}
