//! Receivers with a 65 535 B window, without window scaling and timestamps.

use super::modern::{SEEDS, order_and_repairs};
use super::run::{Bed, Run, each, repeats, values};
use crate::Outcome;
use crate::accept::list::List;
use lab::stats::{Mean, median};

const LOSSES: [&str; 3] = ["1e-4", "1e-3", "1e-2"];
/// Required share of the bound for the given losses: for the mean of all runs, and for each.
const MEAN: f64 = 0.9;
const EACH: f64 = 0.75;
/// Required goodput without losses, Mbit/s.
const CLEAN: f64 = 23.0;

pub(super) fn check(bed: &Bed, list: &mut List) -> Outcome {
    let runs = bed.runs("--old --seconds 100 --from 40", SEEDS);
    list.judge(format!("old, no loss: median >= {CLEAN} Mbit/s"), each(&runs, Run::rate), |all| {
        (values(&all, 2) + &repeats(&runs), median(&all) >= CLEAN)
    });
    for loss in LOSSES {
        let runs = bed.runs(&format!("--old --loss {loss} --seconds 100 --from 40"), SEEDS);
        let name = format!("old, loss {loss}");
        order_and_repairs(list, &name, &runs);
        let shares = each(&runs, |r| Ok((r.rate()?, r.rate()? / r.figure("/old_bound_mbps")?)));
        let what = format!("{name}: mean >= {MEAN} of the bound, each >= {EACH}");
        list.judge(what, shares, |all| {
            let (rates, shares): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
            let mean = Mean::of(&shares).value;
            let met = mean >= MEAN && shares.iter().all(|s| *s >= EACH);
            let (shares, rates, again) = (values(&shares, 2), values(&rates, 1), repeats(&runs));
            (format!("{mean:.2} ({shares}) at {rates} Mbit/s{again}"), met)
        });
    }
    Ok(())
}
