//! Simulated and emulated agree.

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::agreement::{Figure, Pair, compare};
use lab::{Outcome, Rig, Who, stats};

/// Runs with seeds of their own where a mean is compared.
const SEEDS: u64 = 5;
/// Length of the run over one window that the scenario asks for, and shorter, seconds.
const WINDOW_S: (u64, u64) = (500, 120);

pub(super) fn check(place: &Place, list: &mut List) {
    let (seconds, short) = if place.long {
        (WINDOW_S.0, String::new())
    } else {
        (WINDOW_S.1, format!(" (short: {} s)", WINDOW_S.1))
    };
    let rig = place.rig(Who::Ourselves);
    let with = |f: &dyn Fn(&Rig) -> Outcome<Pair>| rig.as_ref().map_err(Clone::clone).and_then(f);
    let duration = format!("duration={seconds} s");
    let window = with(&|r| compare(r, "scenarios/window.toml", &[&duration], Figure::Goodput, seconds));
    list.line(3, &judge(&format!("compare window: goodput within 2 %{short}"), window, |p| figure(p, 0.02)));
    let transfer = with(&|r| compare(r, "scenarios/transfer.toml", &[], Figure::Finished, 60));
    list.line(3, &judge("compare transfer: completion within 2 %", transfer, |p| figure(p, 0.02)));
    let sharing = rig.as_ref().map_err(Clone::clone).and_then(sharing);
    list.line(
        3,
        &judge("compare sharing, cubic, loss 1e-2, 60 s: total within 8 %", sharing, |(pair, half)| {
            let (text, met) = figure(pair, 0.08);
            (format!("{text} ± {:.1} (95 %, {SEEDS} seeds)", half * 100.0), met)
        }),
    );
}

fn figure(pair: Pair, limit: f64) -> (String, bool) {
    let [a, b] = [pair.simulated, pair.emulated].map(|v| if v > 1e4 { v / 1e6 } else { v });
    let difference = pair.difference();
    (format!("{a:.3} and {b:.3}: {:+.2} %", difference * 100.0), difference.abs() <= limit)
}

/// Means over seeds, and half the width of the interval of the difference.
fn sharing(rig: &Rig) -> Outcome<(Pair, f64)> {
    let sets = ["tcp=cubic", "loss=1e-2", "duration=60 s"];
    let (mut simulated, mut emulated, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 1..=SEEDS {
        let seed = format!("--seed {seed}");
        let with_seed = [&sets[..], &[seed.as_str()]].concat();
        let pair = compare(rig, "scenarios/sharing.toml", &with_seed, Figure::Goodput, 60)?;
        simulated.push(pair.simulated);
        emulated.push(pair.emulated);
        differences.push(pair.difference());
    }
    let pair = Pair { simulated: stats::mean(&simulated).0, emulated: stats::mean(&emulated).0 };
    Ok((pair, stats::mean(&differences).1))
}
