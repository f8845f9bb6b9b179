//! The server of a direction that changes over time.
//!
//! What holds is computed anew at begins of services when it has ended, and never for a time that is still to
//! come: the processes act in their fixed order on the base values. A packet's fate is decided by what holds
//! when its transmission begins, its delay by what holds when it ends. A transmission that meets a change, or
//! the end of its share of a frame, stops there and goes on with what holds then: so the time it takes is
//! exact. It stays lazy: all that is due is done when the link is touched, each at its own time.
//!
//! An instant belongs to what begins there; and whatever the link does by itself at an instant it does before
//! it takes a packet that comes at this instant, so that being touched more often changes nothing.

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

/// Nanoseconds in a second: a bit is this much work.
const BIT: Work = 1_000_000_000;

/// Everything about one direction that its constant part does not know.
#[derive(Debug)]
pub(crate) struct Varying {
    base: State,
    state: State,
    /// Until when `state` holds.
    until: Instant,
    /// What sets the link's own values: timeline, scheduled capacity, recorded delay and loss, orbit.
    course: Vec<Box<dyn Process>>,
    /// What a user has changed: it replaces what the course says.
    pub(crate) user: User,
    /// What makes of them what packets meet: fade, bursts, outages.
    weather: Vec<Box<dyn Process>>,
    /// What packets draw from.
    errors: RngSlot,
    framing: Size,
    /// Changes of the queue's capacity still to come.
    buffers: VecDeque<(Instant, Capacity)>,
    /// The queue's capacity without the user's, while that holds.
    own_capacity: Option<Capacity>,
    grants: Option<Grants>,
    release: Option<Release>,
    opportunities: Option<Opportunities>,
    sending: Option<Sending>,
    /// Work that the packet before left over, less than a nanosecond's: the long-run rate is exact.
    carry: Work,
    sending_until: Instant,
    reorder: bool,
    /// For the last size and state: packet error probability.
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

    /// A direction that was constant so far and on which nothing is going to change by itself. What it served
    /// last leaves `carry` and lasts until `busy_until`.
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

    /// Makes `state` that of `at`.
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

    /// The trace that says when packets may leave; `None` while a user says the rate.
    fn in_use(&mut self) -> Option<&mut Opportunities> {
        self.opportunities.as_mut().filter(|_| self.user.rate().is_none())
    }

    /// Gives the queue the capacity that the timeline says for `now`, if it says any; a user's goes before
    /// it.
    fn resize(&mut self, queue: &mut Queue, now: Instant) {
        while let Some(&(_, capacity)) = self.buffers.front().filter(|b| b.0 <= now) {
            match &mut self.own_capacity {
                Some(own) => *own = capacity,
                None => queue.set_capacity(capacity),
            }
            self.buffers.pop_front();
        }
    }

    /// A user changes something at `now`, up to which everything is done; what begins at `now` begins under
    /// the new conditions. `busy_until` is that of the link; returns what it is from here on.
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
        // a transmission that has begun keeps what it was promised; whoever waits for something else asks
        // again
        let free = if self.sending_until > now { busy_until } else { now };
        match self.in_use() {
            Some(trace) => {
                trace.lose_until(Instant(free.0.saturating_sub(1)));
                trace.next()
            }
            None => free,
        }
    }

    /// Begins every frame up to `at`, with `waiting` before each.
    fn frames(&mut self, cx: &mut Cx<'_>, at: Instant, waiting: Work) {
        while let Some(begin) = self.grants.as_mut().and_then(|g| g.next_boundary(at, waiting)) {
            self.refresh(cx, begin);
            let rate = self.state.rate;
            if let Some(grants) = &mut self.grants {
                grants.boundary(begin, waiting, rate);
            }
        }
    }

    /// What holds at least until here: the state, and the frame.
    fn limit(&self) -> Instant {
        self.grants.as_ref().map_or(self.until, |g| g.end().min(self.until))
    }

    /// When to ask again, if nothing can be sent at the moment.
    fn stopped(&self) -> Option<Instant> {
        let spent = self.grants.as_ref().filter(|g| g.budget() == 0).map(Grants::end);
        if self.state.rate.is_none() { Some(self.limit()) } else { spent }
    }

    /// When to ask again, if no packet may begin at `at`.
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
