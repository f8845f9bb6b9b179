//! Whether the sender itself causes the losses: a trial at half of its rate.
//!
//! Own mechanism. A bottleneck without a flow router may have a little more than the granted rate. Others
//! that share it yield, so the loss stays below every threshold, and they keep next to nothing. Two signs
//! together raise suspicion:
//!   a standing queue: for max(512 packets, 4 RTT) no round trip was near the shortest one, and 8 packets or
//!     more of this sender wait in the difference. Where only granted rates meet there is no such queue.
//!   more than four times what a TCP would get: R = sqrt(1.5 / p) MSS / RTT (Mathis et al., 1997), so loss
//!     p > 1.5 (4 / W)^2 with W packets in a round trip, in each quarter of that time, and in all of it with
//!     evidence of 5 (`meter.rs`). Others with windows overflow a queue in bursts with long times between.
//! Neither proves anything: noise and the queue of others look the same. Then the sender paces at half of its
//! rate. Two things together show that it was the cause, and it becomes a standard TCP:
//!   the queue goes: of the next six round trips one has at most half of the queue that the last four before
//!     had. Beside windows, a share g of a bottleneck is about this share of its queue, so half of the rate
//!     empties it by half if g is more than about 2/3. A queue that many share stays, and so the trial ends.
//!     So it does if the shortest round trip of all falls by a quarter of that queue: its length was not
//!     known, as that of a queue in which the connection began.
//!   the losses end: after two round trips it counts, until 9 + 2 n losses are due at the former share, and
//!     128 packets at least, with n <= 4 found. Losses at random, by noise or by others, do so in one of 1700
//!     trials (Poisson). With the fifth loss the trial ends.
//! The next trial may begin after 10 RTT, twice as long after each. Each begins up to 10 RTT, at random,
//! after the suspicion, since senders that try at the same time empty a queue together. At equal round trips
//! four times what a TCP gets leaves it a fifth of the link.

use super::meter::{LossMeter, Point, ROUNDS, STEP, evidence};
use super::{LONGEST_PAUSE, QUIET_ROUNDS};
use crate::cc::Path;
use bentpipe_base::{Duration, Instant, Rate, Size, mix};

/// Packets that show a standing queue.
const PACKETS: f64 = 512.0;
/// Packets of this sender in a standing queue.
const BACKLOG: u64 = 8;
/// How many times the rate of a TCP is too much.
const GREED: f64 = 4.0;
/// Losses that are due in a trial, if there are none and for each that there is. More than a few acquit.
const DUE: u64 = 9;
const DUE_PER_LOSS: u64 = 2;
const FEW: u64 = 4;
/// Evidence of greed that raises suspicion.
const SUSPICION: f64 = 5.0;
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

/// Half of the rate, until it is clear whether queue and losses depend on it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// When the queue must have gone.
    queue_until: Instant,
    /// What every round trip waited in it before, beyond the shortest one of all.
    standing: Duration,
    /// That shortest one.
    base: Duration,
    /// The shortest one in the trial.
    shortest: Option<Duration>,
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
    /// When the present suspicion leads to one.
    begins_at: Option<Instant>,
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
        (self.trial, self.begins_at) = (None, None);
    }

    /// Begins a trial if the sender is suspicious for some time; after each step of the meter. `packet` is
    /// the length of a packet with its headers.
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
        let queue =
            |time| meter.shortest(time).map_or(Duration::ZERO, |rtt| rtt.saturating_sub(path.rtt_min));
        let is_queue = granted.bytes_in(queue(Duration(u64::MAX))).0 >= BACKLOG * packet.0;
        if !(is_queue && is_greedy(path, meter, granted, packet)) {
            self.begins_at = None;
            return;
        }
        let delay = path.srtt * QUIET_ROUNDS / 256 * (mix(now.0) & 0xFF);
        if now < *self.begins_at.get_or_insert(now + delay) {
            return;
        }
        let counts_from = now + path.srtt * OLD_ROUNDS;
        self.begins_at = None;
        self.trial = Some(Trial {
            queue_until: counts_from + path.srtt * ROUNDS,
            standing: queue(path.srtt * ROUNDS),
            base: path.rtt_min,
            shortest: None,
            counts_from,
            start: None,
            share: meter.all().1,
        });
    }

    /// Looks at the trial with each acknowledgment, perhaps with a sample of the round-trip time.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        path: &Path,
        meter: &LossMeter,
        rtt: Option<Duration>,
        mss: u64,
    ) -> Option<Verdict> {
        let trial = self.trial.as_mut()?;
        trial.shortest = trial.shortest.into_iter().chain(rtt).min();
        if now < trial.counts_from {
            return None;
        }
        let point = meter.point(now, path);
        let start = trial.start.get_or_insert(point);
        let lost = point.lost.saturating_sub(start.lost) / mss.max(1);
        let packets = point.answered.saturating_sub(start.answered) as f64 / mss.max(1) as f64;
        let left = trial.shortest.map_or(trial.standing, |rtt| rtt.saturating_sub(path.rtt_min));
        let is_late = now >= trial.queue_until;
        let found = trial.base.saturating_sub(path.rtt_min);
        let stays = left * 2 > trial.standing || found * 4 > trial.standing;
        let verdict = if lost > FEW || is_late && stays {
            Verdict::Innocent
        } else if is_late
            && packets >= STEP as f64
            && packets * trial.share >= (DUE + DUE_PER_LOSS * lost) as f64
        {
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

/// True if more is lost than a TCP would cause that has a part of the rate, with certainty and all the time.
fn is_greedy(path: &Path, meter: &LossMeter, granted: Rate, packet: Size) -> bool {
    let (packets, share) = meter.all();
    let is_long = packets >= PACKETS && meter.over(1, path.srtt * ROUNDS).is_some();
    let window = granted.bytes_in(path.srtt).0 as f64 / packet.0.max(1) as f64;
    let fair = 1.5 * (GREED / window.max(1.0)) * (GREED / window.max(1.0));
    is_long && evidence(packets, share, fair) >= SUSPICION && meter.exceeds_throughout(fair)
}
