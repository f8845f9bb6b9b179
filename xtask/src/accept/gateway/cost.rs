//! What it costs (6).

use crate::accept::List;
use crate::accept::place::{Place, judge};
use crate::accept::spine::cargo;
use crate::item::{Item, Verdict};
use crate::metadata;
use lab::lag::{self, Lags};
use lab::passage::{Carrier, Kind, Passage};
use lab::shares::Rounds;
use lab::stats::median;
use lab::{Outcome, Who};
use std::time::Duration;

/// Rounds, and seconds of each run: as the issue asks, and shorter.
const ROUNDS: ((u32, u32), (u32, u32)) = ((7, 10), (5, 3));
/// What a user-space proxy that is widely used reaches, as a share of the kernel's forwarding, and how many times as much it must be.
const PEPSAL: f64 = 0.31;
const TIMES_PEPSAL: f64 = 1.5;
/// Of a loop that only copies.
const OF_BARE: f64 = 0.92;
/// Connections, and the share of the kernel's forwarding that is asked of those that pass and those that are accelerated.
const SHARES: [(u32, f64, f64); 2] = [(1, 0.60, 0.50), (8, 0.80, 0.70)];

const MANY: &str = "10 000 connections, 1 Gbit/s, RTT 550 ms, 60 s, simulated: Jain's index";
const FAIR: f64 = 0.95;
/// Probes of a run, what flows beside them, and rounds when time is short.
const PROBES: u32 = 2000;
const LOAD_BPS: u64 = 1_000_000_000;
const LAG_ROUNDS: u32 = 3;

pub(super) fn check(place: &Place, list: &mut List) {
    let passage = place.rig(Who::Ourselves).and_then(Passage::new);
    for kind in [Kind::Routed, Kind::Inline] {
        for asked in SHARES {
            throughput(place, list, &passage, kind, asked);
        }
    }
    for kind in [Kind::Routed, Kind::Inline] {
        latency(place, list, &passage, kind);
        echoes(place, list, &passage, kind);
    }
    list.line(6, &idle());
    list.line(
        6,
        &judge(MANY, many(place), |(jain, bps)| {
            (format!("{jain:.4}, {:.0} Mbit/s", bps / 1e6), jain >= FAIR)
        }),
    );
}

/// What the kernel's way and the gateway's take longer than each other, by turns: medians of the differences of these quantiles.
fn added(
    place: &Place,
    kind: Kind,
    shares: &[f64],
    lags: impl Fn(Carrier) -> Outcome<Lags>,
) -> Outcome<Vec<[f64; 2]>> {
    let rounds = if place.long { ROUNDS.0.0 } else { LAG_ROUNDS };
    let mut all: Vec<[Vec<f64>; 2]> = shares.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    for _ in 0..rounds {
        let plain = lags(Carrier::Kernel)?;
        for (i, carrier) in [Carrier::Passing(kind), Carrier::Accelerated(kind)].into_iter().enumerate() {
            let lags = lags(carrier)?;
            for (all, share) in all.iter_mut().zip(shares) {
                all[i].push(lags.quantile(*share) - plain.quantile(*share));
            }
        }
    }
    Ok(all.iter().map(|both| both.each_ref().map(|figures| median(figures))).collect())
}

fn latency(place: &Place, list: &mut List, passage: &Outcome<Passage>, kind: Kind) {
    let measured = passage.as_ref().map_err(Clone::clone).and_then(|passage| {
        added(place, kind, &[0.5, 0.99], |carrier| lag::one_way(passage, carrier, PROBES, Some(LOAD_BPS)))
    });
    let what = format!("added at 1 Gbit/s, {}: p50 at most 60 us, p99 at most 300 us", name(kind));
    list.line(
        6,
        &judge(&what, measured, |us| {
            let figure = format!(
                "passing p50 {:.0} p99 {:.0} us, accelerated {:.0} and {:.0}",
                us[0][0], us[1][0], us[0][1], us[1][1]
            );
            (figure, us[0].iter().all(|us| *us <= 60.0) && us[1].iter().all(|us| *us <= 300.0))
        }),
    );
}

