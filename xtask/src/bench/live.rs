//! A live link under load: throughput compared with the kernel's forwarding, and lateness of packets.

use super::Bench;
use crate::Outcome;
use crate::item::{Item, Verdict};
use lab::passage::{Forwarding, RouterTestbed};
use lab::scenario::OneLink;
use lab::speed::{Load, Loaded, Timing, load};
use lab::stats::median;
use lab::{Rig, Who, rig};

/// Runs of each; the median counts.
const RUNS: usize = 3;
/// Duration of each run, s.
const SECONDS: u32 = 5;
/// Required goodput of one unlimited connection, bit/s.
const LEAST_BPS: f64 = 5e9;

/// A loaded link, and its limits for the lateness of packets.
struct Case {
    name: &'static str,
    link: OneLink<'static>,
    load: Load,
    /// 99th percentile with and without real-time priority, us.
    limits_us: [f64; 2],
    seconds: u32,
}

const CASES: [Case; 2] = [
    Case {
        name: "100 Mbit/s, RTT 550 ms, saturated",
        link: OneLink { rate: "100 Mbit/s", delay: "275 ms", buffer: "6875 kB", ..OneLink::CLEAN },
        load: Load::Datagrams(105e6),
        limits_us: [100.0, 500.0],
        seconds: 15,
    },
    Case {
        name: "1 Gbit/s, RTT 20 ms, 8 flows",
        link: OneLink { rate: "1 Gbit/s", delay: "10 ms", buffer: "2500 kB", ..OneLink::CLEAN },
        load: Load::Tcp(8),
        limits_us: [2000.0, 2000.0],
        seconds: 10,
    },
];

const UNLIMITED: OneLink<'static> =
    OneLink { rate: "100 Gbit/s", delay: "0 s", buffer: "100 MB", ..OneLink::CLEAN };

/// One item per requirement.
pub(crate) fn items() -> Outcome<Vec<Item>> {
    let bench = Bench::new()?;
    println!();
    let missing = ["iperf3", "ip", "nsenter"].into_iter().find(|p| !rig::has(p));
    if let Some(program) = missing {
        println!("SKIPPED live: {program} is not installed");
        let why = format!("{program} is not installed");
        return Ok(vec![Item::new("a live link under load", why, Verdict::Skipped)]);
    }
    let mut items = throughput(&bench)?;
    println!();
    println!(
        "{:<36} {:<22} {:>12} {:>9} {:>9} {:>9} {:>9}",
        "lateness", "who", "goodput", "packets", "p50", "p99", "max"
    );
    for case in &CASES {
        for who in [Who::CurrentUser, Who::Unprivileged] {
            items.push(lateness(&bench, case, who)?);
        }
    }
    Ok(items)
}

fn throughput(bench: &Bench) -> Outcome<Vec<Item>> {
    let place = Rig::new(&bench.bentpipe, Who::CurrentUser)?;
    let routed = || RouterTestbed::new(Rig::new(&bench.bentpipe, Who::CurrentUser)?);
    let routed = rig::is_root().then(routed).transpose()?;
    let scenario = place.file("unlimited.toml", &UNLIMITED.toml())?;
    println!("{:<36} {:>14} {:>14} {:>7}", "no limit, no delay: goodput", "kernel", "bentpipe", "ratio");
    let mut items = Vec::new();
    for streams in [1, 8] {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            if let Some(routed) = &routed {
                theirs.push(routed.goodput(Forwarding::Kernel, streams, SECONDS)?);
            }
            ours.push(load(&place, &[&scenario], Load::Tcp(streams), SECONDS)?.goodput_bps);
        }
        let (theirs, ours) = (median(&theirs), median(&ours));
        let beside = if theirs.is_nan() { "not as an ordinary user".to_owned() } else { gigabits(theirs) };
        let name = format!("{streams} TCP streams");
        println!("{name:<36} {beside:>14} {:>14} {:>7.2}", gigabits(ours), ours / theirs);
        if streams == 1 {
            items.push(at_least(ours, theirs));
        }
    }
    Ok(items)
}

fn gigabits(bps: f64) -> String {
    format!("{:.2} Gbit/s", bps / 1e9)
}

fn at_least(ours: f64, theirs: f64) -> Item {
    let what = format!("no limit, no delay, one stream: at least {} Gbit/s", LEAST_BPS / 1e9);
    let figure = format!("{}, kernel forwarding {}", gigabits(ours), gigabits(theirs));
    Item::new(what, figure, ours >= LEAST_BPS)
}

fn lateness(bench: &Bench, case: &Case, who: Who) -> Outcome<Item> {
    let place = Rig::new(&bench.bentpipe, who)?;
    let has_priority = !place.is_unprivileged();
    let name = if has_priority { "root, real time" } else { "ordinary user" };
    let limit = case.limits_us[usize::from(!has_priority)];
    let scenario = place.file("loaded.toml", &case.link.toml())?;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let run = load(&place, &[&scenario], case.load, case.seconds)?;
        let Timing { packets, p50_us, p99_us, max_us, .. } = run.timing;
        let goodput = gigabits(run.goodput_bps);
        println!(
            "{:<36} {name:<22} {goodput:>12} {packets:>9} {p50_us:>6.0} us {p99_us:>6.0} us {max_us:>6.0} us",
            case.name
        );
        runs.push(run);
    }
    Ok(verdict(&format!("{}, {name}", case.name), limit, &runs))
}

fn verdict(what: &str, limit_us: f64, runs: &[Loaded]) -> Item {
    let of = |figure: fn(&Loaded) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
    let p99 = of(|r| r.timing.p99_us);
    let figure =
        format!("p50 {:.0}, p99 {p99:.0}, max {:.0} us", of(|r| r.timing.p50_us), of(|r| r.timing.max_us));
    Item::new(format!("{what}: p99 at most {limit_us} us"), figure, p99 <= limit_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_run_decides() {
        let run = |p99_us| Loaded { goodput_bps: 1e9, timing: Timing { p99_us, ..Timing::default() } };
        assert_eq!(verdict("x", 100.0, &[run(90.0), run(500.0), run(99.0)]).verdict, Verdict::Pass);
        assert_eq!(verdict("x", 100.0, &[run(90.0), run(500.0), run(101.0)]).verdict, Verdict::Miss);
        assert_eq!(verdict("x", 100.0, &[run(f64::NAN)]).verdict, Verdict::Miss);
        assert_eq!(at_least(4.9e9, f64::NAN).verdict, Verdict::Miss);
    }
}
