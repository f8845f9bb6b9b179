//! Many connections on one bottleneck: cases A and B of `data/reference.csv`.

use super::{FEWEST_RUNS, seconds};
use crate::prelude::*;
use crate::reference::Row;

/// Number of runs of the fairness test with jitter.
const FAIRNESS_RUNS: u32 = 20;

pub(crate) static JITTER: CheckTable = CheckTable {
    title: "Random loss, with sender jitter",
    columns: &["TCP", "loss"],
    expected: "ns-2",
    intro: "Twenty connections share 10 Mbit/s and 550 ms, 500 s, in `scenarios/sharing.toml`; the sum of their \
        goodputs. Each opportunity to send is delayed by up to 0.9 ms, about one packet time, which removes phase effects. \
        Tolerance 6 %: what is left are differences in loss recovery.",
};

pub(crate) static SHARING: CheckTable = CheckTable {
    title: "Random loss, without jitter",
    columns: &["TCP", "loss"],
    expected: "ns-2",
    intro: "Without jitter, drop-tail queues lock on to the rhythm of some senders (phase effects) when losses \
        are rare, and the sums depend on nanoseconds: Reno, NewReno and SACK are judged (6 %) from a loss of 5e-3 only, \
        where the queue is mostly empty. Vegas keeps the queue short and is judged everywhere, within 6 %, and 10 % at a loss \
        of 1e-2 where its fine-grained timer decides.",
};

pub(crate) static CUBIC: CheckTable = CheckTable {
    title: "Random loss, CUBIC",
    columns: &["CUBIC", "loss"],
    expected: "ns-2, or Linux",
    intro: "The same with CUBIC. ns-2 has the CUBIC of the Linux of 2008: beta 0.8 and no HyStart. With these, \
        tolerance 6 % everywhere. With beta 0.7 (RFC 9438) and HyStart++, 4 % where the queue decides. At a \
        loss of 1e-2 ns-2 is no reference for them, and the kernel's own CUBIC is: Linux 6.18 over links that bentpipe \
        emulates, 20 runs on 2026-11-23, tolerance 6 %.",
};

pub(super) static FAIRNESS: CheckTable = CheckTable {
    title: "Long and short round trips on one bottleneck",
    columns: &["TCP", "loss", "jitter"],
    expected: "ns-2",
    intro: "Five connections X over a satellite (550 ms, with losses) and five Y over the ground (200 ms) meet at a \
        router of 10 Mbit/s and 50 packets, 500 s, in `scenarios/fairness.toml`: mean goodput of an X over that of a \
        Y. Tolerance 15 %: the ratio depends on how often either kind meets a full queue; 20 runs, since ten know it \
        to 4 % only. With rare losses it also hangs on one detail of NewReno, a timeout within fast recovery: with \
        ssthresh from FlightSize, still the window of before the loss, it is 0.29; from the window in force, \
        as in BSD and ns-2, 0.25. Without jitter the ratio is a phase effect (0.25 to 0.9 in ns-2, by nanoseconds) \
        and is reported only.",
};

pub(super) static SUMS: CheckTable = CheckTable {
    title: "Long and short round trips: sum of goodputs",
    columns: &["TCP", "loss", "jitter"],
    expected: "ns-2",
    intro: "What the ten get together in the same runs. The bottleneck is full all the time: reported, not judged.",
};

pub(super) fn sharing_job(row: &Row, tcp: &str) -> Job {
    let jitter = if row.case == "A-jitter" { "0.9 ms" } else { "0 ms" };
    let sets = [
        ("tcp", tcp),
        ("loss", row.loss),
        ("flows", row.flows),
        ("jitter", jitter),
        ("buffer", &format!("{} packets", row.buffer)),
        ("window", &format!("{} segments", row.window)),
        ("duration", &seconds(row)),
    ];
    Job::new("scenarios/sharing.toml", &sets)
}

pub(super) fn sharing(row: &Row) -> Check {
    let loss = number(row.loss);
    let jitter = row.case == "A-jitter";
    let tolerance = match row.variant {
        "vegas" if loss <= 1e-3 => Tolerance::Relative(0.06),
        "vegas" => Tolerance::Relative(0.10),
        _ if jitter || loss >= 5e-3 => Tolerance::Relative(0.06),
        _ => Tolerance::Unjudged,
    };
    let group = if jitter { &JITTER } else { &SHARING };
    Check::of(row, group, &[row.variant, row.loss], &sharing_job(row, row.variant), tolerance)
}

pub(super) fn cubic(row: &Row, rows: &[Row]) -> Vec<Check> {
    let job = sharing_job(row, "cubic");
    let old = job.clone().with(Change::OldCubic);
    let check = |of: &Row, label, job, tolerance| Check::of(of, &CUBIC, &[label, row.loss], job, tolerance);
    // where losses limit the rate, ns-2's beta of 0.8 is no reference for 0.7; the kernel's own CUBIC is
    let kernel = rows.iter().find(|r| r.sim.starts_with("linux") && r.is_same_experiment(row));
    let (of, tolerance) = kernel.map_or((row, 0.04), |kernel| (kernel, 0.06));
    vec![
        check(row, "beta 0.8, no HyStart", &old, Tolerance::Relative(0.06)),
        check(of, "beta 0.7, HyStart++", &job, Tolerance::Relative(tolerance)),
    ]
}

fn fairness_job(tcp_x: &str, tcp_y: &str, loss: &str, jitter: &str) -> Job {
    let sets = [("tcp_x", tcp_x), ("tcp_y", tcp_y), ("loss", loss), ("jitter", jitter)];
    Job::new("scenarios/fairness.toml", &sets)
}

const RATIO: Reading = Reading::FlowRatio("x", "y");

pub(super) fn fairness(row: &Row) -> Vec<Check> {
    let (x, y) = row.variant.split_once('+').unwrap_or((row.variant, row.variant));
    let jitter = "0.9 ms";
    let job = fairness_job(x, y, row.loss, jitter);
    let labels = [row.variant, row.loss, jitter];
    let expected = row.ratio.unwrap_or(f64::NAN);
    let mut ratio = Check::of(row, &FAIRNESS, &labels, &job, Tolerance::Relative(0.15));
    ratio = ratio.reading(RATIO, expected, None);
    ratio.expected.half_width = row.ratio_ci95;
    let mut sum = Check::of(row, &SUMS, &labels, &job, Tolerance::Unjudged);
    for check in [&mut ratio, &mut sum] {
        check.jobs = job.seeds(FAIRNESS_RUNS);
    }
    vec![ratio, sum]
}

/// Reported only: not measured with ns-2.
pub(super) fn fairness_without_jitter() -> Vec<Check> {
    let both = |loss: &str| {
        let check = |group, quantity| {
            let jobs = fairness_job("newreno", "newreno", loss, "0 ms").seeds(FEWEST_RUNS);
            Check::reported(group, &["newreno+newreno", loss, "none"], quantity, jobs)
        };
        [check(&FAIRNESS, Quantity::Mean(RATIO)), check(&SUMS, Quantity::GOODPUT)]
    };
    ["1e-6", "1e-2"].into_iter().flat_map(both).collect()
}
