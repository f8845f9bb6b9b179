//! Compares bentpipe with other simulators, published measurements and closed-form formulas.
//!
//! What other simulators and papers say is data: figure files in `validation/` and `papers/`, made by
//! `bentpipe_sweep` ([`figures`]). A [`Check`] is a number that a figure file cannot have: one from a
//! formula, or read off the events of a run. [`judge`] runs and judges checks. [`page`] writes the results of
//! both. They depend only on files of the repository, not on the machine or the number of threads.

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
mod sources;
pub mod table;

pub use check::{Check, CheckResult, Verdict, judge, judge_results, run_jobs};

/// All checks in code.
pub fn all() -> Vec<Check> {
    sources::all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Part;
    use crate::reading::Reading;
    use bentpipe_report::Metric;
    use bentpipe_sim::report::names;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_check_has_a_name_of_its_own_and_its_table_is_on_the_page() {
        let on_page: Vec<_> = page::parts()
            .filter_map(|p| if let Part::Checks(title) = p { Some(title) } else { None })
            .collect();
        let mut names = Vec::new();
        for check in all() {
            assert_eq!(on_page.iter().filter(|t| **t == check.table.title).count(), 1, "{check:?}");
            assert_eq!(check.labels.len(), check.table.columns.len(), "{check:?}");
            names.push(check.name());
        }
        let tables: BTreeSet<_> = all().iter().map(|c| c.table.title).collect();
        assert_eq!(tables.len(), on_page.len());
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

    #[test]
    fn every_figure_file_is_on_the_page_once_and_fits_its_scenario() {
        let path = |part| if let Part::Figure(path) = part { Some(path) } else { None };
        let mut on_page: Vec<String> = page::parts().filter_map(path).map(str::to_owned).collect();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation");
        let name = |f: fs::DirEntry| format!("validation/{}", f.file_name().to_string_lossy());
        let mut files: Vec<String> = fs::read_dir(folder).unwrap().map(|f| name(f.unwrap())).collect();
        on_page.retain(|path| path.starts_with("validation/"));
        on_page.sort();
        files.sort();
        assert_eq!(on_page, files);
        let figures = page::figures().unwrap();
        let titles: BTreeSet<&str> = figures.iter().map(figures::Figure::title).collect();
        assert_eq!(titles.len(), figures.len());
        for figure in &figures {
            figure.check().unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
