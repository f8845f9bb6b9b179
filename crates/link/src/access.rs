//! Access to a return link: when may the packet at the head of the queue begin?
//!
//! **Demand assignment** (DAMA; RBDC and VBDC of DVB-RCS2): time is divided into frames. At the start of each
//! frame the terminal requests capacity for the bytes in its queue that it has not requested yet; the grant
//! arrives `latency` later and is served in whole frames, as fast as the rate allows. A share of the rate may
//! be free to use without a request (constant assignment, or the free capacity that the hub distributes); any
//! part of it that is not used in its frame is lost.
//!
//! **Idle release** (the WINDS anomaly): a channel that carried nothing for `idle` is released; the next
//! packet waits `setup` for a new one, and packets that arrive meanwhile wait behind it.

use bentpipe_base::{Duration, Instant, Rate};

/// The access scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Demand assignment.
    Dama(Dama),
    /// Release after idle.
    IdleRelease(IdleRelease),
}

/// Parameters of demand assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
