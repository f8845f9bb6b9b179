//! Pages beside transfers.

use super::simulator::{Simulator, named};
use super::{SECONDS, SEEDS, TIMES};
use crate::accept::list::{Bound, List, Outcome, Setup};
use lab::stats::median;

/// What `rate-web` sets: page and link in bits, round trip in s, and users of the link.
const PAGE: f64 = 800e3;
const RATE: f64 = 10e6;
const RTT_S: f64 = 0.08;
const USERS: f64 = 6.0;
/// A full packet relative to its payload.
const PACKET: f64 = 1500.0 / 1448.0;
/// Longest page time, in times of a fair share.
const MOST: f64 = 1.2;

pub(super) fn web(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    let page = |sets: &[(&str, &str)], quantile: &str| -> Outcome<f64> {
        let time = |seed: u64| {
            let report = sim.run("rate-web", sets, seed)?;
            let time = &named(&report, "flows", "web")?["requests"]["response_ms"][quantile];
            time.as_f64().map(|ms| ms / 1000.0).ok_or_else(|| format!("no time of pages, seed {seed}"))
        };
        Ok(median(&(1..=SEEDS).map(time).collect::<Outcome<Vec<f64>>>()?))
    };
    let fair = RTT_S + PAGE * PACKET * USERS / RATE;
    for ip in ["4", "6"] {
        let what = format!("page of 100 kB beside 5 transfers, IPv{ip}, times of its fair share");
        list.figure(&what, page(&[("ip", ip)], "p50").map(|s| s / fair), Bound::Most(MOST), TIMES);
    }
    for tcp in ["cubic", "newreno"] {
        let sets = [("encoding", "off"), ("tcp", tcp)];
        let what = format!("the same, {tcp} without signalling, fair is {fair:.3} s: median");
        list.figure(&what, page(&sets, "p50"), Bound::Nothing, SECONDS);
        list.figure("the same, 99 % of pages", page(&sets, "p99"), Bound::Nothing, SECONDS);
    }
    Ok(())
}
