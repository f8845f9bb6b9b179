//! The gateway in an independent test bed (`crates/field`): another emulator, kernel hosts, captures
//! matched packet by packet. `docs/src/field.md` describes bed and metrics. Without `--long` it runs fewer
//! seeds.

mod beside;
mod disturbed;
mod modern;
mod old;
mod ratios;
mod readers;
mod run;

use super::Part;
use super::list::List;
use super::setup::Setup;
use super::tests::Tests;
use crate::Outcome;
use run::Bed;

pub(super) const PARTS: [Part; 11] = [
    ("modern", |setup, list| modern::check(&Bed::build(setup)?, list)),
    ("start", |setup, list| modern::start(&Bed::build(setup)?, list)),
    ("old", |setup, list| old::check(&Bed::build(setup)?, list)),
    ("readers", |setup, list| readers::check(&Bed::build(setup)?, list)),
    ("disturbed", |setup, list| disturbed::check(&Bed::build(setup)?, list)),
    ("matrix", |setup, list| ratios::matrix(&Bed::build(setup)?, list)),
    ("transfers", |setup, list| ratios::transfers(&Bed::build(setup)?, list)),
    ("mixed", |setup, list| beside::check(&Bed::build(setup)?, list)),
    ("senders", |setup, list| ratios::senders(&Bed::build(setup)?, list)),
    ("untouched", |setup, list| readers::untouched(&Bed::build(setup)?, list)),
    ("tests", tests),
];

/// Tests of the test bed itself.
fn tests(_: &Setup, list: &mut List) -> Outcome {
    let run = Tests::of(&["--package", "bentpipe-field"], &[])?;
    let count = run.count(|t| t.program.starts_with("bentpipe_field"));
    list.tests("what measures is itself tested", count, 25);
    Ok(())
}
