//! BBR version 3's bounds of the model: what losses say.
//!
//! Source: draft-ietf-ccwg-bbr-06, sections 5.3.3.9 and 5.5.10. Two pairs of bounds lie over what the rate
//! and the round trip say:
//! - long term: the most that was in flight without too many losses (2 % of what was in flight) while the
//!   flow probed. It is set when a probe loses more, and raised in ProbeBW_UP, by 1, 2, 4 .. segments per
//!   round trip.
//! - short term, while the flow does not probe: after a round with losses, what was delivered in it, but at
//!   least 0.7 of the bound before.

use bentpipe_base::Size;

/// More lost than this share of what was in flight is too much.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// A round with losses leaves at least this share.
const BETA: f64 = 0.7;
/// Share of the long-term bound that cruising leaves to others.
const HEADROOM: f64 = 0.15;
/// Most doublings of the growth of the long-term bound.
const MOST_DOUBLINGS: u32 = 30;

/// What one acknowledgment says, as section 4.1's rate sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Bits per second.
    pub rate: u64,
    /// Bytes delivered in all when the segment was sent.
    pub prior: u64,
    /// Bytes delivered over the sample.
    pub delivered: u64,
    pub app_limited: bool,
    /// Bytes in flight when the segment was sent, itself included.
    pub in_flight: u64,
    /// Bytes found lost since it was sent.
    pub lost: u64,
}

impl Sample {
    /// Section 5.5.10.2: was too much in flight?
    pub(super) fn too_high(&self) -> bool {
        self.lost as f64 > self.in_flight as f64 * LOSS_THRESHOLD
    }

    /// Section 5.5.10.2: how much was in flight when the losses passed the threshold, by the segment of `mss`
    /// bytes that made them do so.
    pub(super) fn in_flight_at_loss(&self, mss: u64) -> u64 {
        let before = self.in_flight.saturating_sub(mss) as f64;
        let lost = self.lost.saturating_sub(mss) as f64;
        let prefix = (LOSS_THRESHOLD * before - lost) / (1.0 - LOSS_THRESHOLD);
        (before + prefix).max(0.0) as u64
    }
}

/// The bounds; `u64::MAX` is none.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Long-term bound of what is in flight, in bytes.
    pub long: u64,
    /// Short-term bounds: bits per second and bytes.
    pub short: (u64, u64),
    /// The largest of the present loss round: bits per second and bytes.
    latest: (u64, u64),
    /// The loss round ends with a segment sent when this had been delivered.
    round_end: u64,
    /// A loss round began with this acknowledgment.
    pub round_began: bool,
    pub lost_in_round: bool,
    /// Acknowledgments that found losses in this loss round.
    pub events: u32,
    /// Growth of the long-term bound: bytes acknowledged for each segment, how often it doubled, and what is
    /// not used yet.
    per_segment: u64,
    doublings: u32,
    credit: u64,
}

impl Bounds {
    pub(super) const fn new() -> Self {
        Self {
            long: u64::MAX,
            short: (u64::MAX, u64::MAX),
            latest: (0, 0),
            round_end: 0,
            round_began: false,
            lost_in_round: false,
            events: 0,
            per_segment: u64::MAX,
            doublings: 0,
            credit: 0,
        }
    }

    /// Near the start of an acknowledgment.
    pub(super) fn take(&mut self, sample: &Sample, delivered: u64) {
        self.round_began = false;
        self.latest = (self.latest.0.max(sample.rate), self.latest.1.max(sample.delivered));
        if sample.prior >= self.round_end {
            self.round_end = delivered;
            self.round_began = true;
        }
    }

    /// Near its end.
    pub(super) const fn advance(&mut self, sample: &Sample) {
        if self.round_began {
            self.latest = (sample.rate, sample.delivered);
            self.events = 0;
        }
    }

    /// Something was found lost. True for the first of a loss round.
    pub(super) const fn note_loss(&mut self, delivered: u64) -> bool {
        let first = !self.lost_in_round;
        if first {
            self.round_end = delivered;
        }
        self.lost_in_round = true;
        self.events += 1;
        first
    }

