//! Modern receivers over a lossy hop: order and repairs (1, 2), goodput and the sender's peace (3).

use super::run::{Bed, Run, repeats, values};
use crate::accept::List;
use crate::accept::place::judge;
use lab::Outcome;

/// Probabilities of loss, and the least goodput from second 40 to 100, Mbit/s.
const LOSSES: [(&str, f64); 3] = [("1e-4", 22.09), ("1e-3", 22.07), ("1e-2", 21.87)];
const SEEDS: u64 = 5;
/// Share of first repairs within 50 ms, and the longest of them, s.
const PROMPT: f64 = 0.999;
const LONGEST_S: f64 = 0.2;
const SOON_S: f64 = 0.05;
/// Share of the losses of which the sender may hear, at least so many segments, and the longest spell.
const HEARD: (f64, f64) = (0.01, 3.0);
const SPELL: f64 = 50.0;
/// Of what a sender with small buffers gets over a hop that loses nothing.
const OF_ITS_BOUND: f64 = 0.95;

pub(super) fn check(bed: &Bed, list: &mut List) {
    for (loss, least) in LOSSES {
        let runs = all(bed, &format!("--loss {loss} --seconds 100 --from 40"));
        let name = format!("modern, loss {loss}");
        order_and_repairs(list, &name, &runs);
        counted(list, &name, &runs);
        goodput(list, &name, &runs, least);
        peace(list, &name, &runs);
    }
    if !bed.long {
        return;
    }
    let bound =
        bed.run("--wmem 4194304 --seconds 100 --from 40", 1).and_then(|r| r.figure("/flows/0/goodput_mbps"));
    for (loss, _) in LOSSES {
        let runs = all(bed, &format!("--loss {loss} --wmem 4194304 --seconds 100 --from 40"));
        let name = format!("modern, tcp_wmem 4 MB, loss {loss}");
        match &bound {
            Ok(bound) => goodput(list, &name, &runs, OF_ITS_BOUND * bound),
            Err(why) => list.line(3, &judge(&name, Err::<(), _>(why.clone()), |()| (String::new(), false))),
        }
        peace(list, &name, &runs);
    }
}

/// The runs of a cell.
pub(super) fn all(bed: &Bed, words: &str) -> Outcome<Vec<Run>> {
    bed.seeds(SEEDS).map(|seed| bed.run(words, seed)).collect()
}

/// Figures of all runs, and what becomes of them.
pub(super) fn each<T>(runs: &Outcome<Vec<Run>>, of: impl Fn(&Run) -> Outcome<T>) -> Outcome<Vec<T>> {
    runs.as_ref().map_err(Clone::clone)?.iter().map(of).collect()
}

/// Lines 1 and 2, for any receiver with SACK.
pub(super) fn order_and_repairs(list: &mut List, name: &str, runs: &Outcome<Vec<Run>>) {
    let late = each(runs, |r| r.figure("/flows/0/out_of_order"));
    list.line(
        1,
        &judge(&format!("{name}: first transmissions out of order"), late, |all| {
            (values(&all, 0), all.iter().all(|late| *late < 0.5))
        }),
    );
    let first = each(runs, |r| {
        let of = |key: &str| r.figure(&format!("/flows/0/repairs/first/{key}"));
        Ok((
            of("n")?,
            of("within_50_ms")?,
            r.perhaps("/flows/0/repairs/first/max_s").unwrap_or(0.0),
            r.figure("/flows/0/repairs/never")?,
        ))
    });
    list.line(
        2,
        &judge(&format!("{name}: first repairs, 99.9 % in 50 ms, all in 200"), first, |all| {
            let sum = |of: fn(&(f64, f64, f64, f64)) -> f64| all.iter().map(of).sum::<f64>();
            let (n, soon, never) = (sum(|r| r.0), sum(|r| r.1), sum(|r| r.3));
            let longest = all.iter().fold(0.0, |most: f64, r| most.max(r.2));
            let met = n > 0.0 && soon >= PROMPT * n && longest <= LONGEST_S && never < 0.5;
            (format!("{soon} of {n}, longest {longest:.3} s, {never} never"), met)
        }),
    );
    let most =
        |key: &'static str| each(runs, move |r| Ok(r.perhaps(&format!("/flows/0/repairs/{key}/max_s"))));
    list.line(
        2,
        &judge(&format!("{name}: k-th repairs within 50 ms"), most("later"), |all| {
            let longest = all.iter().flatten().fold(0.0, |most: f64, s| most.max(*s));
            (
                format!("longest {longest:.3} s in {} runs that had some", all.iter().flatten().count()),
                longest <= SOON_S,
            )
        }),
    );
    list.line(
        2,
        &judge(&format!("{name}: loss to repair, RTT + queue + 50 ms"), most("from_loss"), |all| {
            let longest = all.iter().flatten().fold(f64::MIN, |most, s| most.max(*s));
            (format!("RTT + queue + {longest:.3} s"), all.iter().flatten().count() > 0 && longest <= SOON_S)
        }),
    );
}

fn counted(list: &mut List, name: &str, runs: &Outcome<Vec<Run>>) {
    let pairs = each(runs, |r| Ok((r.figure("/gateway/flows/flows/0/lost")?, r.figure("/flows/0/lost")?)));
    list.line(
        2,
        &judge(&format!("{name}: losses as the gateway counts them"), pairs, |all| {
            let near = |(told, real): &(f64, f64)| (told - real).abs() <= (0.05 * real).max(2.0);
            let words: Vec<String> = all.iter().map(|(told, real)| format!("{told}/{real}")).collect();
            (words.join(" "), all.iter().all(near))
        }),
    );
}

fn goodput(list: &mut List, name: &str, runs: &Outcome<Vec<Run>>, least: f64) {
    let rates = each(runs, |r| r.figure("/flows/0/goodput_mbps"));
    let again = runs.as_ref().map(|r| repeats(r)).unwrap_or_default();
    list.line(
        3,
        &judge(&format!("{name}: >= {least:.2} Mbit/s"), rates, |all| {
            (values(&all, 2) + &again, all.iter().all(|rate| *rate >= least))
        }),
    );
}

fn peace(list: &mut List, name: &str, runs: &Outcome<Vec<Run>>) {
    let heard = each(runs, |r| {
        let of = |key: &str| r.figure(&format!("/flows/0/{key}"));
        Ok([of("sender/retransmits_from_10s")?, of("lost_steady")?, of("sender/longest_spell_from_10s")?])
    });
    list.line(
        3,
        &judge(&format!("{name}: the sender resends <= max(3, 1 %), spells <= 50"), heard, |all| {
            let quiet =
                |[again, lost, spell]: &[f64; 3]| *again <= (HEARD.0 * lost).max(HEARD.1) && *spell <= SPELL;
            let words: Vec<String> =
                all.iter().map(|[again, lost, spell]| format!("{again} of {lost} ({spell})")).collect();
            (words.join(", "), all.iter().all(quiet))
        }),
    );
}
