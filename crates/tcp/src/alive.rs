//! Is the peer still there? The user timeout and keep-alives.
//!
//! Sources: RFC 9293, sections 3.9.1 and 3.10.8 (user timeout), 3.8.4 (keep-alives); RFC 5482 (what a user
//! timeout is; its option, which tells the peer, is not sent).
//! - User timeout: what was sent, or probes into a closed window, stay without progress that long: the
//!   connection is over, and nobody is told. It counts in place of the number of timeouts, whatever a peer
//!   answers with a closed window (Linux: `TCP_USER_TIMEOUT`).
//! - Keep-alives: nothing was heard for `idle`, and nothing is outstanding: a segment without text from
//!   before SND.NXT draws an ACK. After `count` of them without any answer, `interval` apart, the connection
//!   is reset. With a user timeout that decides (`tcp_keepalive_timer`).
//!
//! One timer serves both. It is not moved when something is heard or acknowledged: it looks when it is due,
//! and waits on. Defaults: both off, as RFC 9293 asks for keep-alives; `idle` 2 h, `interval` 75 s, `count`
//! 9.

use crate::config::KeepAlive;
use crate::connection::Connection;
use crate::state::{Event, State};
use crate::timers::Timer;
use bentpipe_base::{Cx, Instant};

/// When something last went on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alive {
    /// An acceptable segment arrived.
    heard: Instant,
    /// Something was acknowledged, or sent while nothing was outstanding.
    progress: Instant,
    /// Keep-alives sent since something was heard.
    probes: u32,
}

impl Alive {
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
    /// Something is outstanding that was not, or the connection has opened.
    #[inline]
    pub(crate) fn watch(&mut self, now: Instant) {
        self.alive.progress(now);
        if self.config.user_timeout.is_some() || self.config.keep_alive.is_some() {
            self.set_alive_timer();
        }
    }

    fn set_alive_timer(&mut self) {
        match self.gives_up_at().into_iter().chain(self.next_keep_alive()).min() {
            Some(at) => self.timers.set(Timer::Alive, at),
            None => self.timers.stop(Timer::Alive),
        }
    }

    /// The user timeout ends.
    fn gives_up_at(&self) -> Option<Instant> {
        let patience = self.config.user_timeout.filter(|_| !self.board.is_empty())?;
        Some(self.alive.progress + patience)
    }

    /// The next keep-alive leaves, or would. While something is outstanding its timers do the same.
    fn next_keep_alive(&self) -> Option<Instant> {
        let policy = self.keep_alive()?;
        let interval = policy.interval.max(self.config.rto.granularity); // time goes on between two
        Some(self.alive.heard + policy.idle + interval * u64::from(self.alive.probes))
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        let open = self.state.synchronised() && self.state != State::TimeWait;
        self.config.keep_alive.filter(|_| open)
    }

    /// The timer of both.
    pub(crate) fn on_alive_timer(&mut self, cx: &mut Cx<'_>) {
        if self.gives_up_at().is_some_and(|at| at <= cx.now) {
            self.give_up(cx.now);
            return;
        }
        if let Some(policy) =
            self.keep_alive().filter(|_| self.next_keep_alive().is_some_and(|at| at <= cx.now))
        {
            if !self.board.is_empty() {
                self.alive.heard(cx.now); // as Linux, which looks again after another `idle`
            } else if self.is_silent(cx.now, &policy) {
                self.send.reset = true;
                self.give_up(cx.now);
                return;
            } else {
                self.alive.probes += 1;
                let before = self.board.next() - 1;
                self.outgoing = Some(self.build(cx, before, before));
            }
        }
        self.set_alive_timer();
    }

    /// Enough keep-alives stayed without an answer.
    fn is_silent(&self, now: Instant, policy: &KeepAlive) -> bool {
        match self.config.user_timeout {
            Some(patience) => self.alive.probes > 0 && now.since(self.alive.heard) >= patience,
            None => self.alive.probes >= policy.count,
        }
    }

    /// The peer does not answer any more.
    pub(crate) fn give_up(&mut self, now: Instant) {
        self.events.push(Event::TimedOut);
        self.limits.stop(now);
        self.enter_closed();
    }
}
