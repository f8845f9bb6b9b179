//! Checks that nothing is left behind and that a long run does not degrade.

use crate::Outcome;
use crate::accept::list::List;
use crate::accept::setup::Setup;
use lab::cycles::{Cycles, killed, regular};
use lab::{Who, rig, soak};

/// Starts and stops: in full, and short.
const CYCLES: (u32, u32) = (10_000, 200);
/// Number of sessions killed.
const KILLS: u32 = 50;
/// Duration of the long run, s: in full, and short.
const SOAK_S: (u32, u32) = (3600, 120);
/// Memory growth that counts as none, kB.
const FLAT_KB: i64 = 512;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let short = setup.short();
    for (who, name) in [(Who::Ourselves, "root"), (Who::Ordinary, "ordinary user")] {
        let n = if who == Who::Ordinary { CYCLES.1 } else { setup.pick(CYCLES.0, CYCLES.1) };
        let leaks = setup.rig(who).and_then(|rig| regular(&rig, n));
        list.judge(format!("{n} starts and stops leave nothing, {name}{short}"), leaks, |c| figure(&c));
        let uplink = who == Who::Ourselves && rig::is_root();
        let leaks = setup.rig(who).and_then(|rig| killed(&rig, KILLS, 4, uplink));
        let with = if uplink { ", every second with an uplink" } else { "" };
        let what = format!("{KILLS} times killed, then doctor --clean, {name}{with}");
        list.judge(what, leaks, |c| figure(&c));
    }
    let seconds = setup.pick(SOAK_S.0, SOAK_S.1);
    let what = format!("50 Mbit/s, loss 1e-2, {seconds} s: order, causes, memory{short}");
    let run = soak::run(&setup.rig(Who::Ourselves)?, seconds, 4);
    list.judge(what, run, |s| {
        let (tally, drops, growth) = (s.tally, s.timing.port_drops, s.growth_kb());
        let figure = format!(
            "{} sent, {} lost, {} out of order, {} without a cause, {drops} beside the link, {growth:+} kB",
            tally.sent,
            tally.lost,
            tally.out_of_order,
            s.unexplained(),
        );
        let is_clean = tally.out_of_order == 0 && s.unexplained() == 0 && drops == 0;
        (figure, is_clean && growth <= FLAT_KB && tally.lost > 0)
    });
    Ok(())
}

fn figure(cycles: &Cycles) -> (String, bool) {
    let each_ms = cycles.seconds * 1e3 / f64::from(cycles.n.max(1));
    let first = cycles.leaks.first().map(|l| format!(": {l}")).unwrap_or_default();
    (format!("{} differences{first}, {each_ms:.0} ms each", cycles.leaks.len()), cycles.leaks.is_empty())
}
