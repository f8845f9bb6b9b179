//! When a driver wakes, and up to which time a turn works.
//!
//! An emulated link must be exact: a packet is begun before it is due by as much as handing over took lately,
//! the last microseconds are spent awake, and only packets that are due densely leave together. A gateway
//! must be cheap: what is due soon is done together, and no time is spent waiting awake.

use bentpipe_base::{Duration, Instant};

/// How a driver waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Packets leave when they are due, as exactly as the machine can; events happen at their scheduled
    /// times, however late the thread is.
    Exact,
    /// What is due within 50 us is done together; after the end was asked for, what is held leaves first.
    /// Time is never further behind than [`crate::CATCH_UP`].
    Cheap,
}

/// The last bit of a short sleep is spent looking at the clock: what such a sleep oversleeps, nine times of
/// ten.
pub(crate) const SPIN: Duration = Duration::from_micros(40);
/// What falls due within so much of now is done together: a turn costs a system call or two.
pub(crate) const TOGETHER: Duration = Duration::from_micros(50);
/// When packets are due this densely, more than [`DENSE`] in a [`SPELL`], they leave together, this long
/// after the ones before at the earliest: one super-packet costs little more than one packet, and 100 us is a
/// tenth of what counts as late.
const APART: Duration = Duration::from_micros(100);
const DENSE: u32 = 40;
const SPELL: Duration = Duration::from_millis(1);

/// How long before it is due a packet is begun: the median of what handing over took lately, from waking to
/// the kernel having it. After a sleep that is ten times as much as in the midst of work, since the processor
/// has forgotten the way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead(pub(crate) Duration);

impl Lead {
    /// Most of it: more is no work but a machine that was interrupted.
    const MOST: Duration = Duration::from_micros(100);
    const STEP: u64 = 1_000;

    /// A first packet after a sleep took so long. Half of the steps up and half of them down is the median.
    pub(crate) fn learn(&mut self, took: Duration) {
        let up = took > self.0;
        let lead = if up { self.0.0 + Self::STEP } else { self.0.0.saturating_sub(Self::STEP) };
        self.0 = Duration(lead).min(Self::MOST);
    }

    /// The time up to which a turn that begins at `now` works, when `next` comes next.
    pub(crate) fn reach(self, now: Instant, next: Option<Instant>) -> Instant {
        next.filter(|at| *at > now && *at <= now + self.0).unwrap_or(now)
    }
}

/// How densely packets leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Density {
    /// When the last ones left.
    last: Instant,
    /// Begin of the spell, and what has left in it.
    begin: Instant,
    count: u32,
    pub(crate) is_dense: bool,
}

impl Density {
    pub(crate) fn left(&mut self, now: Instant, packets: u32) {
        self.last = now;
        self.count += packets;
        if now.since(self.begin) >= SPELL {
            self.is_dense = self.count > DENSE;
            (self.begin, self.count) = (now, 0);
        }
    }

    /// When packets that are due at `at` are sent.
    pub(crate) fn when(&self, at: Instant) -> Instant {
        if self.is_dense { at.max(self.last + APART) } else { at }
    }
}
