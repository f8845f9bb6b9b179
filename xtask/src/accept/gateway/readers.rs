//! Receivers whose application reads slowly, pauses, or stops reading.

use super::hops::{BDP, FULL_BPS, Hop, IN_BDP, RTT_S, toml};
use super::runs::{Job, RunKind, RunResult, SeriesOf};
use super::stops::{self, ShortStops};
use crate::accept::list::{Bound, List, MBIT_S, Outcome, Setup, Unit};
use lab::{Rig, Who, join, with};

/// Duration of the run with scenario flows, s, and start of the measurement.
const SECONDS: u64 = 120;
const SETTLED_S: f64 = 60.0;
/// Steady readers: hop, key, Mbit/s.
const STEADY: [(&str, &str, f64); 2] =
    [("steady-1", "{ rate = \"1 Mbit/s\" }", 1.0), ("steady-8", "{ rate = \"8 Mbit/s\" }", 8.0)];
/// The pause of a reader, and its end, s.
const PAUSE: &str = "{ pause = { from = \"40 s\", to = \"50 s\" } }";
const REOPENED_S: f64 = 50.0;
/// The rate is full before and long after the pause, so equally much is in flight at both times.
const AROUND_S: (f64, f64) = (35.0, 100.0);
/// Time in which data in the receiver's buffer is read at the end of the pause, s.
const BUFFERED_S: f64 = 0.1;
/// Start of the measurement after the pause, s.
const RECOVERED_S: f64 = 60.0;
const STOP: &str = "{ stop_at = \"30 s\" }";
/// Packet of an old receiver on the hop, and its payload, bytes.
const PACKET: (f64, f64) = (1500.0, 1460.0);

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let (ran, end) = (scenario(&rig), SECONDS as f64);
    for (name, _, mbps) in STEADY {
        let rate = with(&ran, |ran| ran.mean(SeriesOf::Flow(name), "goodput_bps", SETTLED_S, end));
        let what = format!("reading at {mbps} Mbit/s, within 60 s");
        list.figure(&what, rate, Bound::Least(0.95 * mbps * 1e6), MBIT_S);
        let vain = with(&ran, |ran| {
            Ok((discarded_share(ran, name, (0.0, end))?, discarded_share(ran, name, (SETTLED_S, end))?))
        });
        list.judge(format!("reading at {mbps} Mbit/s: <= 1 % discarded"), vain, |(whole, settled)| {
            let [all, late] = [whole, settled].map(|share| share * 100.0);
            (format!("{late:.2} % settled, {all:.2} % of the whole run"), settled <= 0.01)
        });
    }
    pause(&ran, list);
    let held = with(&ran, |ran| ran.gateway("stop", "held_peak_bytes"));
    list.figure("stopping for good: held", held, Bound::Most(3.0 * BDP), IN_BDP);
    let (ends, rests) = std::thread::scope(|all| {
        let rig = &rig;
        let killed = [true, false].map(|gateway| all.spawn(move || stops::killed(rig, gateway)));
        let rested = [true, false].map(|rests| all.spawn(move || stops::with_short_stops(rig, rests)));
        (pair(killed.map(join)), pair(rested.map(join)))
    });
    list.judge("stopped for good, then killed: ends as without a gateway", ends, |[with, without]| {
        (format!("{with}; without: {without}"), with.ended_like(&without))
    });
    list.judge("process stopped for 10 ms at random: no loss of rate", rests, compare_rates);
    Ok(())
}

fn pair<T>([one, other]: [Outcome<T>; 2]) -> Outcome<[T; 2]> {
    Ok([one?, other?])
}

/// Runs all readers at once, each on its own hop.
fn scenario(rig: &Rig) -> Outcome<RunResult> {
    let steady = STEADY.map(|(name, reader, _)| (name, reader));
    let readers = steady.into_iter().chain([("pause", PAUSE), ("stop", STOP)]);
    let hops: Vec<_> = readers.map(|(name, reader)| Hop { name, reader, ..Hop::OLD }).collect();
    let file = rig.file("readers.toml", &toml(&hops, 0.0, (SETTLED_S as u64, SECONDS)))?;
    Job::start(rig, RunKind::Live, &file, 1, &[])?.wait(SECONDS)
}

/// Share of the data carried by the hop between two times that was not read. Without losses on the hop, the
/// receiver discarded it. The counters of a live gateway do not show it, because they count super-packets.
fn discarded_share(ran: &RunResult, name: &str, (from, to): (f64, f64)) -> Outcome<f64> {
    let carried = ran.mean(SeriesOf::Link(name), "throughput_bps", from, to)? * PACKET.1 / PACKET.0;
    let read = ran.mean(SeriesOf::Flow(name), "goodput_bps", from, to)?;
    Ok(1.0 - read / carried)
}

fn pause(ran: &Outcome<RunResult>, list: &mut List) {
    let discarded = with(ran, |ran| {
        let (from, to) = AROUND_S;
        let carried = ran.mean(SeriesOf::Link("pause"), "throughput_bps", from, to)? * (to - from) / 8.0;
        Ok((
            discarded_share(ran, "pause", AROUND_S)? * carried * PACKET.1 / PACKET.0,
            ran.gateway("pause", "resent")?,
        ))
    });
    list.judge("a pause of 10 s: at most one BDP discarded", discarded, |(bytes, resent)| {
        (format!("{:.2} BDP ({resent} packets sent again by the gateway)", bytes / BDP), bytes <= BDP)
    });
    let next = with(ran, |ran| {
        let points = ran.series(SeriesOf::Flow("pause"), "goodput_bps")?;
        let next = points.iter().find(|p| p.from >= REOPENED_S + BUFFERED_S && p.value > 0.0);
        next.map(|p| p.to - REOPENED_S).ok_or_else(|| "nothing came any more".to_owned())
    });
    let trips = Unit("RTT", RTT_S, 2);
    list.figure("next bytes after the reopening", next, Bound::Most(1.5 * RTT_S), trips);
    let end = SECONDS as f64;
    let after = with(ran, |ran| ran.mean(SeriesOf::Flow("pause"), "goodput_bps", RECOVERED_S, end));
    list.figure("after the pause: full rate again", after, Bound::Least(0.95 * FULL_BPS), MBIT_S);
}

/// Compares the rate with short process stops with that without, within its normal variation.
fn compare_rates([with, without]: [ShortStops; 2]) -> (String, bool) {
    let apart = with.rate_bps / without.rate_bps - 1.0;
    let ([a, b], stops) = ([&with, &without].map(|run| run.rate_bps / 1e6), with.stops);
    let figure = format!("{a:.2} Mbit/s with {stops} stops, {b:.2} without: {:+.2} %", apart * 100.0);
    (figure + &with.doubts + &without.doubts, stops > 0 && apart >= -0.01)
}
