//! Losses on the hop.

use super::hops::{BDP, FULL_BPS, Hop, IN_BDP, MODERN, RATE_BPS, toml};
use super::runs::{IperfReport, Job, RunKind, RunResult, SeriesOf, Transfer};
use crate::accept::list::{Bound, List, MBIT_S, Outcome, Setup};
use lab::stats::mean;
use lab::{Rig, Who};

/// Measured interval, s.
const MEASURE_S: (u64, u64) = (40, 100);
/// Loss probabilities, and the required goodput of an old receiver.
const LOSSES: [(f64, f64); 3] = [(1e-4, 20.0e6), (1e-3, 10.5e6), (1e-2, 8.5e6)];
/// Rare losses, simulated only: a run of 100 s has a few of them at most.
const RARE: [f64; 2] = [1e-6, 1e-5];
/// Seeds; more for rare losses.
const SEEDS: u64 = 3;
const SEEDS_RARE: u64 = 5;
const AT_ONCE: usize = 3;
/// The handshake is over by then. Its first timeout is as long as the RTT and is not due to a loss.
const OPEN_S: f64 = 2.5;
/// Share of the losses to which a sender may react.
const MAX_REACTION: f64 = 0.01;

/// Concurrent hops: with gateways, and one without.
const HOPS: [Hop<'static>; 3] = [
    Hop::OLD,
    Hop { name: "cubic", receiver: MODERN, ..Hop::OLD },
    Hop { name: "bare", gateway: false, ..Hop::OLD },
];
/// The BBR hop is run with programs, since scenarios have no BBR.
const BBR: Hop<'static> = Hop { name: "bbr", tcp: "bbr", receiver: MODERN, ..Hop::OLD };
/// BBR on a hop without losses: it pauses for two round trips about every twelve seconds to measure the
/// minimum RTT (PROBE_RTT), and no gateway can send during that time.
const CLEAN: Hop<'static> = Hop { name: "clean", gateway: false, ..BBR };

const GATEWAYS: [&str; 3] = ["old", "cubic", "bbr"];

/// Live runs with one loss probability and seed.
struct Cell {
    loss: f64,
    ran: RunResult,
    bbr: (RunResult, IperfReport),
}

type Cells = Outcome<Vec<Cell>>;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let clean = Transfer::start(&rig, &CLEAN, 0.0, 1, MEASURE_S.1);
    let live = live(&rig);
    let clean = clean.and_then(|transfer| transfer.wait(MEASURE_S.1)?.1.rate_bps(MEASURE_S.0 as f64));
    list.figure("bbr without a gateway, no loss: what it asks for itself", clean, Bound::Nothing, MBIT_S);
    for (loss, least) in LOSSES {
        let mut line = |what: &str, hop: &str, least: Option<f64>| {
            let bound = least.map_or(" (reported)".to_owned(), |bps| format!(": >= {:.2} Mbit/s", bps / 1e6));
            list.judge(format!("{what}, loss {loss:e}{bound}"), goodputs(&live, loss, hop), |all| {
                (rates(&all), least.is_none_or(|least| mean(&all) >= least))
            });
        };
        line("old receiver, cubic", "old", Some(least));
        line("old receiver without a gateway", "bare", None);
        let least = 0.95 * (1.0 - loss) * FULL_BPS;
        line("modern receiver, cubic", "cubic", Some(least));
        line("modern receiver, bbr", "bbr", Some(least));
    }
    for (loss, _) in LOSSES {
        for hop in GATEWAYS {
            let what = format!("{hop}, loss {loss:e}: sender untouched by >= 99 % of losses");
            list.judge(what, sender_reaction(&live, loss, hop), |judged| judged);
        }
        let what = format!("held for one flow, loss {loss:e}");
        list.figure(&what, held(&live, loss), Bound::Most(3.0 * BDP), IN_BDP);
    }
    list.judge("machine fast enough in all live runs (reported)", live, |cells| {
        let runs = cells.iter().flat_map(|cell| [&cell.ran, &cell.bbr.0]);
        (format!("too slow in {} of them", runs.filter(|ran| !ran.doubts().is_empty()).count()), true)
    });
    for loss in RARE {
        let bound = FULL_BPS * bound(loss);
        let what = format!("old receiver, loss {loss:e}, simulated: >= 0.97 of the bound");
        list.judge(what, simulated(&rig, loss), |all| {
            let share = mean(&all) / bound;
            (format!("{share:.3} of {:.2} Mbit/s", bound / 1e6), share >= 0.97)
        });
    }
    Ok(())
}

/// Upper bound for an old receiver, as a share of the rate: each packet sent k times, for the best k.
fn bound(loss: f64) -> f64 {
    let n = RATE_BPS / 8.0 / 1500.0;
    let all = |k: u32| (0..k).fold(1.0, |q, _| q * loss);
    (1..=4).map(|k| 1.0 / f64::from(k) / (1.0 + all(k) * n)).fold(0.0, f64::max)
}

