//! Behaviour of a Linux host that belongs in no other file.
//!
//! Source: the behaviour of Linux 6.x; the function is named with each rule.

use crate::board::AckSummary;
use crate::cc::{Path, Plan};
use crate::config::Stack;
use crate::connection::Connection;
use crate::limits::Limit;
use crate::recovery::{LINUX_TIMER, WCDELACK};
use bentpipe_base::Duration;

impl Connection {
    /// True if the host is a Linux host.
    #[inline]
    pub(crate) fn linux(&self) -> bool {
        self.config.stack == Stack::Linux
    }

    /// Records how much of the window is used. On Linux (`tcp_cwnd_validate`) a filled window counts as full
    /// whatever else limits the sender, and short, SACKed and lost segments count as full ones in flight.
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

    /// `tcp_schedule_loss_probe`: how long a tail loss probe waits beyond two round trips. For a single
    /// segment Linux adds the minimum RTO, RFC 8985 the worst delayed ACK.
    pub(crate) fn tail_probe_margin(&self) -> Duration {
        match (self.board.len() == 1, self.linux()) {
            (true, true) => self.config.rto.min,
            (true, false) => WCDELACK,
            (false, true) => LINUX_TIMER,
            (false, false) => Duration::ZERO,
        }
    }

    /// `tcp_clean_rtx_queue`: true if data was SACKed that was sent before the last transmission of the
    /// first segment. That transmission is recent, so its timer restarts.
    pub(crate) fn head_was_resent_since(&self, digest: &AckSummary) -> bool {
        self.linux()
            && digest.acked == 0
            && self.board.get(0).zip(digest.rtt_from).is_some_and(|(head, sent_at)| sent_at < head.sent_at)
    }

    /// `tcp_cwnd_restart`: the window after an idle time: halved once for each RTO of idle time, where RFC
    /// 5681 restarts from the initial window. Zero on other hosts.
    pub(crate) fn cwnd_after_idle(&self, cwnd: u64, idle: Duration) -> u64 {
        if !self.linux() {
            return 0;
        }
        let times = idle.0.checked_div(self.rtt.rto().0).map_or(63, |times| times.min(63));
        cwnd >> times
    }
}
