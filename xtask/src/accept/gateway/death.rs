//! The gateway is killed, restarted, or stopped normally.

use super::hops::{FULL_BPS, RTT_S};
use super::routed::Routed;
use super::transfer::{GatewayEvent, Trial, TrialResult, run};
use crate::accept::list::{List, Outcome, Setup};
use lab::join;
use lab::scenario::OneLink;
use lab::stats::median;
use lab::streams::TransferRecord;
use std::fmt::Write as _;
use std::path::Path;
use std::thread;

/// Rate of the long transfers: table 2 of TCP-SuperCharger.
const RATE: &str = "24 Mbit/s";
const LONG: u64 = 60_000_000;
/// When the gateway is killed or stopped, s: the link has been full for some seconds.
const AT: f64 = 15.0;
/// Queue of the hop: one BDP.
const BUFFER: &str = "3 MB";
/// Short transfers: their number, size, common rate, and when the gateway is killed, s.
const SHORT: (u32, u64, &str, f64) = (500, 1_000_000, "100 Mbit/s", 12.0);
/// An interval of 200 ms with less than this share of the median before it counts as a dip.
const DIP: f64 = 0.5;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let bentpipe = setup.bentpipe()?;
    short(bentpipe, list);
    for loss in [0.0, 1e-4] {
        for fate in [GatewayEvent::Killed, GatewayEvent::Restarted] {
            for (family, outcome) in both(bentpipe, (loss, BUFFER), fate) {
                long(list, family, loss, fate, outcome);
            }
        }
    }
    // after the stop only cwnd limits the sender, to two BDP: a queue that holds this much, and one of a BDP
    for buffer in ["12 MB", BUFFER] {
        for (family, outcome) in both(bentpipe, (0.0, buffer), GatewayEvent::Stopped) {
            stopped(list, family, buffer, outcome);
        }
    }
    Ok(())
}

/// Runs over IPv4 and IPv6 concurrently, each on its own hop.
fn both(
    bentpipe: &Path,
    (loss, buffer): (f64, &str),
    fate: GatewayEvent,
) -> [(&'static str, Outcome<TrialResult>); 2] {
    let one = |v6: bool| {
        let seed = 5 + u64::from(v6);
        let link = OneLink { rate: RATE, delay: "500 ms", buffer, loss, seed, ..OneLink::CLEAN };
        let trial = Trial { rate: RATE, transfers: 1, bytes: LONG, v6, event: fate, at: AT };
        run(&Routed::new(bentpipe, &link)?, &trial)
    };
    thread::scope(|scope| {
        let families = [("IPv4", false), ("IPv6", true)];
        let threads = families.map(|(name, v6)| (name, scope.spawn(move || one(v6))));
        threads.map(|(name, thread)| (name, join(thread)))
    })
}

fn long(list: &mut List, family: &str, loss: f64, fate: GatewayEvent, outcome: Outcome<TrialResult>) {
    let loss = if loss > 0.0 { format!("loss {loss:e}") } else { "no loss".to_owned() };
    let done =
        if fate == GatewayEvent::Restarted { "killed, run again, accelerated again" } else { "killed" };
    let what = format!("60 MB at 24 Mbit/s, 1000 ms, {family}, {loss}: {done}; intact");
    list.judge(what, outcome, |o| {
        let course = &o.transfers[0];
        let TransferRecord { bytes, seconds, .. } = course;
        let (damage, before) = (course.damage(), course.goodput(AT - 2.0, AT) / 1e6);
        let mut figure = format!("{bytes} bytes{damage}, {seconds:.1} s, {before:.2} Mbit/s before");
        let mut met = course.intact && o.ended_before == 0;
        if let Some(back) = o.restarted_at {
            let full = course.reaches(0.9 * FULL_BPS, back);
            let after = full.map_or("never 90 % of full again".to_owned(), |s| {
                format!("90 % of full {s:.1} s after the new start")
            });
            let _ = write!(
                figure,
                ", {} accelerated again with {} kB shown, {after}",
                o.accelerated_again,
                o.largest_window / 1000
            );
            // more than a window without scaling
            met &= o.accelerated_again == 1 && o.largest_window > 65_535 && full.is_some();
        } else {
            let _ = write!(figure, ", {:.2} after", course.goodput(AT, course.seconds) / 1e6);
        }
        (figure, met)
    });
}

fn stopped(list: &mut List, family: &str, buffer: &str, outcome: Outcome<TrialResult>) {
    let what = format!(
        "24 Mbit/s, 1000 ms, queue {buffer}, {family}: planned stop, no 200 ms of the next 5 RTT below half the median before; intact"
    );
    list.judge(what, outcome, |o| {
        let course = &o.transfers[0];
        let poorest = course.lowest_share(AT, AT + 5.0 * RTT_S, 2.0);
        let mbps = |from, to| course.goodput(from, to) / 1e6;
        let (before, after) = (mbps(AT - 2.0, AT), mbps(AT, AT + 5.0));
        let figure = format!(
            "poorest {poorest:.2} of it, {before:.2} Mbit/s before, {after:.2} in the 5 s after, {:.1} s in all{}",
            course.seconds,
            course.damage()
        );
        (figure, course.intact && o.ended_before == 0 && poorest >= DIP)
    });
}

/// Many short transfers; a run without a gateway gives the time limit.
fn short(bentpipe: &Path, list: &mut List) {
    let (transfers, bytes, rate, at) = SHORT;
    let one = |v6: bool, fate: GatewayEvent| {
        let link = OneLink { rate, delay: "275 ms", buffer: "7 MB", seed: 5, ..OneLink::CLEAN };
        run(&Routed::new(bentpipe, &link)?, &Trial { rate, transfers, bytes, v6, event: fate, at })
    };
    let times = |o: &TrialResult| {
        let all: Vec<f64> = o.transfers.iter().map(|c| c.seconds).collect();
        (median(&all), all.iter().copied().fold(0.0, f64::max))
    };
    for (family, v6) in [("IPv4", false), ("IPv6", true)] {
        let usual = one(v6, GatewayEvent::Absent).map(|o| times(&o));
        for fate in [GatewayEvent::Killed, GatewayEvent::Restarted] {
            let again = fate == GatewayEvent::Restarted;
            let done = if again { "killed and run again" } else { "killed" };
            let what = format!(
                "500 transfers of 1 MB, 100 Mbit/s, 550 ms, {family}: {done}; intact, none over 10 times the median without"
            );
            let outcome = usual.clone().and_then(|usual| Ok((usual, one(v6, fate)?)));
            list.judge(what, outcome, |((median, slowest), o)| {
                let intact = o.transfers.iter().filter(|c| c.intact).count();
                let (now, worst) = times(&o);
                let ended = o.ended_before;
                let mut figure = format!(
                    "{intact} intact, median {now:.1} s, slowest {worst:.1}; without {median:.1} and {slowest:.1}; {ended} had ended before"
                );
                if again {
                    let _ = write!(figure, ", {} accelerated again", o.accelerated_again);
                }
                let met = intact == transfers as usize && worst <= 10.0 * median && ended < transfers * 9 / 10;
                (figure, met && (!again || o.accelerated_again > 0))
            });
        }
    }
}
