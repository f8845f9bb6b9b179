//! The deterministic part of `make validate`, run by every `make test`.

use bentpipe_validate::{Verdict, fast, judge, page};

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
