//! A connection's timers: each has at most one deadline, and the driver waits for the earliest.

use bentpipe_base::Instant;
use bentpipe_base::shift::{Shift, Walk};

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Retransmission timeout (RFC 6298).
    Retransmit,
    /// Zero-window probe (RFC 9293, section 3.8.6.1).
    Persist,
    /// A delayed acknowledgment is due.
    DelayedAck,
    /// The pacer lets the next segment go.
    Pace,
    /// The delay of sender jitter ends.
    Opportunity,
    /// RACK's reordering window ends (RFC 8985, section 6.2).
    Reorder,
    /// Tail loss probe (RFC 8985, section 7).
    TailProbe,
    /// The next paced probe segment is due.
    Probe,
    /// TIME-WAIT ends.
    TimeWait,
    /// The user timeout, or the next keep-alive (RFC 9293, sections 3.9.1 and 3.8.4).
    Alive,
    /// A partial segment has waited long enough for more.
    Cork,
}

const COUNT: usize = 11;

impl Timer {
    /// Order in which timers due at once are handled: a tail loss probe goes before a timeout and delays it.
    const ALL: [Self; COUNT] = [
        Self::TailProbe,
        Self::Retransmit,
        Self::Persist,
        Self::DelayedAck,
        Self::Pace,
        Self::Opportunity,
        Self::Reorder,
        Self::Probe,
        Self::TimeWait,
        Self::Alive,
        Self::Cork,
    ];
}

/// The deadlines.
#[derive(Clone, Debug)]
pub struct Timers {
    at: [Instant; COUNT],
    /// No deadline is earlier.
    floor: Instant,
    /// Index of the timer whose deadline that is, unless it has moved.
    first: u8,
}

impl Default for Timers {
    fn default() -> Self {
        Self { at: [Instant::NEVER; COUNT], floor: Instant::NEVER, first: 0 }
    }
}

impl Shift for Timers {
    /// All but the retransmission timer and that of the tail loss probe, which are told (`told.rs`).
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let is_told = |i: usize| i == Timer::Retransmit as usize || i == Timer::TailProbe as usize;
        let others = self.at.iter_mut().enumerate().filter(|(i, _)| !is_told(*i));
        others.for_each(|(_, at)| walk.deadline(at));
    }
}

impl Timers {
    /// Sets or moves a timer.
    #[inline]
    pub const fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
        if at.0 < self.floor.0 {
            (self.floor, self.first) = (at, timer as u8);
        }
    }
    /// Sets or moves a timer; stops it if there is no deadline.
    #[inline]
    pub fn set_or_stop(&mut self, timer: Timer, at: Option<Instant>) {
        self.set(timer, at.unwrap_or(Instant::NEVER));
    }
    /// Stops a timer.
    #[inline]
    pub const fn stop(&mut self, timer: Timer) {
        self.at[timer as usize] = Instant::NEVER;
    }
    /// Stops all timers.
    pub const fn stop_all(&mut self) {
        self.at = [Instant::NEVER; COUNT];
    }
    /// True while the timer runs.
    #[inline]
    pub const fn runs(&self, timer: Timer) -> bool {
        self.at[timer as usize].0 != Instant::NEVER.0
    }
    /// Returns when the timer is due.
    pub const fn at(&self, timer: Timer) -> Option<Instant> {
        self.at[timer as usize].as_deadline()
    }
    /// Returns the earliest deadline, [`Instant::NEVER`] when none runs.
    #[inline]
    pub fn earliest(&self) -> Instant {
        self.at.iter().fold(Instant::NEVER, |a, b| a.min(*b))
    }
    /// True if no deadline is before `at`; a false answer may be wrong until the next [`Self::settle`].
    #[inline]
    pub const fn none_before(&self, at: Instant) -> bool {
        self.floor.0 >= at.0
    }
    /// Returns the earliest deadline, and remembers it for [`Self::none_before`].
    #[inline]
    pub fn settle(&mut self) -> Instant {
        if self.at[usize::from(self.first)] != self.floor {
            self.find_first();
        }
        self.floor
    }

    #[inline(never)]
    fn find_first(&mut self) {
        self.floor = self.earliest();
        self.first = self.at.iter().position(|at| *at == self.floor).unwrap_or(0) as u8;
    }
    /// See [`crate::Connection::touch_sender`].
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.at[0].0 ^ self.at[COUNT - 1].0
    }
    /// Returns the earliest deadline with its reason.
    pub fn next(&self) -> Option<(Instant, Timer)> {
        let timer = Timer::ALL.into_iter().min_by_key(|t| self.at[*t as usize])?;
        Some((self.at(timer)?, timer))
    }
    /// True if the timer of [`Self::next`] runs in case nothing comes: it has most often moved on when it is
    /// due.
    #[inline]
    pub fn first_rests(&mut self) -> bool {
        use Timer::{Alive, DelayedAck, Persist, Retransmit, TailProbe};
        let first = self.settle();
        let is_first = |timer: Timer| self.at[timer as usize] == first;
        // the first of all in `Timer::ALL`, and one of the last
        let any_runs = first != Instant::NEVER;
        any_runs && [TailProbe, Retransmit, Persist, DelayedAck].into_iter().any(is_first)
            || (is_first(Alive) && self.next().is_some_and(|(_, timer)| timer == Alive))
    }
    /// Takes one timer that is due, and stops it.
    #[inline]
    pub fn take_due(&mut self, now: Instant) -> Option<Timer> {
        if self.settle() > now {
            return None;
        }
        let timer = Timer::ALL.into_iter().find(|t| self.at[*t as usize] <= now)?;
        self.stop(timer);
        Some(timer)
    }
}
