//! Cost of the gateway compared with kernel forwarding and with a loop that only copies packets.

use super::lag;
use crate::accept::list::List;
use crate::accept::setup::{Setup, run_cargo};
use crate::item::{Item, Verdict};
use crate::{Outcome, metadata};
use lab::passage::{Carrier, Kind, Passage};
use lab::stats::{median, quantile};
use lab::{Rig, Who};
use std::time::Duration;

/// Rounds, and seconds of each run: in full, and short.
const ROUNDS: ((u32, u32), (u32, u32)) = ((7, 10), (5, 3));
/// Throughput of PEPsal, a user-space proxy, over that of kernel forwarding; and the required multiple.
const PEPSAL: f64 = 0.31;
const TIMES_PEPSAL: f64 = 1.5;
/// Required share of the throughput of a loop that only copies packets.
const OF_BARE: f64 = 0.92;
/// Connections, and the required share of kernel forwarding for passed and for accelerated ones.
const SHARES: [(u32, f64, f64); 2] = [(1, 0.60, 0.50), (8, 0.80, 0.70)];
/// Probes in a run, the load during it, and rounds if time is short.
const PROBES: u32 = 2000;
const LOAD_BPS: u64 = 1_000_000_000;
const LAG_ROUNDS: u32 = 3;
/// Required fairness with very many connections.
const FAIR: f64 = 0.95;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let passage = Passage::new(setup.rig(Who::Ourselves)?)?;
    let kinds = [(Kind::Routed, "routed"), (Kind::Inline, "inline")];
    for (kind, name) in kinds {
        for asked in SHARES {
            throughput(setup, list, &passage, (kind, name), asked);
        }
    }
    for (kind, name) in kinds {
        let one_way = added(setup, kind, &[0.5, 0.99], |c| lag::one_way(&passage, c, PROBES, LOAD_BPS));
        let what = format!("added at 1 Gbit/s, {name}: p50 at most 60 us, p99 at most 300 us");
        list.judge(what, one_way, |[passing, fast]| {
            let met = [&passing, &fast].iter().all(|us| us[0] <= 60.0 && us[1] <= 300.0);
            let [p, a] = [passing, fast];
            (
                format!(
                    "passing p50 {:.0} p99 {:.0} us, accelerated {:.0} and {:.0}",
                    p[0], p[1], a[0], a[1]
                ),
                met,
            )
        });
        let echoes = added(setup, kind, &[0.5], |c| lag::echoes(&passage, c, PROBES, 1000));
        list.judge(format!("echoes of 1 KB, {name}: less than 150 us more"), echoes, |[passing, fast]| {
            let figure = format!("median passing {:+.0} us, accelerated {:+.0} us", passing[0], fast[0]);
            (figure, passing[0] < 150.0 && fast[0] < 150.0)
        });
    }
    idle(list);
    let what = "10 000 connections, 1 Gbit/s, RTT 550 ms, 60 s, simulated: Jain's index";
    list.judge(what, many(&setup.rig(Who::Ourselves)?), |(jain, bps)| {
        (format!("{jain:.4}, {:.0} Mbit/s", bps / 1e6), jain >= FAIR)
    });
    Ok(())
}

/// Figures of carriers, measured alternately so that changes of the machine affect all.
struct Rounds(Vec<(Carrier, Vec<Vec<f64>>)>);

impl Rounds {
    fn measure(
        carriers: &[Carrier],
        rounds: u32,
        measure: impl Fn(Carrier) -> Outcome<Vec<f64>>,
    ) -> Outcome<Self> {
        let mut all: Vec<_> = carriers.iter().map(|c| (*c, Vec::new())).collect();
        for _ in 0..rounds {
            for (carrier, figures) in &mut all {
                figures.push(measure(*carrier)?);
            }
        }
        Ok(Self(all))
    }

    /// The median over the rounds of `of`, applied to figure `i` of two carriers.
    fn compare(&self, one: Carrier, other: Carrier, i: usize, of: fn(f64, f64) -> f64) -> f64 {
        let figures = |carrier| self.0.iter().find(|(c, _)| *c == carrier).map_or(&[][..], |(_, f)| f);
        median(&figures(one).iter().zip(figures(other)).map(|(a, b)| of(a[i], b[i])).collect::<Vec<_>>())
    }
}

