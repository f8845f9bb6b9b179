//! Modern and old receivers over a lossy hop: order, repairs, goodput, retransmissions, transfer times.

use super::run::{Run, Runs, TestBed, each, repeats, values};
use crate::accept::list::{List, Outcome};
use lab::stats::{mean, median};

/// Loss probabilities, and the required goodput from 40 to 100 s, Mbit/s.
const LOSSES: [(&str, f64); 3] = [("1e-4", 22.09), ("1e-3", 22.07), ("1e-2", 21.87)];
const SEEDS: u64 = 5;
/// Required share of first repairs within 50 ms, and their longest wait, s.
const PROMPT: f64 = 0.999;
const LONGEST_S: f64 = 0.2;
const SOON_S: f64 = 0.05;
/// Most segments that the sender may resend: this share of the losses, or this number if larger; and the
/// longest burst of them.
const MOST_RESENT: (f64, f64) = (0.01, 3.0);
const LONGEST_BURST: f64 = 50.0;
/// Required share of the bound for a sender with a small buffer.
const OF_ITS_BOUND: f64 = 0.95;
/// RTT of the hop, and a longer RTT at which only its buffer limits a sender, s.
const RTT_S: f64 = 1.0;
const LONG_RTT_S: f64 = 3.0;
/// Payload of a packet, bits.
const PACKET: f64 = 1460.0 * 8.0;

/// Transfers of 20 000 000 B: loss probabilities with the limit of the median time, s; and seeds.
const STARTS: [(&str, f64); 3] = [("0", 14.6), ("1e-3", 16.5), ("1e-2", 21.0)];
const START_SEEDS: u64 = 10;

/// Required share of the bound of an old receiver, for the mean of all runs and for each, and its goodput
/// without losses, Mbit/s.
const OLD_MEAN: f64 = 0.9;
const OLD_EACH: f64 = 0.75;
const OLD_CLEAN: f64 = 23.0;

pub(super) fn modern(bed: &TestBed, list: &mut List) -> Outcome {
    for (loss, least) in LOSSES {
        let runs = bed.runs(&format!("--loss {loss} --seconds 100 --from 40"), SEEDS);
        let name = format!("modern, loss {loss}");
        order_and_repairs(list, &name, &runs);
        counted(list, &name, &runs);
        goodput(list, &name, &runs, least);
        sender_retransmissions(list, &name, &runs);
    }
    if !bed.long {
        return Ok(());
    }
    let small = "--wmem 4194304 --seconds 100 --from 40";
    let clean = bed.run(small, 1)?.rate()?;
    let slow = format!("{small} --delay {} --no-gateway", LONG_RTT_S * 500.0);
    let window = bed.run(&slow, 1)?.rate()? * LONG_RTT_S;
    for (loss, _) in LOSSES {
        let runs = bed.runs(&format!("--loss {loss} {small}"), SEEDS);
        let name = format!("modern, tcp_wmem 4 MB, loss {loss}");
        let bound = clean.min(windowed(window, loss.parse().unwrap_or(0.0)));
        goodput(list, &name, &runs, OF_ITS_BOUND * bound);
        sender_retransmissions(list, &name, &runs);
    }
    Ok(())
}

/// Goodput, Mbit/s, of a sender with at most `window` Mbit unacknowledged, over a hop with loss ratio
/// `loss`, if only data that arrived in order is acknowledged. With l losses per round trip, a byte waits
/// behind the latest hole for 1 - (1 - exp(-l)) / l of a round trip on average, since each hole is filled a
/// round trip after it was made.
fn windowed(window: f64, loss: f64) -> f64 {
    (0..100).fold(window / RTT_S, |rate, _| {
        let losses = (loss * rate * 1e6 * RTT_S / PACKET).max(1e-9);
        let waits = 1.0 + (-losses).exp_m1() / losses;
        window / (RTT_S * (1.0 + waits))
    })
}

/// Receivers with a 65 535 B window, without window scaling and timestamps.
pub(super) fn old(bed: &TestBed, list: &mut List) -> Outcome {
    let runs = bed.runs("--old --seconds 100 --from 40", SEEDS);
    list.judge(format!("old, no loss: median >= {OLD_CLEAN} Mbit/s"), each(&runs, Run::rate), |all| {
        (values(&all, 2) + &repeats(&runs), median(&all) >= OLD_CLEAN)
    });
    for (loss, _) in LOSSES {
        let runs = bed.runs(&format!("--old --loss {loss} --seconds 100 --from 40"), SEEDS);
        let name = format!("old, loss {loss}");
        order_and_repairs(list, &name, &runs);
        let shares = each(&runs, |r| Ok((r.rate()?, r.rate()? / r.figure("/old_bound_mbps")?)));
        let what = format!("{name}: mean >= {OLD_MEAN} of the bound, each >= {OLD_EACH}");
        list.judge(what, shares, |all| {
            let (rates, shares): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
            let mean = mean(&shares);
            let met = mean >= OLD_MEAN && shares.iter().all(|s| *s >= OLD_EACH);
            let (shares, rates, again) = (values(&shares, 2), values(&rates, 1), repeats(&runs));
            (format!("{mean:.2} ({shares}) at {rates} Mbit/s{again}"), met)
        });
    }
    Ok(())
}