fn start(rig: &Rig, how: RunKind, hops: &[Hop<'_>], loss: f64, seed: u64) -> Outcome<Job> {
    let file = rig.file(&format!("loss-{loss:e}-{seed}.toml"), &toml(hops, loss, MEASURE_S))?;
    Job::start(rig, how, &file, seed, &[])
}

/// All live cells, a few concurrently.
fn live(rig: &Rig) -> Cells {
    let all: Vec<_> = LOSSES.iter().flat_map(|(loss, _)| (1..=SEEDS).map(|seed| (*loss, seed))).collect();
    let (mut cells, seconds) = (Vec::new(), MEASURE_S.1);
    for batch in all.chunks(AT_ONCE) {
        let begin = |&(loss, seed): &(f64, u64)| {
            let job = start(rig, RunKind::Live, &HOPS, loss, seed)?;
            let bbr = Transfer::start(rig, &BBR, loss, seed, seconds)?;
            Ok((loss, job, bbr))
        };
        let started: Vec<_> = batch.iter().map(begin).collect::<Outcome<_>>()?;
        for (loss, job, bbr) in started {
            cells.push(Cell { loss, ran: job.wait(seconds)?, bbr: bbr.wait(seconds)? });
        }
    }
    Ok(cells)
}

/// Goodput of an old receiver in simulated runs, bit/s.
fn simulated(rig: &Rig, loss: f64) -> Outcome<Vec<f64>> {
    let run = |seed| {
        start(rig, RunKind::Simulated, &HOPS[..1], loss, seed)?.wait(MEASURE_S.1)?.flow("old", "goodput_bps")
    };
    (1..=SEEDS_RARE).map(run).collect()
}

impl Cell {
    /// The run with the hop of this name.
    fn with(&self, hop: &str) -> &RunResult {
        if hop == BBR.name { &self.bbr.0 } else { &self.ran }
    }

    fn goodput(&self, hop: &str) -> Outcome<f64> {
        if hop == BBR.name {
            self.bbr.1.rate_bps(MEASURE_S.0 as f64)
        } else {
            self.ran.flow(hop, "goodput_bps")
        }
    }
}

fn of(cells: &Cells, loss: f64) -> Outcome<impl Iterator<Item = &Cell>> {
    let cells = cells.as_ref().map_err(Clone::clone)?;
    Ok(cells.iter().filter(move |cell| cell.loss.total_cmp(&loss).is_eq()))
}

fn goodputs(cells: &Cells, loss: f64, hop: &str) -> Outcome<Vec<f64>> {
    of(cells, loss)?.map(|cell| cell.goodput(hop)).collect()
}

fn rates(all: &[f64]) -> String {
    let each: Vec<_> = all.iter().map(|bps| format!("{:.2}", bps / 1e6)).collect();
    format!("{:.2} Mbit/s ({})", mean(all) / 1e6, each.join(", "))
}

/// Most bytes that a gateway held.
fn held(cells: &Cells, loss: f64) -> Outcome<f64> {
    let mut most = 0.0_f64;
    for cell in of(cells, loss)? {
        for hop in GATEWAYS {
            most = most.max(cell.with(hop).gateway(hop, "held_peak_bytes")?);
        }
    }
    Ok(most)
}

/// How a sender reacted to losses on the hop, and whether that is within the limit.
fn sender_reaction(cells: &Cells, loss: f64, hop: &str) -> Outcome<(String, bool)> {
    // `resent` counts packets that the gateway sent again because the receiver had no room
    let (mut losses, mut resent) = (0.0_f64, 0.0_f64);
    let (mut retransmits, mut timeouts, mut cuts) = (0.0_f64, 0.0_f64, 0_u64);
    for cell in of(cells, loss)? {
        let ran = cell.with(hop);
        losses += ran.gateway(hop, "losses")?;
        resent += ran.gateway(hop, "resent")?;
        // BBR's cwnd follows its model, so only the retransmit counter shows losses
        if hop == BBR.name {
            retransmits += cell.bbr.1.retransmits()?;
        } else {
            retransmits += ran.count(SeriesOf::Flow(hop), "retransmits", OPEN_S)?;
            timeouts += ran.count(SeriesOf::Flow(hop), "timeouts", OPEN_S)?;
            cuts += ran.decreases(SeriesOf::Flow(hop), "cwnd_bytes")?;
        }
    }
    let touched = retransmits + timeouts + cuts as f64;
    let figure = format!(
        "{losses} losses, {:.1} pieces sent again besides for each: {retransmits} retransmissions, {timeouts} timeouts, {cuts} cuts",
        resent / losses.max(1.0)
    );
    Ok((figure, losses > 0.0 && touched <= MAX_REACTION * losses))
}
