//! The checks of `make validate` that take seconds, run by every `make test`.

use bentpipe_validate::{Check, Verdict, all, figures, judge, page};

/// The tables that take too long for an ordinary test, by the beginning of their titles. Figures say it themselves.
const SLOW: [&str; 11] = [
    "Segment error rate over bit error rate",
    "Fade and bit error rate",
    "More than one loss in a window",
    "Rate of new payload under a grant, long round trips",
    "The same 8 MiB with other schemes",
    "Fallbacks at a loss of 9 %",
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
    let mut tables = page::tables(&judge(&fast()).unwrap());
    let folder = std::env::temp_dir().join(format!("bentpipe-agreement-{}", std::process::id()));
    let mut quick = page::figures().unwrap();
    quick.retain(figures::Figure::is_quick);
    tables.extend(figures::tables(&quick, &folder).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
    let rows = || tables.iter().flat_map(|t| &t.rows);
    assert!(rows().filter(|row| row.verdict == Verdict::Agrees).count() > 150);
    let mut missed = tables.clone();
    missed.iter_mut().for_each(|t| t.rows.retain(|row| row.verdict == Verdict::Misses));
    missed.retain(|t| !t.rows.is_empty());
    assert!(missed.is_empty(), "{}\n{}", page::summary(&tables), page::terminal(&missed));
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