/// Time from the first data segment to the acknowledgment of the last byte.
pub(super) fn start(bed: &TestBed, list: &mut List) -> Outcome {
    for (loss, most) in STARTS {
        let runs = bed.runs(&format!("--loss {loss} --bytes 20000000 --seconds 120"), START_SEEDS);
        let times = each(&runs, |r| r.figure("/flows/0/took_s"));
        list.judge(format!("20 MB, modern, loss {loss}: median <= {most} s"), times, |all| {
            let middle = median(&all);
            (format!("{middle:.2} s of {}", values(&all, 1)), middle <= most)
        });
    }
    Ok(())
}

/// Packet order and repairs, for any receiver with SACK.
fn order_and_repairs(list: &mut List, name: &str, runs: &Runs) {
    let late = each(runs, |r| r.figure("/flows/0/out_of_order"));
    list.judge(format!("{name}: first transmissions out of order"), late, |all| {
        (values(&all, 0), all.iter().all(|late| *late < 0.5))
    });
    let first = each(runs, |r| {
        let of = |key: &str| r.figure(&format!("/flows/0/repairs/{key}"));
        let longest = r.optional_figure("/flows/0/repairs/first/max_s").unwrap_or(0.0);
        Ok([of("first/n")?, of("first/within_50_ms")?, longest, of("never")?])
    });
    list.judge(format!("{name}: first repairs, 99.9 % in 50 ms, all in 200"), first, |all| {
        let sum = |i: usize| all.iter().map(|run| run[i]).sum::<f64>();
        let (n, soon, never) = (sum(0), sum(1), sum(3));
        let longest = all.iter().fold(0.0, |most: f64, run| most.max(run[2]));
        let met = n > 0.0 && soon >= PROMPT * n && longest <= LONGEST_S && never < 0.5;
        (format!("{soon} of {n}, longest {longest:.3} s, {never} never"), met)
    });
    let most = |key: &str| each(runs, |r| Ok(r.optional_figure(&format!("/flows/0/repairs/{key}/max_s"))));
    list.judge(format!("{name}: k-th repairs within 50 ms"), most("later"), |all| {
        let (longest, n) = longest(&all, 0.0);
        (format!("longest {longest:.3} s in {n} runs that had some"), longest <= SOON_S)
    });
    list.judge(format!("{name}: loss to repair, RTT + queue + 50 ms"), most("from_loss"), |all| {
        let (longest, n) = longest(&all, f64::MIN);
        (format!("RTT + queue + {longest:.3} s"), n > 0 && longest <= SOON_S)
    });
}

/// The largest of the values that exist, at least `from`, and their number.
fn longest(all: &[Option<f64>], from: f64) -> (f64, usize) {
    (all.iter().flatten().fold(from, |most, s| most.max(*s)), all.iter().flatten().count())
}

fn counted(list: &mut List, name: &str, runs: &Runs) {
    let pairs = each(runs, |r| Ok((r.figure("/gateway/flows/flows/0/lost")?, r.figure("/flows/0/lost")?)));
    list.judge(format!("{name}: losses as the gateway counts them"), pairs, |all| {
        let near = |(told, real): &(f64, f64)| (told - real).abs() <= (0.05 * real).max(2.0);
        let words: Vec<String> = all.iter().map(|(told, real)| format!("{told}/{real}")).collect();
        (words.join(" "), all.iter().all(near))
    });
}

fn goodput(list: &mut List, name: &str, runs: &Runs, least: f64) {
    list.judge(format!("{name}: >= {least:.2} Mbit/s"), each(runs, Run::rate), |all| {
        (values(&all, 2) + &repeats(runs), all.iter().all(|rate| *rate >= least))
    });
}

fn sender_retransmissions(list: &mut List, name: &str, runs: &Runs) {
    let heard = each(runs, |r| {
        let of = |key: &str| r.figure(&format!("/flows/0/{key}"));
        Ok([of("sender/retransmits_from_10s")?, of("lost_steady")?, of("sender/longest_spell_from_10s")?])
    });
    list.judge(format!("{name}: the sender resends <= max(3, 1 %), spells <= 50"), heard, |all| {
        let quiet = |[again, lost, spell]: &[f64; 3]| {
            *again <= (MOST_RESENT.0 * lost).max(MOST_RESENT.1) && *spell <= LONGEST_BURST
        };
        let words = all.iter().map(|[again, lost, spell]| format!("{again} of {lost} ({spell})"));
        (words.collect::<Vec<_>>().join(", "), all.iter().all(quiet))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: with 1000 packets per RTT and one lost, a byte waits 1 - (1 - 1/e) = 0.3679 of an RTT.
    #[test]
    fn a_small_buffer_waits_behind_holes() {
        assert!((windowed(11.68 * 1.3679, 1e-3) - 11.68).abs() < 0.01);
        assert!((windowed(24.0, 0.0) - 24.0).abs() < 1e-6);
    }
}
