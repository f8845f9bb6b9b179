//! A sweep in batches, for programs that spread runs by means of their own: which runs a folder lacks, and
//! the making of some of them. [`crate::sweep`] then finds them there, and writes the tables.

use crate::error::{Error, file_error};
use crate::manifest::is_of_another_version;
use crate::plan::{Job, LastCell, Plan, cell_at};
use crate::store::{Course, Store};
use crate::threads;
use bentpipe_sim::run_while;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

/// A run: number of its cell, and its seed.
pub type RunOfCell = (usize, u64);

/// Returns a word that is equal for versions whose runs may be mixed.
pub fn semantics() -> String {
    crate::key::semantics()
}

/// Returns the runs of `job` that `out` lacks, the first one of every cell before all others. With a
/// precision these may not be the last: call it again when they are made, until there are none.
///
/// # Errors
/// The first error in the input, a file that cannot be read or written, or a folder with the sweep of a
/// version that has other results.
pub fn missing(job: &Job<'_>, out: &Path) -> Result<Vec<RunOfCell>, Error> {
    check_version(out)?;
    let mut plan = Plan::new(job)?;
    let pool = threads(job.threads)?;
    pool.install(|| plan.compute_keys(job))?;
    let store = Store::open(out)?;
    loop {
        let lacks = |run: &&crate::plan::Run| store.read(&run.key).is_none();
        let mut runs: Vec<_> = pool.install(|| plan.runs.par_iter().filter(lacks).collect());
        // axis values may be equal in different notation: one run serves both
        let mut seen = BTreeSet::new();
        runs.retain(|run| seen.insert(run.key.as_str()));
        runs.sort_by_key(|run| run.seed != plan.base);
        let runs: Vec<RunOfCell> = runs.into_iter().map(|run| (run.cell, run.seed)).collect();
        if !runs.is_empty() || !plan.extend(&store)? {
            return Ok(runs);
        }
        pool.install(|| plan.compute_keys(job))?;
    }
}

fn check_version(out: &Path) -> Result<(), Error> {
    let path = out.join("sweep.json");
    match std::fs::read_to_string(&path) {
        Ok(text) if is_of_another_version(&text) => Err(Error::Input(format!(
            "{} was made by another version of bentpipe, whose results cannot be mixed with this one's\n\
             help: use another folder, or the version that made it",
            path.display()
        ))),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(file_error(&path)(error)),
        _ => Ok(()),
    }
}

/// Makes those of `runs` that `out` lacks, one after the other, and keeps them there. Returns how many it
/// made. Ends early when `go_on`, which is called at times, returns false; runs that are finished are
/// kept.
///
/// # Errors
/// The first error in the input, or a file that cannot be read or written.
pub fn make(
    job: &Job<'_>,
    out: &Path,
    runs: &[RunOfCell],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<usize, Error> {
    let store = Store::open(out)?;
    let (mut made, last) = (0, LastCell::default());
    for &(cell, seed) in runs {
        let load = || job.load(&cell_at(&job.spec.axes, cell), Some(seed));
        let (scenario, key) = last.run(cell, seed, load)?;
        if store.read(&key).is_some() {
            continue;
        }
        let Some((report, _)) = run_while(&scenario, None, go_on) else { break };
        store.write(&key, report, &Course::new())?;
        made += 1;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::{Files, Source, SweepSpec};
    use std::fs;

    const SCENARIO: &str = include_str!("../../../scenarios/sharing.toml");

    struct NoFiles;

    impl Files for NoFiles {
        fn read(&self, path: &str) -> Result<String, String> {
            Err(path.to_owned())
        }
    }

    fn with_job<T>(f: impl FnOnce(&Job<'_>) -> T) -> T {
        let source = Source::new("s.toml", SCENARIO);
        let mut spec = SweepSpec { seeds: 2, ..SweepSpec::default() };
        // the second value is the first one in other words
        spec.set_axis("loss", ["1e-2", "0.01", "0.1"].map(str::to_owned).to_vec());
        let sets =
            [("duration", "2 s"), ("flows", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        f(&Job {
            source: &source,
            files: &NoFiles,
            sets: sets.to_vec(),
            seed: None,
            spec,
            shard: None,
            threads: 1,
        })
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("bentpipe-batch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn batches_in_any_order_make_the_runs_of_the_sweep() {
        let (whole, parts) = (folder("whole"), folder("parts"));
        with_job(|job| {
            crate::sweep(job, &whole, crate::Formats::default(), &|_| ()).unwrap();
            let all = missing(job, &parts).unwrap();
            assert_eq!(
                all,
                [(0, 1), (2, 1), (0, 2), (2, 2)],
                "the first of every cell first, and none twice"
            );
            for batch in [&all[2..], &all[..3]] {
                make(job, &parts, batch, &mut || true).unwrap();
            }
            assert!(missing(job, &parts).unwrap().is_empty());
            let done = crate::sweep(job, &parts, crate::Formats::default(), &|_| ()).unwrap();
            assert_eq!((done.runs.executed, done.runs.already_stored), (0, 4));
            let cells = done.cells().unwrap();
            assert_eq!(cells.axes[0].1, ["0.01", "0.01", "0.1"]);
            assert_eq!(
                (cells.metrics[0].name.as_str(), &cells.metrics[0].n[..]),
                ("goodput_bps", &[2, 2, 2][..])
            );
        });
        for name in ["runs.csv", "cells.csv", "sweep.json", "report.html"] {
            assert!(fs::read(whole.join(name)).unwrap() == fs::read(parts.join(name)).unwrap(), "{name}");
        }
        for path in [whole, parts] {
            fs::remove_dir_all(path).unwrap();
        }
    }

    #[test]
    fn a_batch_that_is_told_to_stop_keeps_what_is_finished() {
        let out = folder("stopped");
        with_job(|job| {
            let all = missing(job, &out).unwrap();
            // a run of 2 s asks twenty times
            let mut left = 25;
            let mut go_on = || {
                left -= 1;
                left > 0
            };
            assert_eq!(make(job, &out, &all, &mut go_on).unwrap(), 1);
            assert_eq!(missing(job, &out).unwrap(), all[1..]);
            assert_eq!(make(job, &out, &all, &mut || true).unwrap(), 3);
        });
        fs::remove_dir_all(out).unwrap();
    }

    #[test]
    fn a_folder_of_another_version_is_refused() {
        let out = folder("old");
        with_job(|job| {
            crate::sweep(job, &out, crate::Formats::default(), &|_| ()).unwrap();
            let manifest = fs::read_to_string(out.join("sweep.json")).unwrap();
            fs::write(out.join("sweep.json"), manifest.replace(&semantics(), "1-0")).unwrap();
            assert!(missing(job, &out).unwrap_err().to_string().contains("another version of bentpipe"));
        });
        fs::remove_dir_all(out).unwrap();
    }
}
