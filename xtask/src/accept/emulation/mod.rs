//! Real programs over a live link, measured from outside by programs that do not know bentpipe.

mod agreement;
mod kernel;
mod lasting;
mod truth;
mod users;
mod winds;

use super::Part;
use super::list::{List, style};
use super::setup::{Setup, run_cargo};
use crate::item::{Item, Verdict};
use crate::{Outcome, bench};

pub(super) const PARTS: [Part; 10] = [
    ("truth", truth::check),
    ("speed", |_, list| bench::live::items().map(|items| items.iter().for_each(|item| list.item(item)))),
    ("agreement", agreement::check),
    ("applications", agreement::applications),
    ("kernel", kernel::check),
    ("users", users::check),
    ("lasting", lasting::check),
    ("engine", engine),
    ("tests", tests),
    ("style", style),
];

/// The engine against the kernel's TCP: in a release build the tests transfer 20 MB each way.
fn engine(_: &Setup, list: &mut List) -> Outcome {
    let test = [
        "test",
        "--release",
        "--package",
        "bentpipe-live",
        "--test",
        "endpoint_kernel",
        "--",
        "--show-output",
    ];
    let (text, ok) = run_cargo(&test, &[]);
    let skipped = text.lines().find(|l| l.starts_with("SKIPPED "));
    // use the last result: the program also runs itself as an ordinary user, which prints its own result
    let mut results = text.lines().filter_map(|l| l.strip_prefix("test result: "));
    let figure = skipped.or(results.next_back()).unwrap_or("no test ran");
    let what = "the engine against the kernel's TCP, 20 MB each way";
    list.item(&Item::new(what, figure, Verdict::of(ok && skipped.is_none())));
    Ok(())
}

fn tests(setup: &Setup, list: &mut List) -> Outcome {
    let run = setup.tests()?;
    let endpoint = run.count(|t| t.program.starts_with("endpoint"));
    list.tests("the engine as a real endpoint, tests", endpoint, 4);
    let offload = run.count(|t| t.name.contains("checksum") || t.name.contains("offload"));
    list.tests("checksums in all combinations, tests", offload, 4);
    list.all_tests("all tests", run, 1);
    Ok(())
}
