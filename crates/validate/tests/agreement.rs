//! The checks of `make validate` that take seconds, run by every `make test`.

use bentpipe_validate::{Check, Verdict, all, judge, page};

/// The tables that take too long for an ordinary test, by the beginning of their titles.
const SLOW: [&str; 28] = [
    "Bit errors",
    "Random loss",
    "Long and short round trips",
    "K1 to K4",
    "K5",
    "K6",
    "K7",
    "K8",
    "More than one loss in a window",
    "Larger segments and bit errors",
    "Reno, SACK and Vegas under loss",
    "Order of Vegas, SACK and Reno",
    "Goodput over an asymmetric link",
    "Goodput over that of a symmetric link",
    "ACKs that wait for the return",
    "Rate of new payload under a grant, long round trips",
    "The same 8 MiB with other schemes",
    "Fallbacks at a loss of 9 %",
    "One of several connections over a single one, random loss",
    "One of several connections over a single one, congestion",
    "Inverse-square-root law",
    "Ceiling of retransmission",
    "Share of packets lost",
    "Share of packets with bit errors",
    "Random arrivals: M/D/1",
    "Gilbert-Elliott: mean loss",
    "Gilbert-Elliott: packets lost in a row",
    "Rain: share of time above an attenuation",
];

fn fast() -> Vec<Check> {
    let all = all();
    for slow in SLOW {
        assert!(all.iter().any(|c| c.table.title.starts_with(slow)), "there is no table `{slow}`");
    }
    all.into_iter().filter(|c| !SLOW.iter().any(|slow| c.table.title.starts_with(slow))).collect()
}

#[test]
fn deterministic_cells_agree_with_ns2_and_formulas() {
    let judged = judge(&fast()).unwrap();
    assert!(judged.len() > 40, "{}", judged.len());
    let misses: Vec<_> = judged.iter().filter(|j| j.verdict == Verdict::Misses).cloned().collect();
    assert!(misses.is_empty(), "{}\n{}", page::summary(&judged), page::terminal(&misses));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut checks = fast();
    checks.truncate(6);
    let in_pool = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| judge(&checks).unwrap())
    };
    assert_eq!(in_pool(1), in_pool(4));
}