fn echoes(place: &Place, list: &mut List, passage: &Outcome<Passage>, kind: Kind) {
    let measured = passage.as_ref().map_err(Clone::clone).and_then(|passage| {
        added(place, kind, &[0.5], |carrier| lag::echoes(passage, carrier, PROBES, 1000))
    });
    list.line(
        6,
        &judge(&format!("echoes of 1 KB, {}: less than 150 us more", name(kind)), measured, |us| {
            let figure = format!("median passing {:+.0} us, accelerated {:+.0} us", us[0][0], us[0][1]);
            (figure, us[0].iter().all(|us| *us < 150.0))
        }),
    );
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Routed => "routed",
        Kind::Inline => "inline",
    }
}

/// A million connections that sleep, by the test of their table.
fn idle() -> Item {
    let test = ["test", "--package", "bentpipe-gateway", "--test", "table_memory", "--", "--nocapture"];
    let (text, ok) = cargo(&test);
    // it may stand behind the test's name
    let figure = text.lines().find_map(|line| Some(line.split_once("per connection: ")?.1));
    let verdict = Verdict::of(ok && figure.is_some());
    Item::new(
        "at most 768 B per idle connection, 1 000 000 of them",
        figure.unwrap_or("no test ran"),
        verdict,
    )
}

/// Jain's index of very many connections, and their goodput together in bit/s.
fn many(place: &Place) -> Outcome<(f64, f64)> {
    let scenario = metadata::root().join("bench/gateway-many.toml").display().to_string();
    let text = place.rig(Who::Ourselves)?.output(&["sim", &scenario, "--json"], Duration::from_secs(600))?;
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("{scenario}: {e}"))?;
    let total = |name: &str| report["total"][name].as_f64().ok_or_else(|| format!("no {name} in the report"));
    Ok((total("jain")?, total("goodput_bps")?))
}

fn throughput(
    place: &Place,
    list: &mut List,
    passage: &Outcome<Passage>,
    kind: Kind,
    asked: (u32, f64, f64),
) {
    let (streams, of_passing, of_accelerated) = asked;
    let (bare, passing, fast) = (Carrier::Bare(kind), Carrier::Passing(kind), Carrier::Accelerated(kind));
    let (times, short) = if place.long { (ROUNDS.0, "") } else { (ROUNDS.1, " (short)") };
    let rounds = passage.as_ref().map_err(Clone::clone).and_then(|passage| {
        let carriers = [Carrier::Kernel, bare, passing, fast];
        Rounds::measure(passage, &carriers, streams, times, |_, _| ())
    });
    let name = name(kind);
    let mut line = |what: String, one: Carrier, other: Carrier, least: f64| {
        list.line(
            6,
            &judge(
                &format!("{what}, {name}, {streams} streams{short}"),
                rounds.as_ref().map_err(Clone::clone),
                |r| {
                    let share = r.share(one, other);
                    let figure = format!(
                        "{:.1} %: {:.2} of {:.2} Gbit/s",
                        share * 100.0,
                        r.bps(one) / 1e9,
                        r.bps(other) / 1e9
                    );
                    (figure, share >= least)
                },
            ),
        );
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    line(
        format!("passing: at least {} of the kernel", percent(of_passing)),
        passing,
        Carrier::Kernel,
        of_passing,
    );
    line(format!("passing: at least {} of a bare loop", percent(OF_BARE)), passing, bare, OF_BARE);
    line(
        format!("accelerated: at least {} of the kernel", percent(of_accelerated)),
        fast,
        Carrier::Kernel,
        of_accelerated,
    );
    let least = PEPSAL * TIMES_PEPSAL;
    line(format!("accelerated: never below {:.1} %", least * 100.0), fast, Carrier::Kernel, least);
    line("a bare loop, for comparison".to_owned(), bare, Carrier::Kernel, 0.0);
}
