//! How far the runs of a sweep, a search or figures are, and how long the others will take.
//!
//! The estimate is from the time that finished runs took: a run takes as long as the mean of its cell, or as
//! the mean over the known cells if none of its own is finished. For this the first run of every cell is made
//! before all others.

use core::time::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Progress, as told after every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Finished runs, with those kept from before.
    pub done: usize,
    /// Runs known so far.
    pub of: usize,
    /// Runs among the finished ones that were made, and not kept from before.
    pub made: usize,
    /// Cells without an unfinished run.
    pub cells_done: usize,
    /// Cells that have a run that was made or will be.
    pub cells: usize,
    /// Cells among them of which a run has been made.
    pub cells_known: usize,
    /// Number of threads.
    pub threads: usize,
    /// True if more runs may follow those known.
    pub more: bool,
    /// Time that the unfinished runs will take on all threads together; `None` before a run was made.
    pub left: Option<Duration>,
    /// Live runs, which come after all others; `left` is the time that they take.
    pub live: Option<LiveProgress>,
}

/// Progress of runs with real packets. They are made one after the other, in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveProgress {
    /// Finished runs.
    pub done: usize,
    /// All runs.
    pub of: usize,
}

/// What is told of the progress of runs.
pub type Tell<'a> = &'a (dyn Fn(&Progress) + Sync);

/// Runs of a cell.
#[derive(Clone, Copy, Default)]
struct CellRuns {
    unfinished: usize,
    made: usize,
    /// Time that the runs made took together, s.
    spent: f64,
}

/// Runs of all cells, and sums over them, since there may be as many cells as runs.
#[derive(Default)]
struct Cells {
    of: BTreeMap<usize, CellRuns>,
    done: usize,
    /// Cells of which a run has been made.
    known: usize,
    /// Sum of their mean times, s.
    means: f64,
    /// Time of their unfinished runs, s.
    work: f64,
    /// Unfinished runs of the others.
    unknown: usize,
}

#[derive(Default)]
struct State {
    told: Progress,
    cells: Cells,
}

/// Counts runs, and tells of each.
pub(crate) struct Tracker<'a> {
    tell: Tell<'a>,
    state: Mutex<State>,
}

impl<'a> Tracker<'a> {
    /// `more` says if runs may follow those that are announced.
    pub(crate) fn new(threads: usize, more: bool, tell: Tell<'a>) -> Self {
        let told = Progress { threads, more, ..Progress::default() };
        Self { tell, state: Mutex::new(State { told, ..State::default() }) }
    }

    /// Announces runs: those kept from before, and the cells of those to be made.
    pub(crate) fn announce(&self, kept: usize, missing: impl Iterator<Item = usize>) {
        self.change(|state| {
            state.told.done += kept;
            state.told.of += kept;
            for cell in missing {
                state.told.of += 1;
                state.cells.change(cell, |cell| cell.unfinished += 1);
            }
        });
    }

    /// Makes a run of `cell` that was announced, and counts it. `made` says of its result if it was made; if
    /// not, it was kept from before.
    pub(crate) fn run<T, E>(
        &self,
        cell: usize,
        run: impl FnOnce() -> Result<T, E>,
        made: impl FnOnce(&T) -> bool,
    ) -> Result<T, E> {
        let start = now();
        let result = run()?;
        let (spent, made) = (now().saturating_sub(start), made(&result));
        self.change(|state| {
            state.told.done += 1;
            state.told.made += usize::from(made);
            state.cells.change(cell, |cell| {
                cell.unfinished -= 1;
                if made {
                    cell.made += 1;
                    cell.spent += spent.as_secs_f64();
                }
            });
        });
        Ok(result)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        // told while it is locked, so that no later state is told before an earlier one
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let State { told, cells } = &mut *state;
        (told.cells, told.cells_done, told.cells_known) = (cells.of.len(), cells.done, cells.known);
        told.left = cells.left(told.of - told.done, told.threads);
        (self.tell)(told);
    }
}

impl CellRuns {
    /// Mean time of a run, s.
    fn mean(&self) -> Option<f64> {
        (self.made > 0).then(|| self.spent / self.made as f64)
    }
}

