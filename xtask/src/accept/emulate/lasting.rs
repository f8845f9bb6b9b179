//! Nothing is left behind, and a long run stays as it began.

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::cycles::{Cycles, killed, regular};
use lab::{Who, soak};

/// Starts and stops that the issue asks for, and fewer.
const CYCLES: (u32, u32) = (10_000, 200);
/// Sessions that are killed.
const KILLS: u32 = 50;
/// Length of the long run that the issue asks for, and shorter, seconds.
const SOAK_S: (u32, u32) = (3600, 120);
/// Growth of memory that is none, kB.
const FLAT_KB: i64 = 512;

pub(super) fn check(place: &Place, list: &mut List) {
    let (cycles, short) = if place.long { (CYCLES.0, "") } else { (CYCLES.1, " (short)") };
    for who in [Who::Ourselves, Who::Ordinary] {
        let name = if who == Who::Ordinary { "ordinary user" } else { "root" };
        let n = if who == Who::Ordinary { CYCLES.1 } else { cycles };
        let leaks = place.rig(who).and_then(|rig| regular(&rig, n));
        list.line(
            5,
            &judge(&format!("{n} starts and stops leave nothing, {name}{short}"), leaks, |c| figure(&c)),
        );
        let uplink = who == Who::Ourselves && lab::rig::is_root();
        let leaks = place.rig(who).and_then(|rig| killed(&rig, KILLS, 4, uplink));
        let with = if uplink { ", every second with an uplink" } else { "" };
        list.line(
            5,
            &judge(&format!("{KILLS} times killed, then doctor --clean, {name}{with}"), leaks, |c| {
                figure(&c)
            }),
        );
    }
    let (seconds, short) =
        if place.long { (SOAK_S.0, String::new()) } else { (SOAK_S.1, format!(" (short: {} s)", SOAK_S.1)) };
    let what = format!("50 Mbit/s, loss 1e-2, {seconds} s: order, causes, memory{short}");
    let run = place.rig(Who::Ourselves).and_then(|rig| soak::run(&rig, seconds, 4));
    list.line(
        6,
        &judge(&what, run, |s| {
            let figure = format!(
                "{} sent, {} lost, {} out of order, {} without a cause, {} beside the link, {:+} kB",
                s.tally.sent,
                s.tally.lost,
                s.tally.out_of_order,
                s.unexplained(),
                s.timing.port_drops,
                s.growth_kb()
            );
            let met = s.tally.out_of_order == 0
                && s.unexplained() == 0
                && s.timing.port_drops == 0
                && s.growth_kb() <= FLAT_KB
                && s.tally.lost > 0;
            (figure, met)
        }),
    );
}

fn figure(cycles: &Cycles) -> (String, bool) {
    let each_ms = cycles.seconds * 1e3 / f64::from(cycles.n.max(1));
    let first = cycles.leaks.first().map(|l| format!(": {l}")).unwrap_or_default();
    (format!("{} differences{first}, {each_ms:.0} ms each", cycles.leaks.len()), cycles.leaks.is_empty())
}
