//! BBR version 3's bounds of the model, set by losses.
//!
//! Source: draft-ietf-ccwg-bbr-06, sections 5.3.3.9 and 5.5.10. Two pairs of bounds limit the rate and the
//! window of the model:
//! - long term: the most that was in flight during a probe without losing more than 2 % of it. A probe that
//!   loses more sets it; ProbeBW_UP raises it by 1, 2, 4 .. segments per round trip.
//! - short term, outside of probes: after a round with losses, what was delivered in that round, but at least
//!   0.7 of the previous bound.

use bentpipe_base::Size;

/// Largest acceptable share of lost bytes in flight.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// A round with losses leaves at least this share of the bound.
const BETA: f64 = 0.7;
/// Share of the long-term bound that CRUISE leaves to other flows.
const HEADROOM: f64 = 0.15;
/// Most doublings of the growth rate of the long-term bound.
const MOST_DOUBLINGS: u32 = 30;

/// The rate sample of one acknowledgment (section 4.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Bits per second.
    pub rate: u64,
    /// Bytes delivered in total when the segment was sent.
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
    /// Section 5.5.10.2: true if too much was in flight.
    pub(super) fn too_high(&self) -> bool {
        self.lost as f64 > self.in_flight as f64 * LOSS_THRESHOLD
    }

    /// Section 5.5.10.2: returns the bytes in flight when the losses passed the threshold, which happened
    /// within this segment of `mss` bytes.
    pub(super) fn in_flight_at_loss(&self, mss: u64) -> u64 {
        let before = self.in_flight.saturating_sub(mss) as f64;
        let lost = self.lost.saturating_sub(mss) as f64;
        let prefix = (LOSS_THRESHOLD * before - lost) / (1.0 - LOSS_THRESHOLD);
        (before + prefix).max(0.0) as u64
    }
}

/// The bounds; `u64::MAX` means unlimited.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// Long-term bound of bytes in flight.
    pub long: u64,
    /// Short-term bounds: bits per second and bytes.
    pub short: (u64, u64),
    /// Largest values of the present loss round: bits per second and bytes.
    pub latest: (u64, u64),
    /// Bytes delivered when the loss round began; it ends when a segment sent after that is delivered.
    round_end: u64,
    /// This acknowledgment began a loss round.
    pub round_began: bool,
    pub lost_in_round: bool,
    /// Acknowledgments with losses in this loss round.
    pub events: u32,
    /// Growth of the long-term bound: bytes acknowledged per segment of growth, doublings so far, and
    /// acknowledged bytes not yet used.
    per_segment: u64,
    doublings: u32,
    credit: u64,
}

impl Bounds {
    pub(super) fn new() -> Self {
        let unlimited = u64::MAX;
        Self { long: unlimited, short: (unlimited, unlimited), per_segment: unlimited, ..Self::default() }
    }

    /// Takes the sample, at the start of processing an acknowledgment.
    pub(super) fn take(&mut self, sample: &Sample, delivered: u64) {
        self.round_began = false;
        self.latest = (self.latest.0.max(sample.rate), self.latest.1.max(sample.delivered));
        if sample.prior >= self.round_end {
            self.round_end = delivered;
            self.round_began = true;
        }
    }

    /// Starts the next loss round, at the end of processing an acknowledgment.
    pub(super) const fn advance(&mut self, sample: &Sample) {
        if self.round_began {
            self.latest = (sample.rate, sample.delivered);
            self.events = 0;
        }
    }

    /// Records a loss. Returns true for the first of a loss round.
    pub(super) const fn note_loss(&mut self, delivered: u64) -> bool {
        let first = !self.lost_in_round;
        if first {
            self.round_end = delivered;
        }
        self.lost_in_round = true;
        self.events += 1;
        first
    }

    /// Reduces the short-term bounds once per loss round, except while `probing`.
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

    /// Lowers the long-term bound after a probe lost too much; `target` is the window of the model.
    pub(super) fn cut_long_term(&mut self, in_flight: u64, target: u64) {
        self.long = in_flight.max((target as f64 * BETA) as u64);
    }

    pub(super) const fn begin_probe(&mut self) {
        self.doublings = 0;
        self.credit = 0;
    }

    /// Doubles the growth rate: 1, 2, 4 .. segments per acknowledged window.
    pub(super) fn steeper(&mut self, cwnd: u64, mss: u64) {
        self.per_segment = (cwnd >> self.doublings).max(mss);
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    /// Raises the long-term bound, in ProbeBW_UP with the window at the bound.
    pub(super) const fn raise(&mut self, acked: Size, mss: u64) {
        self.credit += acked.0;
        if self.credit >= self.per_segment {
            let segments = self.credit / self.per_segment;
            self.credit -= segments * self.per_segment;
            self.long = self.long.saturating_add(segments * mss);
        }
    }

    /// Returns the long-term bound minus the headroom for other flows.
    pub(super) fn with_headroom(&self, mss: u64, least: u64) -> u64 {
        if self.long == u64::MAX {
            return u64::MAX;
        }
        let headroom = mss.max((HEADROOM * self.long as f64) as u64);
        self.long.saturating_sub(headroom).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 segments in flight before, 1 lost before: of this one (0.02 * 100 - 1) / 0.98 = 1.02 may be lost.
    #[test]
    fn where_the_losses_passed_the_threshold() {
        let s = Sample { in_flight: 101_000, lost: 2000, ..Sample::default() };
        assert!(!s.too_high() && Sample { lost: 2021, ..s }.too_high());
        assert_eq!(s.in_flight_at_loss(1000), 101_020);
    }

    /// 1, 2, 4, 8 segments, one step per acknowledged window.
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
