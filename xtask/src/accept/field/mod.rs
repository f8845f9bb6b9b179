//! The gateway in an independent test bed (`crates/field`): another emulator, kernel hosts, captures
//! matched packet by packet. `docs/src/field.md` describes bed and metrics. Without `--long` it runs fewer
//! seeds.

mod beside;
mod disturbed;
mod lossy;
mod ratios;
mod readers;
mod run;

use super::Part;
use super::list::{List, Outcome, Setup, Tests};
use run::TestBed;

pub(super) const PARTS: [Part; 11] = [
    ("modern", |setup, list| lossy::modern(&TestBed::build(setup)?, list)),
    ("start", |setup, list| lossy::start(&TestBed::build(setup)?, list)),
    ("old", |setup, list| lossy::old(&TestBed::build(setup)?, list)),
    ("readers", |setup, list| readers::check(&TestBed::build(setup)?, list)),
    ("disturbed", |setup, list| disturbed::check(&TestBed::build(setup)?, list)),
    ("matrix", |setup, list| ratios::matrix(&TestBed::build(setup)?, list)),
    ("transfers", |setup, list| ratios::transfers(&TestBed::build(setup)?, list)),
    ("mixed", |setup, list| beside::check(&TestBed::build(setup)?, list)),
    ("senders", |setup, list| ratios::senders(&TestBed::build(setup)?, list)),
    ("untouched", |setup, list| readers::untouched(&TestBed::build(setup)?, list)),
    ("tests", tests),
];

fn tests(_: &Setup, list: &mut List) -> Outcome {
    let run = Tests::of("--package bentpipe-field", &[])?;
    let count = run.count(|t| t.program.starts_with("bentpipe_field"));
    list.tests("what measures is itself tested", count, 25);
    Ok(())
}
