//! Losses within the hop (2).

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::gateway_hops::{BDP, Hop, RATE_BPS, Receiver, toml};
use lab::gateway_runs::{How, Job, Of, Ran, together};
use lab::{Outcome, Rig, Who};

/// Goodput counts from here to the end, s.
const MEASURE_S: (u64, u64) = (40, 100);
/// Full rate as the issue has it: 99.5 % of the hop, 1460 of 1500 B.
const FULL_BPS: f64 = 23.25e6;
/// Loss probabilities, and what an old receiver is to get.
const LOSSES: [(f64, f64); 3] = [(1e-4, 20.0e6), (1e-3, 10.5e6), (1e-2, 8.5e6)];
/// Rare ones, simulated only: a run of a hundred seconds has a few of them at most.
const RARE: [f64; 2] = [1e-6, 1e-5];
/// Runs with seeds of their own; of rare losses more.
const SEEDS: u64 = 3;
const SEEDS_RARE: u64 = 5;
/// Live runs at the same time, of four flows each.
const AT_ONCE: usize = 3;
/// The handshake is over by then: its first timeout is as long as the round trip, and none of a loss.
const OPEN_S: f64 = 2.5;
/// Share of the losses of which a sender may hear.
const HEARD: f64 = 0.01;

const MODERN: Hop<'static> = Hop { name: "cubic", receiver: Receiver::Modern, ..Hop::OLD };
/// Beside each other: hops with gateways, and one without.
const HOPS: [Hop<'static>; 4] = [
    Hop::OLD,
    MODERN,
    Hop { name: "bbr", tcp: "bbr", ..MODERN },
    Hop { name: "bare", gateway: false, ..Hop::OLD },
];

/// A run: loss probability and seed.
type Cell = (f64, u64);

pub(super) fn check(place: &Place, list: &mut List) {
    let rig = place.rig(Who::Ourselves);
    let rig = rig.as_ref().map_err(Clone::clone);
    let cells = LOSSES.iter().flat_map(|(loss, _)| (1..=SEEDS).map(|seed| (*loss, seed)));
    let live = rig.clone().and_then(|rig| runs(rig, How::Live, &HOPS, cells));
    for (loss, least) in LOSSES {
        let of = |hop: &'static str| goodputs(&live, loss, hop);
        let asked = |what: &str, least: f64| format!("{what}, loss {loss:e}: >= {:.2} Mbit/s", least / 1e6);
        list.line(
            2,
            &judge(&asked("old receiver, cubic", least), of("old"), |all| (rates(&all), mean(&all) >= least)),
        );
        list.line(
            2,
            &judge(&format!("old receiver without a gateway, loss {loss:e} (reported)"), of("bare"), |all| {
                (rates(&all), true)
            }),
        );
        let least = 0.95 * (1.0 - loss) * FULL_BPS;
        for hop in ["cubic", "bbr"] {
            let what = asked(&format!("modern receiver, {hop}"), least);
            list.line(2, &judge(&what, of(hop), |all| (rates(&all), mean(&all) >= least)));
        }
    }
    for (loss, _) in LOSSES {
        for hop in HOPS.iter().filter(|h| h.gateway) {
            let what = format!("{}, loss {loss:e}: sender untouched by >= 99 % of them", hop.name);
            list.line(2, &judge(&what, heard(&live, loss, hop), Heard::verdict));
        }
    }
    for (loss, _) in LOSSES {
        let what = format!("held for one flow, loss {loss:e}: <= 3 BDP");
        list.line(2, &judge(&what, held(&live, loss), |bdp| (format!("{bdp:.2} BDP"), bdp <= 3.0)));
    }
    let cells = RARE.iter().flat_map(|loss| (1..=SEEDS_RARE).map(|seed| (*loss, seed)));
    let rare = rig.and_then(|rig| runs(rig, How::Simulated, &[Hop::OLD], cells));
    for loss in RARE {
        let bound = FULL_BPS * bound(loss);
        let what = format!("old receiver, loss {loss:e}, simulated: >= 0.97 of the bound");
        list.line(
            2,
            &judge(&what, goodputs(&rare, loss, "old"), |all| {
                let share = mean(&all) / bound;
                (format!("{share:.3} of {:.2} Mbit/s", bound / 1e6), share >= 0.97)
            }),
        );
    }
}

