//! A trunk loses four fifths of its rate, and gets them back.

use super::course::all_have;
use super::simulator::{Simulator, drops, named};
use super::{SECONDS, SEEDS};
use crate::accept::list::{Bound, List, Outcome, Setup};
use lab::stats::median;
use serde_json::Value;

/// When the trunk breaks and when it is repaired, s.
const BROKEN: f64 = 40.0;
const REPAIRED: f64 = 60.0;
/// Shares of 50 flows before and during the break, bit/s, and bits of a packet.
const SHARES: (f64, f64) = (1.9e6, 0.38e6);
const PACKET: f64 = 12_000.0;
/// Two rates are the same if they are within two steps of the format.
const SAME: f64 = 0.995;

/// Round trip, and time between the starts of two flows. Those that start within a round trip of each other
/// know nothing of each other until their first data.
const CASES: [(&str, &str); 4] =
    [("40 ms", "20 ms"), ("40 ms", "600 ms"), ("500 ms", "600 ms"), ("500 ms", "20 ms")];

/// What the trunk dropped before the break, after it, and later than two round trips after it; when the last
/// flow had its share again.
struct Break {
    before: f64,
    during: f64,
    late: f64,
    recovery_s: f64,
}

impl Break {
    fn of(report: &Value, rtt_s: f64) -> Outcome<Self> {
        let rows = named(report, "instruments", "trunk")?["rows"].as_array().ok_or("no rows")?;
        // the end of the interval, and the drops in it
        let row = |row: &Value| Some((row[0].as_f64()?, row[4].as_f64()?));
        let rows: Vec<(f64, f64)> = rows.iter().filter_map(row).collect();
        let every = rows.first().map_or(0.0, |(end, _)| *end);
        let sum =
            |is_in: &dyn Fn(f64) -> bool| rows.iter().filter(|(end, _)| is_in(*end)).map(|(_, n)| n).sum();
        let before = sum(&|end| end <= BROKEN);
        let late = sum(&|end| end - every >= BROKEN + 2.0 * rtt_s);
        let during = drops(named(report, "links", "bottleneck")?)? - before;
        let recovery_s = all_have(report, SAME * SHARES.0, REPAIRED)?;
        Ok(Self { before, during, late, recovery_s })
    }
}

pub(super) fn trunk(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for ip in ["4", "6"] {
        for (rtt, every) in CASES {
            case(&sim, list, ip, (rtt, every));
        }
    }
    Ok(())
}

fn case(sim: &Simulator, list: &mut List, ip: &str, (rtt, every): (&str, &str)) {
    let rtt_s = rtt.trim_end_matches(" ms").parse().unwrap_or(0.0) / 1000.0;
    let run = |seed: u64| {
        let sets = [("rtt", rtt), ("every", every), ("ip", ip)];
        Break::of(&sim.run("rate-break", &sets, seed)?, rtt_s)
    };
    let all: Outcome<Vec<Break>> = (1..=SEEDS).map(run).collect();
    let sums = all.as_deref().map(|all| {
        let sum = |of: fn(&Break) -> f64| all.iter().map(of).sum::<f64>();
        (sum(|one| one.before), sum(|one| one.during), sum(|one| one.late))
    });
    let what =
        format!("trunk breaks, IPv{ip}, {rtt}, starts every {every}: no drop later than 2 round trips");
    list.judge(what, sums.map_err(Clone::clone), |(before, during, late)| {
        (format!("{late} later; {before} before the break, {during} after it, {SEEDS} seeds"), late < 0.5)
    });
    let median = all.map(|all| median(&all.iter().map(|one| one.recovery_s).collect::<Vec<_>>()));
    let most = 3.0 * 128.0 * PACKET / SHARES.1 + rtt_s;
    let what = "the same, repaired: all flows have their share after 3 x 128 packets and a round trip";
    list.figure(what, median, Bound::Most(most), SECONDS);
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn drops_are_counted_by_their_intervals() {
        let rate = json!({"changes": [{"at_s": 66.0, "bps": 1.9e6}]});
        let report = json!({
            "simulated_s": 80.0,
            "links": [{"name": "bottleneck", "drops": {"queue_full": 15}}],
            "flows": [{"rate": rate}],
            "instruments": [{"name": "trunk", "rows": [
                [1.0, 0, 0, 0, 2], [40.0, 0, 0, 0, 1], [41.0, 0, 0, 0, 4], [42.0, 0, 0, 0, 8]
            ]}],
        });
        let found = Break::of(&report, 0.5).unwrap();
        assert_eq!((found.before, found.during, found.late, found.recovery_s), (3.0, 12.0, 8.0, 6.0));
    }
}
