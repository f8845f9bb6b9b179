//! When a segment that the windows allow may be sent: pace, burst, and sender jitter.
//!
//! The pacer spreads segments at a rate, with a burst allowance. Source: RFC 9002, section 7.7 describes the
//! same leaky bucket. The next segment may be sent once the previous ones have drained at the rate, less what
//! the burst allows. State advances from the scheduled time, so the long-run rate is exact.

use crate::cc::{Episode, Path, Plan};
use crate::config::JitterKind;
use crate::connection::{Connection, JitterState};
use crate::timers::Timer;
use bentpipe_base::{Cx, Duration, Instant, Rate, Size, shift_fields};

/// Pacing gain over window/SRTT for schemes that set no pace (as Linux: 2 in slow start, 1.2 later).
const PACE_GAIN: (f64, f64) = (2.0, 1.2);

/// Release times at a rate.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// When everything sent so far has drained.
    drained_at: Instant,
}

shift_fields!(Pacer {
    past: drained_at;
});

impl Pacer {
    /// Returns when another segment may be sent; `burst` bytes may be sent ahead of the rate.
    pub fn release_at(&self, now: Instant, rate: Rate, burst: Size) -> Instant {
        let ahead = rate.time_for(burst);
        let at = Instant(self.drained_at.0.saturating_sub(ahead.0));
        at.max(now)
    }

    /// Counts `size` bytes as sent at `now`.
    pub fn sent(&mut self, now: Instant, rate: Rate, size: Size) {
        self.drained_at = self.drained_at.max(now) + rate.time_for(size);
    }

    /// The rate has changed: the next segment leaves after a part of the new interval, `phase` of 2^16.
    pub fn change_rate(&mut self, now: Instant, rate: Rate, (segment, burst): (Size, Size), phase: u16) {
        let wait = (u128::from(rate.time_for(segment).0) * u128::from(phase)) >> 16;
        self.drained_at = now + rate.time_for(burst) + Duration(wait as u64);
    }
}

impl Connection {
    /// True if the pacer holds the next segment back; its timer is then set.
    pub(crate) fn pacer_holds(&mut self, now: Instant, plan: &Plan, path: &Path) -> bool {
        let Some(rate) = self.pace(plan, path) else { return false };
        let burst = Size(plan.burst.0.min(2 * self.mss()));
        let at = self.pacer.release_at(now, rate, burst);
        if at > now {
            self.timers.set(Timer::Pace, at);
        }
        at > now
    }

    /// True if an acknowledgment in recovery has released the scheme's burst. This bounds schemes without a
    /// pace; the next acknowledgment releases the rest.
    pub(crate) fn burst_is_over(&self, plan: &Plan, len: u64) -> bool {
        let repairing = self.recovery.episode() == Episode::Fast;
        repairing && plan.pace.is_none() && self.send.burst > 0 && self.send.burst + len > plan.burst.0
    }

    /// Returns the pace in force: the scheme's, or window per SRTT if the host paces; at most what the plan
    /// allows.
    pub(crate) fn pace(&self, plan: &Plan, path: &Path) -> Option<Rate> {
        let paced = self.chosen_pace(plan, path);
        plan.most.map(|most| paced.map_or(most, |pace| pace.min(most))).or(paced)
    }

    fn chosen_pace(&self, plan: &Plan, path: &Path) -> Option<Rate> {
        if plan.pace.is_some() {
            return plan.pace;
        }
        if !self.config.pacing || path.srtt.is_zero() {
            return None;
        }
        let slow_start = self.cc.ssthresh().is_none_or(|s| plan.window < s);
        let gain = if slow_start { PACE_GAIN.0 } else { PACE_GAIN.1 };
        Rate::from_bps((plan.window.bits() as f64 * gain / path.srtt.as_secs_f64()) as u64)
    }

    /// True if sender jitter (ns-2's `overhead_`) allows new data. The first attempt starts a random delay,
    /// after which sending is allowed.
    pub(crate) fn jitter_allows(&mut self, cx: &mut Cx<'_>) -> bool {
        let (Some(jitter), Some(rng)) = (self.config.jitter, self.random_values.jitter) else { return true };
        if jitter.kind != JitterKind::Opportunity || self.send.jitter_state == JitterState::Open {
            return true;
        }
        if self.send.jitter_state == JitterState::Closed {
            let delay = cx.rng(rng).up_to(jitter.max);
            self.timers.set(Timer::Opportunity, cx.now + delay);
            self.send.jitter_state = JitterState::Waiting;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_at_the_rate_after_the_burst() {
        let rate = Rate::from_bps(8_000_000).unwrap(); // 1000 B per ms
        let mut p = Pacer::default();
        let mut now = Instant::ZERO;
        let mut sent = Vec::new();
        for _ in 0..5 {
            now = p.release_at(now, rate, Size(2000));
            p.sent(now, rate, Size(1000));
            sent.push(now.0 / 1_000_000);
        }
        // the packet in service and a burst of two, then one per millisecond
        assert_eq!(sent, [0, 0, 0, 1, 2]);
    }

    /// Whatever was sent ahead of the old rate, the next segment leaves within an interval of the new one.
    #[test]
    fn a_new_rate_begins_within_its_interval() {
        let (rate, burst) = (Rate::from_bps(8_000_000).unwrap(), Size(2000)); // 1000 B per ms
        for (phase, expected_us) in [(0, 0), (1 << 15, 500), (u16::MAX, 999)] {
            let mut p = Pacer::default();
            p.sent(Instant::ZERO, Rate::from_bps(800_000).unwrap(), Size(3000));
            let now = Instant(5_000_000);
            p.change_rate(now, rate, (Size(1000), burst), phase);
            assert_eq!(p.release_at(now, rate, burst).since(now).0 / 1000, expected_us);
        }
    }
}
