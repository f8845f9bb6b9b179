//! Fuzzes the gateway's whole data path with random conversations and hostile packets: a strict receiver
//! must accept everything that leaves.
//!
//! `cargo run --release --bin fuzz-gateway -- --seconds 60 [--seed N] [--cases N]`; a finding prints the
//! number of its case, and `... -- --reproduce N` runs that alone. Exit status 1 means a finding.
//!
//! Separate code (`oracle.rs`) segments and parses the output. Every unit that is not an unchanged input
//! must have correct checksums, lengths and options, bytes equal to those sent at their place in the
//! stream, and no acknowledgment that the receiver did not send. Without hostile packets, hosts by RFC 9293
//! (`host.rs`) also check that no right edge moves left, that no SACK block or reset appears that nobody
//! sent, and that each conversation completes with all its bytes, however bad the hop. After a normal stop
//! the gateway keeps nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a driver: it ends by the clock")]

mod case;
mod host;
#[path = "../../../../crates/wire/tests/wire/mutate.rs"]
mod mutate;
mod oracle;
mod packet;
mod stage;

use case::{Case, Tally};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The current case, for the panic hook: a release build aborts, so a panic cannot be caught.
static CURRENT: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let text = args.iter().position(|a| a == name).and_then(|i| args.get(i + 1))?;
        text.parse::<u64>().ok()
    };
    std::panic::set_hook(Box::new(|info| {
        let number = CURRENT.load(Ordering::Relaxed);
        eprintln!("fuzz-gateway: PANIC {info}\nfuzz-gateway: reproduce with --reproduce {number}");
    }));
    if let Some(number) = value("--reproduce") {
        return match one(number, true) {
            Ok(tally) => {
                println!("fuzz-gateway: no finding, {tally:?}");
                ExitCode::SUCCESS
            }
            Err(finding) => report(number, &finding),
        };
    }
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |d| d.as_secs());
    let limit = Duration::from_secs(value("--seconds").unwrap_or(60));
    run(limit, value("--cases").unwrap_or(u64::MAX), value("--seed").unwrap_or_else(now))
}

fn one(number: u64, tells: bool) -> Result<Tally, String> {
    CURRENT.store(number, Ordering::Relaxed);
    Case::new(number, tells)?.run()
}

fn report(number: u64, finding: &str) -> ExitCode {
    eprintln!("fuzz-gateway: FINDING {finding}\nfuzz-gateway: reproduce with --reproduce {number}");
    ExitCode::FAILURE
}

fn run(limit: Duration, most: u64, seed: u64) -> ExitCode {
    println!("fuzz-gateway: seed {seed}");
    let start = Instant::now();
    let mut all = Tally::default();
    let mut cases = 0;
    while cases < most && start.elapsed() < limit {
        let number = seed.wrapping_mul(1_000_000).wrapping_add(cases);
        cases += 1;
        match one(number, false) {
            Ok(tally) => {
                all.units += tally.units;
                all.mutated += tally.mutated;
                all.finished += tally.finished;
                all.edited = (all.edited.0 + tally.edited.0, all.edited.1 + tally.edited.1);
            }
            Err(finding) => return report(number, &finding),
        }
    }
    let Tally { units, mutated, edited, finished } = all;
    println!(
        "fuzz-gateway: {cases} cases, {units} units in, {mutated} disturbances, {} packets edited, {finished} conversations to their end, 0 findings",
        edited.1
    );
    ExitCode::SUCCESS
}
