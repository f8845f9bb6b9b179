//! Compares bentpipe with other simulators, published measurements and closed-form formulas.
//!
//! A [`Check`] is one number: the runs that produce it, its expected value, and the tolerance. [`sources`]
//! make the checks, one section of the page each; [`judge`] runs and judges them. [`page`] and [`figures`]
//! write the results. The results depend only on the scenario files of the repository, not on the machine
//! or the number of threads.

pub mod check;
mod fade;
pub mod figures;
mod format;
pub mod job;
pub mod observed;
pub mod page;
mod prelude;
pub mod quantity;
pub mod reading;
pub mod reference;
pub mod sources;

pub use check::{Check, CheckResult, Verdict, judge, judge_results, run_jobs};
pub use sources::Section;

/// All checks, in the order of the page.
pub fn all() -> Vec<Check> {
    sources::SECTIONS.iter().flat_map(|section| section.all()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Reading;
    use bentpipe_report::Metric;
    use bentpipe_sim::report::names;

    #[test]
    fn every_check_stands_in_one_table_of_its_section_under_a_name_of_its_own() {
        let mut names = Vec::new();
        for section in sources::SECTIONS {
            for check in section.all() {
                assert_eq!(section.tables.iter().filter(|g| **g == check.table).count(), 1, "{check:?}");
                assert_eq!(check.labels.len(), check.table.columns.len(), "{check:?}");
                names.push(format!("{}: {:?}", check.table.title, check.labels));
            }
        }
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn every_job_reads_and_has_what_is_read_off_it() {
        for check in all() {
            assert!(!check.jobs.is_empty(), "{check:?}");
            for job in &check.jobs {
                let scenario = job.scenario().unwrap_or_else(|e| panic!("{check:?}: {e}"));
                if let Some(Reading::Metric(text)) = check.quantity.reading() {
                    Metric::parse(text).and_then(|m| m.check(&names(&scenario))).unwrap();
                }
            }
        }
    }
}
