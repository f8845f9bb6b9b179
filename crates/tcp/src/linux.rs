//! What a connection of a Linux host does otherwise, where no other file is the place for it.
//!
//! Source: the behaviour of Linux 6.x; the function is named with each rule.

use crate::board::Digest;
use crate::cc::{Path, Plan};
use crate::config::Stack;
use crate::connection::Connection;
use crate::limits::Limit;
use crate::recovery::{LINUX_TIMER, WCDELACK};
use bentpipe_base::Duration;

impl Connection {
    /// The host is a Linux host.
    #[inline]
    pub(crate) fn linux(&self) -> bool {
        self.config.stack == Stack::Linux
    }

    /// `tcp_cwnd_validate`: a window is full whatever else holds the sender. What is out is counted in
    /// segments, short ones too, and what is SACKed or lost is out.
    #[inline]
    pub(crate) fn count_usage(&mut self, limit: Limit, path: &Path, plan: &Plan) {
        let (una, next, in_flight) = (self.board.una(), self.board.next(), path.in_flight.0);
        let held = limit == Limit::CongestionWindow;
        if self.linux() {
            let full = held || in_flight + self.mss() > self.recovery.window(plan.window.0);
            self.usage.after_send(una, next, self.board.len() as u64 * self.mss(), full);
        } else {
            self.usage.after_send(una, next, in_flight, held);
        }
    }

    /// `tcp_schedule_loss_probe`: what a tail loss probe waits for beyond two round trips. For a lone segment
    /// Linux adds the smallest timeout, where RFC 8985 has the worst delayed ACK.
    pub(crate) fn probe_waits(&self) -> Duration {
        match (self.board.len() == 1, self.linux()) {
            (true, true) => self.config.rto.min,
            (true, false) => WCDELACK,
            (false, true) => LINUX_TIMER,
            (false, false) => Duration::ZERO,
        }
    }

    /// `tcp_clean_rtx_queue`: data was SACKed that had been sent before the first segment was last sent. So
    /// its resending is young, and its timer begins anew.
    pub(crate) fn head_is_younger(&self, digest: &Digest) -> bool {
        self.linux()
            && digest.acked == 0
            && self.board.get(0).zip(digest.rtt_from).is_some_and(|(head, sent_at)| sent_at < head.sent_at)
    }

    /// `tcp_cwnd_restart`: an idle window is halved once for each timeout of idle time, and not restarted at
    /// once. Zero on other hosts.
    pub(crate) fn halved_by_idling(&self, cwnd: u64, idle: Duration) -> u64 {
        if !self.linux() {
            return 0;
        }
        let times = idle.0.checked_div(self.rtt.rto().0).map_or(63, |times| times.min(63));
        cwnd >> times
    }
}
