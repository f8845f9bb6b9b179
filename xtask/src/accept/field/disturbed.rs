//! A hop with single or permanent disturbances.

use super::run::{Run, TestBed};
use crate::accept::list::{Bound, List, Outcome, Unit};
use lab::with;

/// Times of the disturbances, s, with time to recover in between.
const AT: [usize; 3] = [40, 70, 100];
/// Their lengths, ms.
const LENGTHS: [usize; 3] = [50, 100, 500];
/// Time to recover, s. The mean over the same time after that must be at least [`BACK`] of the mean before.
const WITHIN: usize = 10;
const BACK: f64 = 0.9;
/// Required share of the rate without the disturbance.
const KEPT: f64 = 0.95;
/// Required share of the bound: one window in each frame, or the rate of the hop.
const FRAMED: f64 = 0.9;
/// Highest goodput of an old receiver, Mbit/s, and its window, bits.
const LINK: f64 = 23.2;
const WINDOW: f64 = 65_535.0 * 8.0;

pub(super) fn check(bed: &TestBed, list: &mut List) -> Outcome {
    for receiver in ["--old", ""] {
        let name = if receiver.is_empty() { "modern" } else { "old" };
        for kind in ["hold", "stop"] {
            let events: Vec<String> =
                AT.iter().zip(LENGTHS).map(|(at, ms)| format!("--at {at}:{kind}:{ms}")).collect();
            let run = bed.run(&format!("{receiver} --seconds 125 {}", events.join(" ")), 1);
            for (at, ms) in AT.into_iter().zip(LENGTHS) {
                once(list, &format!("{name}: {kind} of {ms} ms"), &run, at, at + ms.div_ceil(1000));
            }
        }
        let run = bed.run(&format!("{receiver} --seconds 75 --at 40:half:10000"), 1);
        once(list, &format!("{name}: half the rate for 10 s"), &run, AT[0], AT[0] + 10);
        let rate = |words: &str| bed.run(&format!("{receiver} --seconds 100 --from 40 {words}"), 1)?.rate();
        let plain = rate("");
        for (what, words) in [
            ("1 % reordered by up to 20 ms", "--reorder 0.01:20"),
            ("0.1 % twice", "--duplicate 0.001"),
            ("1 % of ACKs lost", "--loss-back 0.01"),
            ("ACKs bunched in 50 ms", "--bunch 50"),
        ] {
            let both = plain.clone().and_then(|plain| Ok((plain, rate(words)?)));
            list.judge(format!("{name}: {what}: >= {KEPT} of without"), both, |(plain, with)| {
                (format!("{with:.2} of {plain:.2} Mbit/s"), with >= KEPT * plain)
            });
        }
    }
    for frame in [10.0, 20.0, 50.0] {
        let least = FRAMED * LINK.min(WINDOW / frame / 1e3);
        let words = format!("--old --frame {frame} --seconds 100 --from 40");
        let rate = bed.run(&words, 1).and_then(|run| run.rate());
        let what = format!("old: frames of {frame} ms, {FRAMED} of the bound");
        list.figure(&what, rate, Bound::Least(least), Unit("Mbit/s", 1.0, 2));
    }
    Ok(())
}

fn once(list: &mut List, name: &str, run: &Outcome<Run>, from: usize, to: usize) {
    let both =
        with(run, |run| Ok((run.goodput(from - WITHIN, from)?, run.goodput(to + WITHIN, to + 2 * WITHIN)?)));
    list.judge(format!("{name}: >= {BACK} of before within {WITHIN} s"), both, |(before, after)| {
        (format!("{after:.2} of {before:.2} Mbit/s"), after >= BACK * before)
    });
}
