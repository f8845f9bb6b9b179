//! User timeout and keep-alives: they end a connection whose peer no longer answers.
//!
//! Sources: RFC 9293, sections 3.9.1 and 3.10.8 (user timeout), 3.8.4 (keep-alives); RFC 5482 (definition of
//! the user timeout; its option, which tells the peer, is not sent).
//! - User timeout: if sent data, or probes of a closed window, make no progress for this time, the
//!   connection ends without a RST. It replaces the limit on the number of timeouts, and applies even if the
//!   peer keeps answering with a closed window (Linux: `TCP_USER_TIMEOUT`).
//! - Keep-alives: if nothing was heard for `idle` and nothing is outstanding, a segment without data at
//!   SND.NXT - 1 is sent to draw an ACK. After `count` of them without an answer, `interval` apart, the
//!   connection is reset. A user timeout, if set, decides this in place of `count` (`tcp_keepalive_timer`).
//!
//! One timer serves both. It is not moved when something is heard or acknowledged: it checks when it expires
//! and is set again. Defaults: both off, as RFC 9293 asks for keep-alives; `idle` 2 h, `interval` 75 s,
//! `count` 9.

use crate::config::KeepAlive;
use crate::connection::Connection;
use crate::state::{Event, State};
use crate::timers::Timer;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Cx, Instant};

/// Times of the last activity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerActivity {
    /// When an acceptable segment last arrived.
    heard: Instant,
    /// When something was last acknowledged, or sent while nothing was outstanding.
    progress: Instant,
    /// Keep-alives sent since the last segment arrived.
    probes: u32,
}

impl PeerActivity {
    /// Visits the state; `matters` with a user timeout or keep-alives.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, matters: bool) {
        let Self { heard, progress, probes } = self;
        for at in [heard, progress] {
            if matters {
                walk.time(at);
            } else {
                walk.past(at);
            }
        }
        walk.same(probes);
    }

    pub(crate) const fn new(now: Instant) -> Self {
        Self { heard: now, progress: now, probes: 0 }
    }

    #[inline]
    pub(crate) const fn heard(&mut self, now: Instant) {
        self.heard = now;
        self.probes = 0;
    }

    #[inline]
    pub(crate) const fn progress(&mut self, now: Instant) {
        self.progress = now;
    }
}

impl Connection {
    /// Restarts the user timeout: the first segment is outstanding, or the connection has opened.
    #[inline]
    pub(crate) fn restart_user_timeout(&mut self, now: Instant) {
        self.peer_activity.progress(now);
        if self.config.user_timeout.is_some() || self.config.keep_alive.is_some() {
            self.set_alive_timer();
        }
    }

    fn set_alive_timer(&mut self) {
        let at = self.gives_up_at().into_iter().chain(self.next_keep_alive()).min();
        self.timers.set_or_stop(Timer::Alive, at);
    }

    /// Returns when the user timeout expires; `None` while nothing is outstanding.
    fn gives_up_at(&self) -> Option<Instant> {
        let patience = self.config.user_timeout.filter(|_| !self.board.is_empty())?;
        Some(self.peer_activity.progress + patience)
    }

    /// Returns when the next keep-alive is due. While data is outstanding, its own timers test the peer.
    fn next_keep_alive(&self) -> Option<Instant> {
        let policy = self.keep_alive()?;
        let interval = policy.interval.max(self.config.rto.granularity); // must not be zero
        Some(self.peer_activity.heard + policy.idle + interval * u64::from(self.peer_activity.probes))
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        let open = self.state.synchronised() && self.state != State::TimeWait;
        self.config.keep_alive.filter(|_| open)
    }

    /// Handles the common timer.
    pub(crate) fn on_alive_timer(&mut self, cx: &mut Cx<'_>) {
        if self.gives_up_at().is_some_and(|at| at <= cx.now) {
            self.end(cx.now, Event::TimedOut);
            return;
        }
        if let Some(policy) =
            self.keep_alive().filter(|_| self.next_keep_alive().is_some_and(|at| at <= cx.now))
        {
            if !self.board.is_empty() {
                self.peer_activity.heard(cx.now); // as Linux, which checks again after another `idle`
            } else if self.is_silent(cx.now, &policy) {
                self.send.reset = true;
                self.end(cx.now, Event::TimedOut);
                return;
            } else {
                self.peer_activity.probes += 1;
                let before = self.board.next() - 1;
                self.outgoing = Some(self.build(cx, before, before));
            }
        }
        self.set_alive_timer();
    }

    /// True if enough keep-alives stayed without an answer.
    fn is_silent(&self, now: Instant, policy: &KeepAlive) -> bool {
        match self.config.user_timeout {
            Some(patience) => {
                self.peer_activity.probes > 0 && now.since(self.peer_activity.heard) >= patience
            }
            None => self.peer_activity.probes >= policy.count,
        }
    }
}
