//! The server of a direction that changes over time.
//!
//! The state is recomputed at the start of a service if it has expired, and never for a future time: the
//! processes act on the base values in their fixed order. The state at the start of a transmission decides
//! whether the packet is lost, the state at its end sets the delay. A transmission that meets a change, or
//! the end of its share of a frame, stops there and continues under the new state, so its duration is exact.
//! Evaluation is lazy: when the link is called, it does everything that is due, each at its own time.
//!
//! A state that begins at an instant applies at that instant. What the link does by itself at an instant
//! comes before a packet that arrives at this instant, so that additional calls change nothing.

mod serve;

use crate::access::{Access, Release};
use crate::capacity::{CapacityTrace, Opportunities, Steps};
use crate::dama::{Grants, Work};
use crate::direction::DirectionSpec;
use crate::drop_tail::Capacity;
use crate::dynamics::Dynamics;
use crate::fade::{Fade, FadeSource, Fading};
use crate::gilbert_elliott::Spells;
use crate::look::Look;
use crate::orbit::{Orbit, Passes, Schedule, SlotStreams};
use crate::outage::Times;
use crate::queue::Queue;
use crate::recorded::Replay;
use crate::state::{Process, State};
use crate::timeline::Timeline;
use crate::user::User;
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Pkt, Purpose, RngSlot, Size, World};
use std::collections::VecDeque;

/// The work of one bit: nanoseconds in a second.
const BIT: Work = 1_000_000_000;

/// The varying part of one direction.
#[derive(Debug)]
pub(crate) struct Varying {
    base: State,
    state: State,
    /// Until when `state` holds.
    until: Instant,
    /// Processes that set the link's values: timeline, scheduled capacity, recorded delay and loss, orbit.
    course: Vec<Box<dyn Process>>,
    /// A user's changes, which replace the values of `course`.
    pub(crate) user: User,
    /// Processes that act on these values: fade, bursts, outages.
    weather: Vec<Box<dyn Process>>,
    /// The random stream of packet losses.
    errors: RngSlot,
    framing: Size,
    /// Changes of the queue's capacity still to come.
    buffers: VecDeque<(Instant, Capacity)>,
    /// The queue's own capacity, while a user's replaces it.
    own_capacity: Option<Capacity>,
    grants: Option<Grants>,
    release: Option<Release>,
    opportunities: Option<Opportunities>,
    sending: Option<Sending>,
    /// Remainder of the last packet's work, less than a nanosecond's, so that the long-run rate is exact.
    carry: Work,
    sending_until: Instant,
    reorder: bool,
    /// Cache: packet error probability of the last size in this state.
    bit_error: Option<(Size, f64)>,
}

/// A packet whose transmission has begun.
#[derive(Debug)]
struct Sending {
    packet: Pkt,
    fate: Option<DropCause>,
    left: Work,
}

impl Varying {
    pub(crate) fn new(base: &DirectionSpec, dynamics: &Dynamics, name: &str, world: &mut World) -> Self {
        let Dynamics { changes, capacity, delay, loss, orbit, fade, bursts, outages, access } = dynamics;
        let mut it = Self::going_on(base, world.open_rng(name, Purpose::Errors), 0, Instant::ZERO);
        if !changes.is_empty() {
            it.course.push(Box::new(Timeline::new(changes)));
        }
        match capacity {
            Some(CapacityTrace::Steps { points, repeat }) => {
                it.course.push(Box::new(Steps::new(points, *repeat)));
            }
            Some(CapacityTrace::Opportunities { at, period, size }) => {
                it.opportunities = Some(Opportunities::new(at, *period, *size));
            }
            None => {}
        }
        if delay.is_some() || loss.is_some() {
            it.course.push(Box::new(Replay { delay: delay.clone(), loss: loss.clone() }));
        }
        it.course.extend(orbit.as_ref().map(|orbit| moving(orbit, name, world)));
        it.weather.extend(fade.as_ref().map(|fade| fading(fade, name, world)));
        if let Some(bursts) = bursts {
            it.weather.push(Box::new(Spells::new(*bursts, world.open_rng(name, Purpose::Bursts))));
        }
        if let Some(outages) = outages {
            it.weather.push(Box::new(Times::new(*outages, world.open_rng(name, Purpose::Outages))));
        }
        let mut buffers: Vec<_> = changes.iter().filter_map(|(at, c)| c.buffer.map(|b| (*at, b))).collect();
        buffers.sort_by_key(|b| b.0);
        it.buffers = buffers.into();
        match access {
            Some(Access::Dama(dama)) if it.opportunities.is_none() => it.grants = Some(Grants::new(*dama)),
            Some(Access::IdleRelease(release)) => it.release = Some(Release::new(*release)),
            _ => {}
        }
        it.reorder = matches!(orbit, Some(Orbit::Slots(slots)) if slots.reorder);
        it
    }

    /// A direction that was constant so far and has no processes. Its last service leaves the remainder
    /// `carry` and lasts until `busy_until`.
    pub(crate) fn going_on(base: &DirectionSpec, errors: RngSlot, carry: u64, busy_until: Instant) -> Self {
        Self {
            base: State::new(base),
            state: State::new(base),
            until: Instant::ZERO,
            course: Vec::new(),
            user: User::NOTHING,
            weather: Vec::new(),
            errors,
            framing: base.framing,
            buffers: VecDeque::new(),
            own_capacity: None,
            grants: None,
            release: None,
            opportunities: None,
            sending: None,
            carry: Work::from(carry),
            sending_until: busy_until,
            reorder: false,
            bit_error: None,
        }
    }

