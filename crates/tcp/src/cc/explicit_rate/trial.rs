//! Whether the sender itself causes the losses: a trial at half of its rate.
//!
//! Own mechanism. A bottleneck without a flow router may have a little more than the granted rate. Others
//! that share it yield, so the loss stays below every threshold, and they keep next to nothing. Two signs
//! together raise suspicion:
//!   a standing queue: for max(512 packets, 4 RTT) no round trip was near the shortest one, and 8 packets or
//!     more of this sender wait in the difference. Where only granted rates meet there is no such queue.
//!   more than four times what a TCP would get: R = sqrt(1.5 / p) MSS / RTT (Mathis et al., 1997), so loss
//!     p > 1.5 (4 / W)^2 with W packets in a round trip, with the certainty of `meter.rs`
//! Neither proves anything: noise and the queue of others look the same. Then the sender paces at half of its
//! rate. After two round trips it counts until 16 losses are due at the former share, and 128 packets at
//! least. At most 4 show that it was the cause, and it becomes a standard TCP; with losses by noise, or by
//! others, that happens once in 2500 trials (Poisson). With the fifth loss the trial ends, and the next may
//! begin after 10 RTT, twice as long after each trial. At equal round trips four times what a TCP gets
//! leaves it a fifth of the link.

use super::meter::{LossMeter, PROOF, Point, ROUNDS, STEP, evidence};
use super::{LONGEST_PAUSE, QUIET_ROUNDS};
use crate::cc::Path;
use bentpipe_base::{Duration, Instant, Rate, Size};

/// Packets that show a standing queue.
const PACKETS: f64 = 512.0;
/// Packets of this sender in a standing queue.
const BACKLOG: u64 = 8;
/// How many times the rate of a TCP is too much.
const GREED: f64 = 4.0;
/// Losses that are due in a trial, and how many of them acquit.
const DUE: f64 = 16.0;
const FEW: u64 = 4;
/// Round trips in which the losses of the former rate are still found.
const OLD_ROUNDS: u64 = 2;

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The losses ended with the rate.
    Guilty,
    /// They did not.
    Innocent,
}

/// Half of the rate, until it is clear whether losses depend on it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// What is answered from then on counts.
    counts_from: Instant,
    start: Option<Point>,
    /// Share lost before.
    share: f64,
}

/// Trials of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Trials {
    trial: Option<Trial>,
    /// Time to the next one, in multiples of the shortest.
    pause: u64,
    next_at: Instant,
}

impl Trials {
    /// True while the sender is to send at half of its rate.
    pub(super) const fn is_running(&self) -> bool {
        self.trial.is_some()
    }

    /// Ends a trial without a verdict.
    pub(super) fn stop(&mut self) {
        self.trial = None;
    }

    /// Begins a trial if the sender is suspicious; after each step of the meter. `packet` is the length of
    /// a packet with its headers.
    pub(super) fn suspect(
        &mut self,
        now: Instant,
        path: &Path,
        meter: &LossMeter,
        granted: Rate,
        packet: Size,
    ) {
        if self.is_running() || now < self.next_at {
            return;
        }
        let (packets, share) = meter.all();
        let is_long = packets >= PACKETS && meter.over(1, path.srtt * ROUNDS).is_some();
        let standing = meter.shortest().map_or(Duration::ZERO, |rtt| rtt.saturating_sub(path.rtt_min));
        let is_queue = granted.bytes_in(standing).0 >= BACKLOG * packet.0;
        let window = granted.bytes_in(path.srtt).0 as f64 / packet.0.max(1) as f64;
        let fair = 1.5 * (GREED / window.max(1.0)) * (GREED / window.max(1.0));
        if is_long && is_queue && evidence(packets, share, fair) >= PROOF {
            self.trial = Some(Trial { counts_from: now + path.srtt * OLD_ROUNDS, start: None, share });
        }
    }

    /// Looks at the trial with each acknowledgment.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        path: &Path,
        meter: &LossMeter,
        mss: u64,
    ) -> Option<Verdict> {
        let trial = self.trial.as_mut().filter(|trial| now >= trial.counts_from)?;
        let point = meter.point(now, path);
        let start = trial.start.get_or_insert(point);
        let lost = point.lost.saturating_sub(start.lost) / mss.max(1);
        let packets = point.answered.saturating_sub(start.answered) as f64 / mss.max(1) as f64;
        let verdict = if lost > FEW {
            Verdict::Innocent
        } else if packets >= STEP as f64 && packets * trial.share >= DUE {
            Verdict::Guilty
        } else {
            return None;
        };
        self.trial = None;
        self.next_at = now + path.srtt * QUIET_ROUNDS * self.pause.max(1);
        self.pause = (self.pause.max(1) * 2).min(LONGEST_PAUSE);
        Some(verdict)
    }
}
