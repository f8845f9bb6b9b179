//! What a sender costs (7).

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::stats::median;
use lab::transfers::flood;
use lab::{Outcome, Who};

/// Bytes of a transfer.
const BYTES: u64 = 1_000_000_000;
/// Runs, where something is asked.
const RUNS: usize = 7;
const ASKED_BPS: f64 = 2e9;

pub(super) fn check(place: &Place, list: &mut List) {
    let rig = place.rig(Who::Ourselves);
    for (tcp, asked) in [("cubic", true), ("newreno", false), ("bbr", false)] {
        let rates: Outcome<Vec<f64>> = rig
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|rig| (0..if asked { RUNS } else { 1 }).map(|_| flood(rig, BYTES, tcp)).collect());
        let bound = if asked { ">= 2 Gbit/s" } else { "(reported)" };
        let what = format!("{tcp}, sender on one core, to the kernel over veth: {bound}");
        let verdict = |rates: Vec<f64>| {
            let each: Vec<_> = rates.iter().map(|bps| format!("{:.2}", bps / 1e9)).collect();
            let middle = median(&rates);
            (format!("{:.2} Gbit/s ({})", middle / 1e9, each.join(", ")), !asked || middle >= ASKED_BPS)
        };
        list.line(7, &judge(&what, rates, verdict));
    }
}