    /// Updates `state` to `at`.
    fn refresh(&mut self, cx: &mut Cx<'_>, at: Instant) {
        if at < self.until {
            return;
        }
        self.state = self.base;
        self.bit_error = None;
        let mut until = Instant::NEVER;
        for process in &mut self.course {
            until = until.min(process.apply(at, cx, &mut self.state));
        }
        until = until.min(self.user.apply(at, &mut self.state));
        for process in &mut self.weather {
            until = until.min(process.apply(at, cx, &mut self.state));
        }
        self.until = until.max(at + Duration(1));
    }

    /// The trace of opportunities; `None` while a user's rate replaces it.
    fn in_use(&mut self) -> Option<&mut Opportunities> {
        self.opportunities.as_mut().filter(|_| self.user.rate().is_none())
    }

    /// Applies the timeline's changes of the queue's capacity up to `now`; a user's capacity has precedence.
    fn resize(&mut self, queue: &mut Queue, now: Instant) {
        while let Some(&(_, capacity)) = self.buffers.front().filter(|b| b.0 <= now) {
            match &mut self.own_capacity {
                Some(own) => *own = capacity,
                None => queue.set_capacity(capacity),
            }
            self.buffers.pop_front();
        }
    }

    /// Applies a user's change at `now`; everything before it must be done. Whatever begins at `now` begins
    /// under the new conditions. Takes the link's `busy_until` and returns the new one.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        queue: &mut Queue,
        busy_until: Instant,
        act: impl FnOnce(&mut User),
    ) -> Instant {
        self.resize(queue, now);
        let own = self.own_capacity.take().unwrap_or(queue.capacity());
        act(&mut self.user);
        queue.set_capacity(self.user.buffer().unwrap_or(own));
        self.own_capacity = self.user.buffer().map(|_| own);
        self.until = self.until.min(now);
        // a transmission that has begun is not affected; a link that waits for something else tries again now
        let free = if self.sending_until > now { busy_until } else { now };
        match self.in_use() {
            Some(trace) => {
                trace.lose_until(Instant(free.0.saturating_sub(1)));
                trace.next()
            }
            None => free,
        }
    }

    /// Begins every frame up to `at`; `waiting` is the work that waits before each.
    fn frames(&mut self, cx: &mut Cx<'_>, at: Instant, waiting: Work) {
        while let Some(begin) = self.grants.as_mut().and_then(|g| g.next_boundary(at, waiting)) {
            self.refresh(cx, begin);
            let rate = self.state.rate;
            if let Some(grants) = &mut self.grants {
                grants.boundary(begin, waiting, rate);
            }
        }
    }

    /// End of the current state or frame, whichever is earlier.
    fn limit(&self) -> Instant {
        self.grants.as_ref().map_or(self.until, |g| g.end().min(self.until))
    }

    /// When to try again, if nothing can be sent at the moment.
    fn stopped(&self) -> Option<Instant> {
        let spent = self.grants.as_ref().filter(|g| g.budget() == 0).map(Grants::end);
        if self.state.rate.is_none() { Some(self.limit()) } else { spent }
    }

    /// When to try again, if no packet may begin at `at`.
    fn closed(&mut self, at: Instant) -> Option<Instant> {
        self.stopped().or_else(|| self.release.as_mut().map(|r| r.ready(at)).filter(|&ready| ready > at))
    }

    fn begin(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        let size = packet.wire_len() + self.framing;
        let bit_error = match self.bit_error {
            Some((last, p)) if last == size => p,
            _ => {
                let p = -libm::expm1(size.bits() as f64 * self.state.bit_log());
                self.bit_error = Some((size, p));
                p
            }
        };
        let fate = self.state.fate(cx.rng(self.errors), bit_error);
        self.sending = Some(Sending { packet, fate, left: Work::from(size.bits()) * BIT });
    }

    pub(crate) const fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    pub(crate) const fn sending_until(&self) -> Instant {
        self.sending_until
    }

    pub(crate) fn look(&mut self, cx: &mut Cx<'_>, queue: &mut Queue) -> Look {
        let now = cx.now;
        self.refresh(cx, now);
        self.resize(queue, now);
        let own = self.state.rate;
        Look {
            rate: self.in_use().map_or(own, |trace| trace.mean_rate()),
            one_way: self.state.one_way,
            ber: self.state.bit_errors(),
            packet_loss: self.state.packet_loss(),
            dark: self.state.is_dark(),
            fade_db: self.state.fade_db,
            queue_packets: queue.len(),
            queue_bytes: queue.backlog(),
            queue_limit: queue.capacity(),
        }
    }
}

fn moving(orbit: &Orbit, name: &str, world: &mut World) -> Box<dyn Process> {
    match orbit {
        Orbit::Pass(pass) => Box::new(Passes::new(pass)),
        Orbit::Slots(slots) => {
            let orbit = world.open_rng(&slots.pair, Purpose::Orbit);
            let beam = world.open_rng(name, Purpose::Beam);
            let jitter = world.open_rng(name, Purpose::SlotJitter);
            Box::new(Schedule::new(slots, SlotStreams { orbit, beam, jitter }))
        }
    }
}

fn fading(fade: &Fade, name: &str, world: &mut World) -> Box<dyn Process> {
    let streams = match &fade.source {
        FadeSource::Profile(_) => None,
        FadeSource::Rain(rain) => {
            let series = world.open_rng(&rain.station, Purpose::Rain);
            let scintillates = rain.scintillation_db > 0.0;
            Some((series, scintillates.then(|| world.open_rng(name, Purpose::Scintillation))))
        }
    };
    Box::new(Fading::new(fade, streams))
}