/// Delay added to the kernel's by passing and by accelerating, at these quantiles.
fn added(
    setup: &Setup,
    kind: Kind,
    shares: &[f64],
    times: impl Fn(Carrier) -> Outcome<Vec<f64>>,
) -> Outcome<[Vec<f64>; 2]> {
    let ways = [Carrier::Passing(kind), Carrier::Accelerated(kind)];
    let carriers = [Carrier::Kernel, ways[0], ways[1]];
    let rounds = Rounds::measure(&carriers, setup.pick(ROUNDS.0.0, LAG_ROUNDS), |carrier| {
        let times = times(carrier)?;
        Ok(shares.iter().map(|share| quantile(&times, *share)).collect())
    })?;
    let more = |way, i| rounds.compare(way, Carrier::Kernel, i, |a, b| a - b);
    Ok(ways.map(|way| (0..shares.len()).map(|i| more(way, i)).collect()))
}

fn throughput(
    setup: &Setup,
    list: &mut List,
    passage: &Passage,
    (kind, name): (Kind, &str),
    (streams, of_passing, of_accelerated): (u32, f64, f64),
) {
    let (kernel, bare) = (Carrier::Kernel, Carrier::Bare(kind));
    let (passing, fast) = (Carrier::Passing(kind), Carrier::Accelerated(kind));
    let (times, seconds) = setup.pick(ROUNDS.0, ROUNDS.1);
    let goodput = |carrier| Ok(vec![passage.goodput(carrier, streams, seconds)?]);
    let rounds = Rounds::measure(&[kernel, bare, passing, fast], times, goodput);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let proxy = PEPSAL * TIMES_PEPSAL;
    for (what, one, other, least) in [
        (format!("passing: at least {} of the kernel", percent(of_passing)), passing, kernel, of_passing),
        (format!("passing: at least {} of a bare loop", percent(OF_BARE)), passing, bare, OF_BARE),
        (
            format!("accelerated: at least {} of the kernel", percent(of_accelerated)),
            fast,
            kernel,
            of_accelerated,
        ),
        (format!("accelerated: never below {:.1} %", proxy * 100.0), fast, kernel, proxy),
        ("a bare loop, for comparison".to_owned(), bare, kernel, 0.0),
    ] {
        let shares = lab::with(&rounds, |r| {
            let gbps = |carrier| r.compare(carrier, carrier, 0, |a, _| a) / 1e9;
            Ok((r.compare(one, other, 0, |a, b| a / b), gbps(one), gbps(other)))
        });
        list.judge(format!("{what}, {name}, {streams} streams{}", setup.short()), shares, |(share, a, b)| {
            (format!("{:.1} %: {a:.2} of {b:.2} Gbit/s", share * 100.0), share >= least)
        });
    }
}

/// Memory of a million idle connections, by the test of their table.
fn idle(list: &mut List) {
    let test = ["test", "--package", "bentpipe-gateway", "--test", "table_memory", "--", "--nocapture"];
    let (text, ok) = run_cargo(&test, &[]);
    // the figure may follow the test's name
    let figure = text.lines().find_map(|line| Some(line.split_once("per connection: ")?.1));
    let verdict = Verdict::of(ok && figure.is_some());
    let what = "at most 768 B per idle connection, 1 000 000 of them";
    list.item(&Item::new(what, figure.unwrap_or("no test ran"), verdict));
}

/// Jain's index of very many connections, and their total goodput, bit/s.
fn many(rig: &Rig) -> Outcome<(f64, f64)> {
    let scenario = metadata::root().join("bench/gateway-many.toml").display().to_string();
    let text = rig.output(&["sim", &scenario, "--json"], Duration::from_secs(600))?;
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("{scenario}: {e}"))?;
    let total = |name: &str| report["total"][name].as_f64().ok_or_else(|| format!("no {name} in the report"));
    Ok((total("jain")?, total("goodput_bps")?))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rounds_are_compared_round_by_round() {
        let passing = Carrier::Passing(Kind::Routed);
        // the machine gets slower from round to round
        let all = |figures: [f64; 3]| figures.map(|f| vec![f]).to_vec();
        let rounds = Rounds(vec![(Carrier::Kernel, all([10.0, 5.0, 1.0])), (passing, all([6.0, 3.5, 0.5]))]);
        assert!((rounds.compare(passing, Carrier::Kernel, 0, |a, b| a / b) - 0.6).abs() < 1e-12);
        assert!((rounds.compare(passing, passing, 0, |a, _| a) - 3.5).abs() < 1e-12);
        assert!(rounds.compare(Carrier::Bare(Kind::Inline), Carrier::Kernel, 0, |a, _| a).is_nan());
    }
}
