//! Eight flows of mixed kinds and UDP datagrams on one hop.
//!
//! Without a gateway, old receivers get a sixth of their fair share. What they gain, other flows lose. So
//! each flow must reach 0.97 of its rate without the gateway or of its max-min fair share, whichever is
//! less. No flow may lose capacity to copies or retransmissions of another.

use super::run::TestBed;
use crate::accept::list::{List, Outcome};
use lab::stats::Mean;
use lab::with;

/// Old, modern and slow receivers with all senders, and the maximum demand of each, Mbit/s.
const FLOWS: [(&str, f64); 8] = [
    ("cc=cubic", MOST),
    ("cc=cubic,old", MOST),
    ("cc=reno", MOST),
    ("cc=reno,old", MOST),
    ("cc=bbr", MOST),
    ("cc=bbr,old", MOST),
    ("cc=cubic,reader=1e6", 1.0),
    ("cc=cubic,app=1e6", 1.0),
];
/// Goodput of the hop including the datagrams, Mbit/s.
const MOST: f64 = 23.2;
const UDP: f64 = 1.0;
const LOSSES: [(&str, f64); 2] = [("0", 0.0), ("1e-3", 1e-3)];
const SEEDS: u64 = 5;
const LEAST: f64 = 0.97;

pub(super) fn check(bed: &TestBed, list: &mut List) -> Outcome {
    for (loss, p) in LOSSES {
        let flows: Vec<String> = FLOWS.iter().map(|(f, _)| format!("--flow {f}")).collect();
        let words = format!("{} --udp 1e6 --loss {loss} --seconds 100 --from 20", flows.join(" "));
        let pair =
            |seed| Ok((rates(bed, &words, seed)?, rates(bed, &format!("{words} --no-gateway"), seed)?));
        let pairs: Outcome<Vec<_>> = bed.seeds(SEEDS).map(pair).collect();
        let demands: Vec<f64> = FLOWS.iter().map(|(_, most)| *most).chain([UDP]).collect();
        let fair = fair_shares(&demands, MOST);
        for (i, name) in FLOWS.iter().map(|(name, _)| *name).chain(["udp"]).enumerate() {
            // datagrams lost on the hop do not count
            let fair = if name == "udp" { fair[i] * (1.0 - 3.0 * p) } else { fair[i] };
            let shares = with(&pairs, |all| {
                let share = |(with, without): &(Vec<f64>, Vec<f64>)| with[i] / without[i].min(fair).max(1e-3);
                Ok(all.iter().map(share).collect::<Vec<_>>())
            });
            let what = format!("mixed, loss {loss}: {name}: >= {LEAST} of without or a fair share");
            list.judge(what, shares, |all| {
                // it fails only if the whole confidence interval is below
                let Mean { value, half } = Mean::of(&all);
                let high = if half.is_nan() { value } else { value + half };
                (format!("{value:.3} +- {half:.3}"), high >= LEAST)
            });
        }
    }
    Ok(())
}

/// Max-min fair shares: a demand below an equal share is met, the others share the rest.
fn fair_shares(demands: &[f64], total: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| demands[*a].total_cmp(&demands[*b]));
    let (mut shares, mut left) = (vec![0.0; demands.len()], total);
    for (done, i) in order.into_iter().enumerate() {
        shares[i] = demands[i].min(left / (demands.len() - done) as f64);
        left -= shares[i];
    }
    shares
}

/// Mbit/s of each flow, and of the received datagrams.
fn rates(bed: &TestBed, words: &str, seed: u64) -> Outcome<Vec<f64>> {
    let run = bed.run(words, seed)?;
    let flow = |i| run.figure(&format!("/flows/{i}/goodput_mbps"));
    (0..FLOWS.len()).map(flow).chain([run.figure("/udp/received_mbps")]).collect()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn who_asks_for_little_gets_it() {
        assert_eq!(fair_shares(&[9.0, 1.0, 9.0], 7.0), [3.0, 1.0, 3.0]);
        assert_eq!(fair_shares(&[1.0, 2.0], 7.0), [1.0, 2.0]);
    }
}
