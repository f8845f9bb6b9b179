//! Receivers of 65 535 B without scaling and timestamps (1, 2, 4).

use super::modern::{all, each, order_and_repairs};
use super::run::{Bed, repeats, values};
use crate::accept::List;
use crate::accept::place::judge;
use lab::stats::median;

const LOSSES: [&str; 3] = ["1e-4", "1e-3", "1e-2"];
/// Of the bound by the losses that there were: the mean of all runs, and each.
const MEAN: f64 = 0.9;
const EACH: f64 = 0.75;
/// Over a hop that loses nothing, Mbit/s.
const CLEAN: f64 = 23.0;

pub(super) fn check(bed: &Bed, list: &mut List) {
    let runs = all(bed, "--old --seconds 100 --from 40");
    let again = runs.as_ref().map(|r| repeats(r)).unwrap_or_default();
    let rates = each(&runs, |r| r.figure("/flows/0/goodput_mbps"));
    list.line(
        4,
        &judge(&format!("old, no loss: median >= {CLEAN} Mbit/s"), rates, |all| {
            (values(&all, 2) + &again, median(&all) >= CLEAN)
        }),
    );
    for loss in LOSSES {
        let runs = all(bed, &format!("--old --loss {loss} --seconds 100 --from 40"));
        let name = format!("old, loss {loss}");
        order_and_repairs(list, &name, &runs);
        let again = runs.as_ref().map(|r| repeats(r)).unwrap_or_default();
        let shares = each(&runs, |r| {
            let (rate, bound) = (r.figure("/flows/0/goodput_mbps")?, r.figure("/old_bound_mbps")?);
            Ok((rate, rate / bound))
        });
        list.line(
            4,
            &judge(&format!("{name}: mean >= {MEAN} of the bound, each >= {EACH}"), shares, |all| {
                let (rates, shares): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
                let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
                let met = mean >= MEAN && shares.iter().all(|s| *s >= EACH);
                (format!("{mean:.2} ({}) at {} Mbit/s{again}", values(&shares, 2), values(&rates, 1)), met)
            }),
        );
    }
}
