//! Real programs over a live link, measured from outside by programs that do not know bentpipe.

mod agreement;
mod kernel;
mod truth;

use super::Part;
use super::list::{List, Outcome, Setup, run_cargo, style};
use crate::bench;
use lab::cycles::{StartStopResult, kill_sessions, start_and_stop};
use lab::speed::LossCount;
use lab::{Who, features, refused, rig, soak};

pub(super) const PARTS: [Part; 10] = [
    ("truth", truth::check),
    ("speed", |_, list| bench::live::items().map(|items| items.iter().for_each(|item| list.item(item)))),
    ("agreement", agreement::check),
    ("applications", agreement::applications),
    ("kernel", kernel::check),
    ("users", users),
    ("lasting", lasting),
    ("engine", engine),
    ("tests", tests),
    ("style", style),
];

/// Starts and stops: in full, and short.
const CYCLES: (u32, u32) = (10_000, 200);
/// Number of sessions killed.
const KILLS: u32 = 50;
/// Duration of the long run, s: in full, and short.
const SOAK_S: (u32, u32) = (3600, 120);
/// Memory growth that counts as none, kB.
const FLAT_KB: i64 = 512;

/// An ordinary user can do everything, and wrong input is refused.
fn users(setup: &Setup, list: &mut List) -> Outcome {
    for (what, outcome) in features::run_all(&setup.rig(Who::Unprivileged)?) {
        list.judge(format!("ordinary user: {what}"), outcome, |t| (t, true));
    }
    for (who, name) in [(Who::CurrentUser, "root"), (Who::Unprivileged, "ordinary user")] {
        for (what, outcome) in refused::all(&setup.rig(who)?)? {
            list.judge(format!("{name}: {what} is refused, nothing left"), outcome, |t| (t, true));
        }
    }
    Ok(())
}

/// Nothing is left behind, and a long run does not degrade.
fn lasting(setup: &Setup, list: &mut List) -> Outcome {
    let short = setup.short();
    for (who, name) in [(Who::CurrentUser, "root"), (Who::Unprivileged, "ordinary user")] {
        let n = if who == Who::Unprivileged { CYCLES.1 } else { setup.pick(CYCLES.0, CYCLES.1) };
        let leaks = setup.rig(who).and_then(|rig| start_and_stop(&rig, n));
        list.judge(format!("{n} starts and stops leave nothing, {name}{short}"), leaks, |c| cycles(&c));
        let uplink = who == Who::CurrentUser && rig::is_root();
        let leaks = setup.rig(who).and_then(|rig| kill_sessions(&rig, KILLS, 4, uplink));
        let with = if uplink { ", every second with an uplink" } else { "" };
        let what = format!("{KILLS} times killed, then doctor --clean, {name}{with}");
        list.judge(what, leaks, |c| cycles(&c));
    }
    let seconds = setup.pick(SOAK_S.0, SOAK_S.1);
    let what = format!("50 Mbit/s, loss 1e-2, {seconds} s: order, causes, memory{short}");
    let run = soak::run(&setup.rig(Who::CurrentUser)?, seconds, 4);
    list.judge(what, run, |s| {
        let (drops, growth, unexplained) = (s.timing.port_drops, s.growth_kb(), s.unexplained());
        let LossCount { sent, lost, out_of_order } = s.tally;
        let figure = format!(
            "{sent} sent, {lost} lost, {out_of_order} out of order, {unexplained} without a cause, {drops} beside the link, {growth:+} kB"
        );
        let is_clean = out_of_order == 0 && unexplained == 0 && drops == 0;
        (figure, is_clean && growth <= FLAT_KB && lost > 0)
    });
    Ok(())
}

fn cycles(cycles: &StartStopResult) -> (String, bool) {
    let StartStopResult { each_ms, leaks } = cycles;
    let first = leaks.first().map(|l| format!(": {l}")).unwrap_or_default();
    (format!("{} differences{first}, {each_ms:.0} ms each", leaks.len()), leaks.is_empty())
}

/// The engine against the kernel's TCP: in a release build the tests transfer 20 MB each way.
fn engine(_: &Setup, list: &mut List) -> Outcome {
    let test = "test --release --package bentpipe-live --test endpoint_kernel -- --show-output";
    let (text, ok) = run_cargo(&test.split(' ').collect::<Vec<_>>(), &[]);
    let skipped = text.lines().find(|l| l.starts_with("SKIPPED "));
    // use the last result: the program also runs itself as an ordinary user, which prints its own result
    let mut results = text.lines().filter_map(|l| l.strip_prefix("test result: "));
    let figure = skipped.or(results.next_back()).unwrap_or("no test ran");
    let what = "the engine against the kernel's TCP, 20 MB each way";
    list.line(what, figure, ok && skipped.is_none());
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
