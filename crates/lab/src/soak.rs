//! A long run: checks packet order, causes of losses, and memory.

use crate::Outcome;
use crate::rig::{Rig, json};
use crate::scenario::OneLink;
use crate::speed::{self, LossCount, Timing, tally};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rate of the link, bit/s, share of it that is offered (the control connection needs the rest), and loss.
const RATE_BPS: f64 = 50e6;
const SHARE: f64 = 0.99;
const LOSS: f64 = 0.01;
/// Number of memory samples.
const LOOKS: u32 = 40;

/// Result of a long run.
#[derive(Clone, Debug)]
pub struct Soak {
    /// The counts of iperf3.
    pub tally: LossCount,
    /// Packets sent by the far end's interface, and received by the user's.
    pub interfaces: (u64, u64),
    /// Losses by direction and cause.
    pub drops: Vec<(String, u64)>,
    /// Losses outside the link, and how late packets left.
    pub timing: Timing,
    /// Resident memory over time, kB.
    pub rss_kb: Vec<u64>,
}

impl Soak {
    /// Packet counts by the interfaces and the link. They exclude losses in the socket of a slow receiver,
    /// which the link did not cause.
    pub fn on_the_link(&self) -> LossCount {
        let of = |cause: &str| self.drops.iter().filter(|(name, _)| name == cause).map(|(_, n)| n).sum();
        let (lost, overflown): (u64, u64) = (of("link packet_loss"), of("link queue_full"));
        LossCount { sent: self.interfaces.0 - overflown, lost, out_of_order: self.tally.out_of_order }
    }

    /// Packets missing without a recorded cause: sent, minus received, minus dropped.
    pub fn unexplained(&self) -> i64 {
        let to_user = self.drops.iter().filter(|(name, _)| !name.starts_with("link-return"));
        let dropped: u64 = to_user.map(|(_, n)| n).sum();
        self.interfaces.0 as i64 - self.interfaces.1 as i64 - dropped as i64
    }

    /// Growth of memory after the first quarter of the run, kB: the maximum of the last quarter minus that
    /// of the second.
    pub fn growth_kb(&self) -> i64 {
        let largest = |part: usize| {
            let n = self.rss_kb.len();
            self.rss_kb[n * part / 4..n * (part + 1) / 4].iter().max().copied().unwrap_or(0) as i64
        };
        largest(3) - largest(1)
    }
}

/// Runs 50 Mbit/s with 1 % loss for `seconds`.
pub fn run(rig: &Rig, seconds: u32, seed: u64) -> Outcome<Soak> {
    let (delay, buffer) = ("50 ms", "625 kB");
    let link = OneLink { rate: "50 Mbit/s", delay, buffer, loss: LOSS, seed, ..OneLink::CLEAN };
    let scenario = rig.file("soak.toml", &link.toml())?;
    let [result, state, near, far] = ["soak.json", "state.json", "near.dev", "far.dev"].map(|n| rig.path(n));
    // no segmentation offload, so that interfaces count single packets
    let single = "ip link set dev bent0 gso_max_segs 1";
    let rate = (RATE_BPS * SHARE * 1472.0 / 1500.0) as u64;
    let [result_at, state_at, near_at, far_at] = [&result, &state, &near, &far].map(|path| path.display());
    let at_near = format!(
        "{single} && sleep 1 && iperf3 -4 -c far -u -R -l 1472 -b {rate} -t {seconds} -i 60 -J >'{result_at}' || exit 8
sleep 4; cat /proc/net/dev >'{near_at}'; \"$BENTPIPE\" link show --json >'{state_at}'"
    );
    let at_far =
        format!("{single}; iperf3 -s -1 >/dev/null; sleep 2; cat /proc/net/dev >'{far_at}'; sleep 60");
    let mut session = rig.start(&["emulate", &scenario, "--far", &at_far, "--", "sh", "-c", &at_near])?;
    let rss_kb = watch(&mut session, seconds)?;
    session.wait(Duration::from_secs(60))?.succeeded("the long run")?;
    let shown = json(&state)?;
    Ok(Soak {
        tally: tally(&json(&result)?)?,
        interfaces: (packets(&far, 9)?, packets(&near, 1)?),
        drops: speed::drops(&shown),
        timing: speed::timing(&shown)?,
        rss_kb,
    })
}

/// Samples the resident memory of a session during the run.
fn watch(session: &mut crate::Running, seconds: u32) -> Outcome<Vec<u64>> {
    let status = format!("/proc/{}/status", session.id());
    let (since, length) = (Instant::now(), Duration::from_secs(u64::from(seconds)));
    let mut all = Vec::new();
    while since.elapsed() < length && !session.has_ended()? {
        std::thread::sleep(length / LOOKS);
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        all.extend(line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()));
    }
    if all.len() < 8 {
        return Err(format!("the long run was short: {}", session.err()));
    }
    Ok(all)
}

/// A packet counter of the link's interface: column 1 for received, 9 for sent.
fn packets(path: &Path, column: usize) -> Outcome<u64> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix("bent0:"));
    let value = line.and_then(|l| l.split_whitespace().nth(column)?.parse().ok());
    value.ok_or_else(|| format!("{}: no bent0", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_causes_or_has_none() {
        let mut soak = Soak {
            tally: LossCount { sent: 1000, lost: 10, out_of_order: 0 },
            interfaces: (1012, 1000),
            drops: vec![
                ("link packet_loss".into(), 10),
                ("link queue_full".into(), 2),
                ("link-return loss".into(), 5),
            ],
            timing: Timing::default(),
            rss_kb: (0..40).map(|i| 5000 + i).collect(),
        };
        assert_eq!((soak.unexplained(), soak.growth_kb()), (0, 20));
        assert_eq!(soak.on_the_link(), LossCount { sent: 1010, lost: 10, out_of_order: 0 });
        soak.interfaces.1 -= 3;
        assert_eq!(soak.unexplained(), 3);
    }
}
