//! Access to a return link: when may the packet at the head of the queue begin?
//!
//! **Demand assignment** (DAMA; RBDC and VBDC of DVB-RCS2): time is divided into frames. At the beginning of
//! each frame, in this order: the terminal requests capacity for waiting work that it has not requested yet;
//! grants whose time has come (`latency` after the request) become due; the frame gets as much of the due
//! work as it can carry at the link's rate, plus the free share, which needs no request (constant assignment,
//! or the free capacity that the hub distributes). Unused capacity of a frame is lost. A packet larger than
//! the rest of a frame continues in the next one that carries something (fragmentation, as RLE in DVB-RCS2).
//! Requests count bytes, framing included, and are not lost.
//!
//! **Idle release** (the WINDS anomaly): a channel that carried nothing for `idle` is released; the next
//! packet waits `setup` for a new one, and packets that arrive meanwhile wait behind it.

use crate::state::SHORTEST_STEP;
use bentpipe_base::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// The access scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Demand assignment.
    Dama(Dama),
    /// Release after idle.
    IdleRelease(IdleRelease),
}

/// Parameters of demand assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dama {
    /// Length of a frame, more than zero.
    pub frame: Duration,
    /// Time from a request to the first frame that serves it.
    pub latency: Duration,
    /// Rate that needs no request.
    pub free: Option<Rate>,
}

/// Parameters of idle release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleRelease {
    /// The channel is released after this time without a packet.
    pub idle: Duration,
    /// Time to set it up again.
    pub setup: Duration,
}

/// A channel that is released when it is idle. At the start of the run it is not set up.
#[derive(Debug)]
pub(crate) struct IdleReleaseState {
    parameters: IdleRelease,
    /// End of the last use or setup; `None` before the first.
    used: Option<Instant>,
}

impl IdleReleaseState {
    pub(crate) const fn new(parameters: IdleRelease) -> Self {
        Self { parameters, used: None }
    }

    /// Returns when a packet that wants to begin at `at` may begin. Sets the channel up if needed.
    pub(crate) fn ready(&mut self, at: Instant) -> Instant {
        let IdleRelease { idle, setup } = self.parameters;
        match self.used {
            Some(used) if at <= used || at.since(used) < idle => at.max(used),
            _ => {
                let ready = at + setup;
                self.used = Some(ready);
                ready
            }
        }
    }

    /// Records that the channel is used until `until`.
    pub(crate) fn use_until(&mut self, until: Instant) {
        self.used = self.used.max(Some(until));
    }
}

/// Work of a server: bits times 1e9, so that a rate of r bit/s does r units in a nanosecond.
pub(crate) type Work = u128;

/// State of the terminal and the hub of one direction.
#[derive(Debug, Default)]
pub(crate) struct DamaState {
    parameters: Dama,
    /// Beginning of the current frame.
    begin: Instant,
    /// Work that it may still carry.
    pub(crate) budget: Work,
    /// Work requested, with the time from which it may be served.
    asked: VecDeque<(Instant, Work)>,
    /// Work granted and not yet assigned to a frame.
    due: Work,
    /// Work requested or due.
    outstanding: Work,
}

impl DamaState {
    pub(crate) fn new(parameters: Dama) -> Self {
        let parameters = Dama { frame: parameters.frame.max(SHORTEST_STEP), ..parameters };
        let mut grants = Self { parameters, ..Self::default() };
        grants.budget = grants.per_frame(parameters.free);
        grants
    }

    fn per_frame(&self, rate: Option<Rate>) -> Work {
        rate.map_or(0, |r| u128::from(r.bps()) * u128::from(self.parameters.frame.0))
    }

    pub(crate) fn end(&self) -> Instant {
        self.begin + self.parameters.frame
    }

    /// Returns the beginning of the next frame, if at or before `at`. Skips frames in which nothing happens.
    pub(crate) fn next_boundary(&mut self, at: Instant, waiting: Work) -> Option<Instant> {
        if waiting == 0 && self.due == 0 {
            // nothing happens in frames before the next grant
            let grant = self.asked.front().map_or(Instant::NEVER, |a| a.0);
            let last = at.min(Instant(grant.0.saturating_sub(1)));
            let frames = last.since(self.begin).0 / self.parameters.frame.0;
            if frames > 0 {
                self.begin += self.parameters.frame * frames;
                self.budget = self.per_frame(self.parameters.free);
            }
        }
        (self.end() <= at).then(|| self.end())
    }

    /// Begins a frame at `at`. `waiting` is the work that waits then, `rate` the rate of the link.
    pub(crate) fn begin_frame(&mut self, at: Instant, waiting: Work, rate: Option<Rate>) {
        self.begin = at;
        let request = waiting.saturating_sub(self.outstanding);
        if request > 0 {
            self.asked.push_back((at + self.parameters.latency, request));
            self.outstanding += request;
        }
        while let Some(&(_, work)) = self.asked.front().filter(|a| a.0 <= at) {
            self.due += work;
            self.asked.pop_front();
        }
        let free = self.per_frame(self.parameters.free);
        let granted = self.due.min(self.per_frame(rate).saturating_sub(free));
        self.due -= granted;
        self.outstanding -= granted;
        self.budget = granted + free;
    }
}
