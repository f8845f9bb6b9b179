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

#![expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]

mod case;
mod host;
#[path = "../../../../crates/wire/tests/wire/mutate.rs"]
mod mutate;
mod oracle;
mod packet;
mod stage;

use case::{Case, Tally};
use fuzz::Fuzzer;
use std::process::ExitCode;

fn main() -> ExitCode {
    let fuzzer = Fuzzer {
        name: "fuzz-gateway",
        of_a_seed: 1_000_000,
        batch: 1,
        case: |number, tells| Case::new(number, tells)?.run(),
        add,
        summary,
    };
    fuzzer.main()
}

const fn add(all: &mut Tally, one: Tally) {
    all.units += one.units;
    all.mutated += one.mutated;
    all.finished += one.finished;
    all.edited = (all.edited.0 + one.edited.0, all.edited.1 + one.edited.1);
}

fn summary(cases: u64, _: f64, Tally { units, mutated, edited, finished }: &Tally) -> String {
    format!(
        "{cases} cases, {units} units in, {mutated} disturbances, {} packets edited, {finished} conversations to their end",
        edited.1
    )
}