    /// Once per loss round; `probing` flows are left alone.
    pub(super) fn adapt(&mut self, probing: bool, max_bw: u64, cwnd: u64) {
        if !self.round_began {
            return;
        }
        if self.lost_in_round && !probing {
            let bw = if self.short.0 == u64::MAX { max_bw } else { self.short.0 };
            let inflight = if self.short.1 == u64::MAX { cwnd } else { self.short.1 };
            self.short.0 = self.latest.0.max((BETA * bw as f64) as u64);
            self.short.1 = self.latest.1.max((BETA * inflight as f64) as u64);
        }
        self.lost_in_round = false;
    }

    pub(super) const fn forget_short_term(&mut self) {
        self.short = (u64::MAX, u64::MAX);
    }

    pub(super) const fn forget_congestion(&mut self) {
        self.lost_in_round = false;
        self.latest = (0, 0);
        self.per_segment = u64::MAX;
    }

    /// Too much was in flight; `target` is what the model asks for.
    pub(super) fn cut_long_term(&mut self, in_flight: u64, target: u64) {
        self.long = in_flight.max((target as f64 * BETA) as u64);
    }

    pub(super) const fn begin_probe(&mut self) {
        self.doublings = 0;
        self.credit = 0;
    }

    /// Growth doubles: 1, 2, 4 .. segments for a window of acknowledgments.
    pub(super) fn steeper(&mut self, cwnd: u64, mss: u64) {
        self.per_segment = (cwnd >> self.doublings).max(mss);
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    /// ProbeBW_UP with the window at the long-term bound.
    pub(super) const fn raise(&mut self, acked: Size, mss: u64) {
        self.credit += acked.0;
        if self.credit >= self.per_segment {
            let segments = self.credit / self.per_segment;
            self.credit -= segments * self.per_segment;
            self.long = self.long.saturating_add(segments * mss);
        }
    }

    /// The long-term bound less what is left to others.
    pub(super) fn with_headroom(&self, mss: u64, least: u64) -> u64 {
        if self.long == u64::MAX {
            return u64::MAX;
        }
        let headroom = mss.max((HEADROOM * self.long as f64) as u64);
        self.long.saturating_sub(headroom).max(least)
    }

    pub(super) const fn latest_inflight(&self) -> u64 {
        self.latest.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100 segments in flight before, 1 lost before: (0.02 * 100 - 1) / 0.98 = 1.02 more may be lost
    /// of this one.
    #[test]
    fn where_the_losses_passed_the_threshold() {
        let s = Sample { in_flight: 101_000, lost: 2000, ..Sample::default() };
        assert!(!s.too_high() && Sample { lost: 2021, ..s }.too_high());
        assert_eq!(s.in_flight_at_loss(1000), 101_020);
    }

    /// 1, 2, 4, 8 segments for a window of acknowledgments each.
    #[test]
    fn the_long_term_bound_grows_ever_faster() {
        let mut b = Bounds { long: 64_000, ..Bounds::new() };
        b.begin_probe();
        let grown: Vec<u64> = (0..5)
            .map(|_| {
                b.steeper(64_000, 1000);
                let before = b.long;
                (0..64).for_each(|_| b.raise(Size(1000), 1000));
                (b.long - before) / 1000
            })
            .collect();
        assert_eq!(grown, [1, 2, 4, 8, 16]);
    }

    #[test]
    fn a_round_with_losses_leaves_what_was_delivered_but_not_less_than_beta() {
        for (rate, left) in [(90, 90), (50, 70)] {
            let mut b = Bounds::new();
            b.note_loss(0);
            b.take(&Sample { rate, prior: 1, delivered: 95, ..Sample::default() }, 10);
            b.adapt(false, 100, 100);
            assert_eq!(b.short, (left, 95));
            b.forget_short_term();
            assert_eq!(b.short, (u64::MAX, u64::MAX));
        }
    }

    #[test]
    fn cruising_leaves_headroom() {
        let b = Bounds { long: 100_000, ..Bounds::new() };
        assert_eq!(b.with_headroom(1000, 4000), 85_000);
        assert_eq!(Bounds::new().with_headroom(1000, 4000), u64::MAX);
    }
}
