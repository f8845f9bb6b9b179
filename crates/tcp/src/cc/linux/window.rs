//! Linux's congestion window: whole segments and a counter of acknowledged segments.
//!
//! Source: the behaviour of Linux 6.x (`tcp_slow_start`, `tcp_cong_avoid_ai`, `tcp_enter_loss`,
//! `tcp_reno_undo_cwnd`).
//! - Slow start adds what was delivered, up to ssthresh; the remainder counts in congestion avoidance.
//! - Congestion avoidance adds a segment for every `w` delivered; `w` is cwnd for Reno; CUBIC computes it.
//! - Fast recovery sets cwnd to ssthresh. A timeout sets it to one segment more than what still counts as in
//!   flight, since segments sent less than a round trip ago do not count as lost (RFC 8985, section 6.3).

use crate::cc::{Ack, Episode, Loss, LossCause, Path};
use crate::limits::Limit;
use bentpipe_base::{Size, shift_fields};

/// No threshold.
const UNLIMITED: u32 = u32::MAX;

/// cwnd, ssthresh and the state to undo a change, in segments.
#[derive(Clone, Debug)]
pub struct LinuxWindow {
    mss: u64,
    cwnd: u32,
    ssthresh: u32,
    /// Segments delivered but not yet used for growth.
    count: u32,
    /// Bytes delivered beyond the last whole segment.
    rest: u64,
    before: (u32, u32),
}

shift_fields!(LinuxWindow {
    same: mss, cwnd, ssthresh, count, rest, before;
});

impl LinuxWindow {
    /// Creates the window of a new connection with `initial` segments; `ssthresh` is unlimited if `None`.
    pub fn new(mss: Size, initial: u32, ssthresh: Option<Size>) -> Self {
        let mss = mss.0.max(1);
        let ssthresh = ssthresh.map_or(UNLIMITED, |s| clamp(s.0 / mss).max(2));
        Self { mss, cwnd: initial.max(1), ssthresh, count: 0, rest: 0, before: (initial, ssthresh) }
    }

    /// Returns the congestion window in segments.
    pub const fn cwnd(&self) -> u32 {
        self.cwnd
    }
    /// Returns the congestion window in bytes.
    pub const fn size(&self) -> Size {
        Size(self.cwnd as u64 * self.mss)
    }
    /// Returns the slow-start threshold in bytes; `None` if unlimited.
    pub fn threshold(&self) -> Option<Size> {
        (self.ssthresh != UNLIMITED).then(|| Size(u64::from(self.ssthresh) * self.mss))
    }
    /// True while below the threshold.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// Ends slow start: sets ssthresh to cwnd.
    pub const fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Takes an acknowledgment: slow start, if the window may grow. Returns the segments left for congestion
    /// avoidance.
    pub fn take(&mut self, ack: &Ack) -> u32 {
        self.rest += ack.delivered.0;
        let acked = clamp(self.rest / self.mss);
        self.rest %= self.mss;
        if ack.acked == Size::ZERO
            || ack.episode == Episode::Fast
            || ack.limited_by != Limit::CongestionWindow
        {
            return 0;
        }
        if self.in_slow_start() { self.slow_start(acked) } else { acked }
    }

    /// Grows the window in slow start; returns the segments left for congestion avoidance.
    fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let used = grown - self.cwnd;
        self.cwnd = grown;
        acked - used
    }

    /// Grows the window in congestion avoidance, by a segment for every `w` delivered.
    pub fn avoid(&mut self, w: u32, acked: u32) {
        let w = w.max(1);
        if self.count >= w {
            self.count = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.count = self.count.saturating_add(acked);
        if self.count >= w {
            self.cwnd = self.cwnd.saturating_add(self.count / w);
            self.count %= w;
        }
    }

    /// Reacts to a loss: sets ssthresh to `ssthresh`, except after a repeated timeout, and reduces cwnd.
    pub fn reduce(&mut self, path: &Path, loss: &Loss, ssthresh: u32) {
        self.count = 0;
        if loss.cause != LossCause::RepeatedTimeout {
            self.before = (self.cwnd, self.ssthresh);
            self.ssthresh = ssthresh.max(2);
        }
        self.cwnd = match loss.cause {
            LossCause::Fast | LossCause::Mark => self.ssthresh,
            LossCause::Timeout | LossCause::RepeatedTimeout => clamp(path.in_flight.0.div_ceil(self.mss)) + 1,
        };
    }

    /// Sets cwnd and ssthresh to what another mechanism has found out.
    pub fn jump(&mut self, window: Size, ssthresh: Size) {
        self.cwnd = clamp(window.0 / self.mss).max(1);
        self.ssthresh = clamp(ssthresh.0 / self.mss).max(2);
        self.count = 0;
    }

    /// Reduces cwnd to `window` after an idle time; ssthresh keeps three quarters of the old cwnd.
    pub fn restart(&mut self, window: Size) {
        let window = clamp(window.0 / self.mss).max(1);
        if window < self.cwnd {
            self.ssthresh = self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4);
            self.cwnd = window;
            self.count = 0;
        }
    }

    /// Undoes the reaction to the last loss, which was spurious.
    pub fn undo(&mut self) {
        self.cwnd = self.cwnd.max(self.before.0);
        self.ssthresh = self.ssthresh.max(self.before.1);
    }
}

/// Limits a count to 31 bits; a larger window would exceed the sequence space.
fn clamp(segments: u64) -> u32 {
    u32::try_from(segments).unwrap_or(u32::MAX).min(u32::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(initial: u32, ssthresh: u64) -> LinuxWindow {
        LinuxWindow::new(Size(1000), initial, Some(Size(ssthresh * 1000)))
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_hands_on_the_rest() {
        let mut w = segments(10, 12);
        assert_eq!((w.slow_start(5), w.cwnd()), (3, 12));
    }

    #[test]
    fn avoidance_counts_to_the_window() {
        let mut w = segments(10, 10);
        for _ in 0..9 {
            w.avoid(10, 1);
        }
        assert_eq!(w.cwnd(), 10);
        w.avoid(10, 1);
        assert_eq!(w.cwnd(), 11);
        w.avoid(5, 12); // two segments at once, two remain
        assert_eq!((w.cwnd(), w.count), (13, 2));
    }
}