impl Cells {
    /// Changes the runs of a cell.
    fn change(&mut self, cell: usize, change: impl FnOnce(&mut CellRuns)) {
        let runs = self.of.entry(cell).or_default();
        let before = *runs;
        change(runs);
        let after = *runs;
        // a new cell was in no sum
        if before.unfinished + before.made > 0 {
            self.add(&before, false);
        }
        self.add(&after, true);
    }

    /// Adds a cell to the sums, or removes it.
    fn add(&mut self, cell: &CellRuns, adds: bool) {
        let count = |sum: &mut usize, n: usize| if adds { *sum += n } else { *sum -= n };
        let sign = if adds { 1.0 } else { -1.0 };
        count(&mut self.done, usize::from(cell.unfinished == 0));
        match cell.mean() {
            Some(mean) => {
                count(&mut self.known, 1);
                self.means += sign * mean;
                self.work += sign * mean * cell.unfinished as f64;
            }
            None => count(&mut self.unknown, cell.unfinished),
        }
    }

    /// Time until `unfinished` runs are finished: they are shared by the threads, but one run is not.
    fn left(&self, unfinished: usize, threads: usize) -> Option<Duration> {
        if self.known == 0 {
            return None;
        }
        let usual = self.means / self.known as f64;
        let mut left = (self.work + usual * self.unknown as f64) / threads.max(1) as f64;
        if unfinished <= threads {
            let open = self.of.values().filter(|c| c.unfinished > 0);
            left = open.map(|c| c.mean().unwrap_or(usual)).fold(0.0, f64::max);
        }
        // sums of differences may end below zero
        Some(Duration::from_secs_f64(left.max(0.0)))
    }
}

fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_as_long_as_others_of_its_cell() {
        // unfinished runs, runs made, their time in seconds
        let of = |cells: [(usize, usize, f64); 3], threads| {
            let mut all = Cells::default();
            for (n, (unfinished, made, spent)) in cells.into_iter().enumerate() {
                all.change(n, |cell| cell.unfinished = unfinished + made);
                for _ in 0..made {
                    all.change(n, |cell| {
                        *cell = CellRuns {
                            unfinished: cell.unfinished - 1,
                            made: cell.made + 1,
                            spent: cell.spent + spent / made as f64,
                        };
                    });
                }
            }
            let unfinished = cells.iter().map(|cell| cell.0).sum();
            all.left(unfinished, threads).map(|left| left.as_secs_f64().round())
        };
        assert_eq!(of([(5, 0, 0.0), (5, 0, 0.0), (5, 0, 0.0)], 1), None, "nothing is known");
        // cells that take 2 s and 10 s; the third is taken for 6 s
        assert_eq!(of([(4, 1, 2.0), (3, 2, 20.0), (5, 0, 0.0)], 1), Some(8.0 + 30.0 + 30.0));
        assert_eq!(of([(4, 1, 2.0), (3, 2, 20.0), (5, 0, 0.0)], 2), Some(34.0));
        // two threads do not share a run
        assert_eq!(of([(0, 1, 2.0), (1, 1, 10.0), (0, 1, 3.0)], 2), Some(10.0));
        assert_eq!(of([(0, 1, 2.0), (0, 1, 10.0), (0, 1, 10.0)], 2), Some(0.0));
    }

    #[test]
    fn runs_and_cells_are_counted() {
        let told = Mutex::new(Vec::new());
        let tell = |progress: &Progress| told.lock().unwrap().push(*progress);
        let tracker = Tracker::new(3, true, &tell);
        tracker.announce(2, [7, 7, 9].into_iter());
        let run = |cell, made: bool| tracker.run(cell, || Ok::<_, ()>(made), |made| *made).unwrap();
        run(7, true);
        run(9, false);
        run(7, true);
        assert!(tracker.run(9, || Err::<(), _>(()), |()| true).is_err());
        let told = told.into_inner().unwrap();
        let counts = |p: &Progress| (p.done, p.of, p.made, p.cells_done, p.cells, p.cells_known);
        let wanted = [(2, 5, 0, 0, 2, 0), (3, 5, 1, 0, 2, 1), (4, 5, 1, 1, 2, 1), (5, 5, 2, 2, 2, 1)];
        assert_eq!(told.iter().map(counts).collect::<Vec<_>>(), wanted, "a run that failed is not told");
        assert!(told.iter().all(|p| p.threads == 3 && p.more));
        assert!(told[0].left.is_none() && told[1].left.is_some());
    }
}
