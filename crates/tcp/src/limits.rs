//! What limits a flow, as shares of its time.
//!
//! At every moment exactly one cause keeps the sender from sending more; the clock adds up how long each did.

use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant};

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The connection is not open yet.
    Handshake,
    /// The application has no more data.
    Application,
    /// The application has more, but the send buffer is full of unacknowledged data.
    SendBuffer,
    /// The peer's window.
    ReceiverWindow,
    /// The congestion window.
    CongestionWindow,
    /// The pacer or sender jitter.
    Pacing,
    /// Losses are being repaired.
    Recovery,
}

impl Limit {
    /// Number of causes.
    pub const COUNT: usize = Self::Recovery as usize + 1;
    /// All causes in the order of reports.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Handshake,
        Self::Application,
        Self::SendBuffer,
        Self::ReceiverWindow,
        Self::CongestionWindow,
        Self::Pacing,
        Self::Recovery,
    ];

    /// Returns the key used in reports.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Application => "application",
            Self::SendBuffer => "send_buffer",
            Self::ReceiverWindow => "receiver_window",
            Self::CongestionWindow => "congestion_window",
            Self::Pacing => "pacing",
            Self::Recovery => "recovery",
        }
    }
}

/// Adds up the time spent under each limit.
#[derive(Clone, Debug)]
pub struct LimitClock {
    current: Limit,
    since: Instant,
    spent: [Duration; Limit::COUNT],
    stopped: bool,
}

impl LimitClock {
    /// Visits the state. The times only add up.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { current, since, spent, stopped } = self;
        walk.same(&(*current as u8, *stopped));
        walk.count(&mut since.0);
        for time in spent {
            walk.count(&mut time.0);
        }
    }

    /// Starts under [`Limit::Handshake`].
    pub const fn new(now: Instant) -> Self {
        Self { current: Limit::Handshake, since: now, spent: [Duration::ZERO; Limit::COUNT], stopped: false }
    }

    /// See [`crate::Connection::touch_sender`].
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.since.0 ^ self.current as u64
    }

    /// Returns the limit now in force.
    #[inline]
    pub const fn current(&self) -> Limit {
        self.current
    }

    /// Sets the limit in force from `now` on.
    #[inline]
    pub fn set(&mut self, now: Instant, limit: Limit) {
        if limit != self.current {
            self.attribute(now, now, limit);
        }
    }

    /// Attributes the time since `from` to `limit` in retrospect, but not further back than the present limit
    /// began; `limit` is then in force.
    pub fn attribute(&mut self, from: Instant, now: Instant, limit: Limit) {
        self.close(from.max(self.since).min(now));
        self.current = limit;
    }

    /// Stops counting time: the flow has finished.
    pub fn stop(&mut self, now: Instant) {
        self.close(now);
        self.stopped = true;
    }

    fn close(&mut self, now: Instant) {
        if !self.stopped {
            self.spent[self.current as usize] += now.since(self.since);
            self.since = now;
        }
    }

    /// Returns the time under each limit up to `now`.
    pub fn spent(&self, now: Instant) -> [Duration; Limit::COUNT] {
        let mut clock = self.clone();
        clock.close(now);
        clock.spent
    }
}
