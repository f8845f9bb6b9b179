//! The run of a fuzzer whose cases are numbers: command line, clock, findings.
//!
//! `--seconds 60 [--seed N] [--cases N]`; a finding prints the number of its case, and `--reproduce N` runs
//! that alone. Exit status 1 means a finding.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a driver: it ends by the clock")]

use core::fmt::Debug;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The current case, for the panic hook: a release build aborts, so a panic cannot be caught.
static CURRENT: AtomicU64 = AtomicU64::new(0);

/// A fuzzer.
#[derive(Clone, Copy, Debug)]
pub struct Fuzzer<T> {
    /// Its name in every line that it prints.
    pub name: &'static str,
    /// Cases of one seed: case n of seed s has the number s times this, plus n.
    pub of_a_seed: u64,
    /// Cases between two looks at the clock.
    pub batch: u64,
    /// Runs a case; with `true` it tells what happens. Returns a count, or the finding.
    pub case: fn(u64, bool) -> Result<T, String>,
    /// Adds a count to the sum.
    pub add: fn(&mut T, T),
    /// What the last line says: number of cases, seconds, sum.
    pub summary: fn(u64, f64, &T) -> String,
}

impl<T: Default + Debug> Fuzzer<T> {
    /// Runs it as the command line says.
    pub fn main(&self) -> ExitCode {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let value = |name: &str| {
            let text = args.iter().position(|a| a == name).and_then(|i| args.get(i + 1))?;
            text.parse::<u64>().ok()
        };
        let name = self.name;
        std::panic::set_hook(Box::new(move |info| {
            let number = CURRENT.load(Ordering::Relaxed);
            eprintln!("{name}: PANIC {info}\n{name}: reproduce with --reproduce {number}");
        }));
        if let Some(number) = value("--reproduce") {
            return match self.one(number, true) {
                Ok(count) => {
                    println!("{name}: no finding, {count:?}");
                    ExitCode::SUCCESS
                }
                Err(finding) => self.report(number, &finding),
            };
        }
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |d| d.as_secs());
        let limit = Duration::from_secs(value("--seconds").unwrap_or(60));
        self.run(limit, value("--cases").unwrap_or(u64::MAX), value("--seed").unwrap_or_else(now))
    }

    fn run(&self, limit: Duration, most: u64, seed: u64) -> ExitCode {
        let name = self.name;
        println!("{name}: seed {seed}");
        let (start, mut sum, mut cases) = (Instant::now(), T::default(), 0);
        while cases < most && (cases % self.batch != 0 || start.elapsed() < limit) {
            let number = seed.wrapping_mul(self.of_a_seed).wrapping_add(cases);
            cases += 1;
            match self.one(number, false) {
                Ok(count) => (self.add)(&mut sum, count),
                Err(finding) => return self.report(number, &finding),
            }
        }
        let summary = (self.summary)(cases, start.elapsed().as_secs_f64().max(1e-9), &sum);
        println!("{name}: {summary}, 0 findings");
        ExitCode::SUCCESS
    }

    fn one(&self, number: u64, tells: bool) -> Result<T, String> {
        CURRENT.store(number, Ordering::Relaxed);
        (self.case)(number, tells)
    }

    fn report(&self, number: u64, finding: &str) -> ExitCode {
        let name = self.name;
        eprintln!("{name}: FINDING {finding}\n{name}: reproduce with --reproduce {number}");
        ExitCode::FAILURE
    }
}