/// What one gateway can get for an old receiver at best, as a share: each packet sent k times, the best k.
fn bound(loss: f64) -> f64 {
    let n = RATE_BPS / 8.0 / 1500.0;
    let all = |k: u32| (0..k).fold(1.0, |q, _| q * loss);
    (1..=4).map(|k| 1.0 / f64::from(k) / (1.0 + all(k) * n)).fold(0.0, f64::max)
}

fn runs(
    rig: &Rig,
    how: How,
    hops: &[Hop<'_>],
    cells: impl Iterator<Item = Cell>,
) -> Outcome<Vec<(Cell, Ran)>> {
    let start = |(loss, seed): &Cell| {
        let file = rig.file(&format!("loss-{loss:e}.toml"), &toml(hops, *loss, MEASURE_S))?;
        Job::start(rig, how, &file, *seed, &[])
    };
    together(AT_ONCE, cells, start, |_| MEASURE_S.1)
}

type Runs = Outcome<Vec<(Cell, Ran)>>;

/// The runs with this loss.
fn with(runs: &Runs, loss: f64) -> Outcome<impl Iterator<Item = &Ran>> {
    let runs = runs.as_ref().map_err(Clone::clone)?;
    Ok(runs.iter().filter(move |((l, _), _)| l.total_cmp(&loss).is_eq()).map(|(_, ran)| ran))
}

fn goodputs(runs: &Runs, loss: f64, hop: &str) -> Outcome<Vec<f64>> {
    with(runs, loss)?.map(|ran| ran.flow(hop, "goodput_bps")).collect()
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}

/// The mean, and what it is made of.
fn rates(all: &[f64]) -> String {
    let each: Vec<_> = all.iter().map(|bps| format!("{:.2}", bps / 1e6)).collect();
    format!("{:.2} Mbit/s ({})", mean(all) / 1e6, each.join(", "))
}

/// The most that a gateway held, in bandwidth-delay products.
fn held(runs: &Runs, loss: f64) -> Outcome<f64> {
    let mut most = 0.0_f64;
    for ran in with(runs, loss)? {
        for hop in HOPS.iter().filter(|h| h.gateway) {
            most = most.max(ran.gateway(hop.name, "held_peak_bytes")? / BDP);
        }
    }
    Ok(most)
}

/// What a sender heard of losses that are ours.
#[derive(Debug, Default)]
struct Heard {
    losses: f64,
    retransmits: f64,
    timeouts: f64,
    /// How often its congestion window became smaller.
    cuts: u64,
    /// Sent again since the receiver had no room.
    resent: f64,
}

impl Heard {
    fn verdict(self) -> (String, bool) {
        let Self { losses, retransmits, timeouts, cuts, resent } = self;
        let touched = retransmits + timeouts + cuts as f64;
        let figure = format!(
            "{losses} losses, {:.1} segments discarded for each: {retransmits} retransmissions, {timeouts} timeouts, {cuts} cuts",
            resent / losses.max(1.0)
        );
        (figure, losses > 0.0 && touched <= HEARD * losses)
    }
}

fn heard(runs: &Runs, loss: f64, hop: &Hop<'_>) -> Outcome<Heard> {
    let mut all = Heard::default();
    for ran in with(runs, loss)? {
        all.losses += ran.gateway(hop.name, "losses")?;
        all.resent += ran.gateway(hop.name, "resent")?;
        all.retransmits += ran.count(Of::Flow(hop.name), "retransmits", OPEN_S)?;
        all.timeouts += ran.count(Of::Flow(hop.name), "timeouts", OPEN_S)?;
        // bbr's window follows its model of the path: only its counters tell of losses
        if hop.tcp != "bbr" {
            all.cuts += ran.falls(Of::Flow(hop.name), "cwnd_bytes")?;
        }
    }
    Ok(all)
}
