//! Access to a return link: when may the packet at the head of the queue begin?
//!
//! **Demand assignment** (DAMA; RBDC and VBDC of DVB-RCS2): time is divided into frames. At the start of each
//! the terminal asks for what waits in its queue and is not yet asked for; the grant arrives `latency` later
//! and is served in whole frames, as fast as the rate allows. A share of the rate may be free to use without
//! asking (constant assignment, or the free capacity that the hub spreads); what of it is not used in its
//! frame is lost.
//!
//! **Idle release** (the WINDS anomaly): a channel that carried nothing for `idle` is released; the next
//! packet waits `setup` until there is a new one, and whatever comes meanwhile waits behind it.

use bentpipe_base::{Duration, Instant, Rate};

/// How packets get onto the link.
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
    /// From the request to the first frame that serves it.
    pub latency: Duration,
    /// What may be sent without asking.
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
pub(crate) struct Release {
    parameters: IdleRelease,
    /// Until when it was, or will be, in use or being set up; `None` before the first time.
    used: Option<Instant>,
}

impl Release {
    pub(crate) const fn new(parameters: IdleRelease) -> Self {
        Self { parameters, used: None }
    }

    /// A packet wants to begin at `at`; returns when it may. Asking sets the channel up.
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

    /// The channel carries something until `until`.
    pub(crate) fn use_until(&mut self, until: Instant) {
        self.used = self.used.max(Some(until));
    }
}
