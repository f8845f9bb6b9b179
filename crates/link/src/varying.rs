//! The server of a direction that changes over time.
//!
//! At the start of a service the state is recomputed if it has expired: the processes act on the base values
//! in their fixed order. It is never computed for a future time. The state at the start of a transmission
//! decides whether the packet is lost, the state at its end sets the delay. A transmission that meets a
//! change, or the end of its share of a frame, stops there and continues under the new state, so its duration
//! is exact. Evaluation is lazy: when the link is called, it does everything that is due, each at its own
//! time.
//!
//! A state that begins at an instant applies at that instant. Everything that the link does by itself at an
//! instant comes before a packet that arrives at this instant, so that additional calls change nothing.

mod moved;
mod serve;

use crate::access::{Access, DamaState, IdleReleaseState, Work};
use crate::capacity::{CapacityTrace, Opportunities};
use crate::change::{Timeline, UserChanges};
use crate::direction::{DirectionSpec, Dynamics};
use crate::drop_tail::Capacity;
use crate::fade::FadeProcess;
use crate::gap::Gap;
use crate::gilbert_elliott::BurstProcess;
use crate::mtu::Fragments;
use crate::orbit::{Orbit, PassProcess, SlotProcess};
use crate::outage::OutageProcess;
use crate::queue::Queue;
use crate::recorded::Recorded;
use crate::state::{LinkSnapshot, Process, State};
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Pkt, Purpose, RngSlot, Size, World};
use std::collections::VecDeque;
use std::sync::Arc;

/// The work of one bit: nanoseconds in a second.
const BIT: Work = 1_000_000_000;

/// The varying part of one direction.
#[derive(Debug, Default)]
pub(crate) struct Varying {
    base: State,
    state: State,
    /// End of the time for which `state` holds.
    until: Instant,
    /// Processes that set the link's values: timeline, scheduled capacity, recorded delay and loss, orbit.
    value_processes: Vec<Box<dyn Process>>,
    /// A user's changes, which replace the values that these processes set.
    pub(crate) user: UserChanges,
    /// Processes that act on these values: fade, bursts, outages.
    impairments: Vec<Box<dyn Process>>,
    /// The random stream of packet losses.
    errors: RngSlot,
    /// The present gap between packet losses, if they are drawn so.
    gap: Option<Gap>,
    framing: Size,
    /// Changes of the queue's capacity still to come.
    buffers: VecDeque<(Instant, Capacity)>,
    /// The queue's own capacity, while a user's replaces it.
    own_capacity: Option<Capacity>,
    grants: Option<DamaState>,
    release: Option<IdleReleaseState>,
    opportunities: Option<Opportunities>,
    sending: Option<Sending>,
    /// Remainder of the last packet's work, less than a nanosecond's, so that the long-run rate is exact.
    carry: Work,
    pub(crate) sending_until: Instant,
    reorder: bool,
    /// Cache: packet error probability of the last size in this state.
    bit_error: Option<(Size, f64)>,
    /// How often a value has changed that packets meet.
    changes: u64,
}

/// A packet whose transmission has begun.
#[derive(Debug)]
struct Sending {
    packet: Pkt,
    fate: Option<DropCause>,
    left: Work,
}

impl Varying {
    /// A direction that starts as `base` and changes as `dynamics` says.
    pub(crate) fn of(base: &DirectionSpec, dynamics: &Dynamics, name: &str, world: &mut World) -> Self {
        let Dynamics { changes, capacity, delay, loss, orbit, fade, bursts, outages, access } = dynamics;
        let state = State::new(base.rate, base.delay, base.loss, base.ber);
        let errors = world.open_rng(name, Purpose::Errors);
        let gap = base.loss_draw.gap();
        let mut it = Self::new(state, base.framing, errors, (0, Instant::ZERO)).with_gap(gap);
        if !changes.is_empty() {
            it.value_processes.push(Box::new(Timeline::new(changes)));
        }
        match capacity {
            Some(CapacityTrace::Steps { points, repeat }) => {
                it.value_processes.push(Box::new(Recorded { points: Arc::clone(points), repeat: *repeat }));
            }
            Some(CapacityTrace::Opportunities { at, period, size }) => {
                it.opportunities = Some(Opportunities::new(at, *period, *size));
            }
            None => {}
        }
        it.value_processes.extend(delay.clone().map(boxed));
        it.value_processes.extend(loss.clone().map(boxed));
        match orbit {
            Some(Orbit::Pass(pass)) => it.value_processes.push(Box::new(PassProcess::new(pass))),
            Some(Orbit::Slots(slots)) => {
                it.reorder = slots.reorder;
                it.value_processes.push(Box::new(SlotProcess::new(slots, name, world)));
            }
            None => {}
        }
        it.impairments.extend(fade.as_ref().map(|fade| boxed(FadeProcess::new(fade, name, world))));
        it.impairments
            .extend(bursts.map(|b| boxed(BurstProcess::new(b, world.open_rng(name, Purpose::Bursts)))));
        it.impairments
            .extend(outages.map(|o| boxed(OutageProcess::new(o, world.open_rng(name, Purpose::Outages)))));
        let mut buffers: Vec<_> = changes.iter().filter_map(|(at, c)| c.buffer.map(|b| (*at, b))).collect();
        buffers.sort_by_key(|b| b.0);
        it.buffers = buffers.into();
        match access {
            Some(Access::Dama(dama)) if it.opportunities.is_none() => it.grants = Some(DamaState::new(*dama)),
            Some(Access::IdleRelease(release)) => it.release = Some(IdleReleaseState::new(*release)),
            _ => {}
        }
        it
    }

    /// A direction that was constant so far, in `base`, and has no processes. `last` are the remainder and
    /// the end of its last service.
    pub(crate) fn new(base: State, framing: Size, errors: RngSlot, last: (u64, Instant)) -> Self {
        let (carry, sending_until) = (Work::from(last.0), last.1);
        Self { base, state: base, errors, framing, carry, sending_until, ..Self::default() }
    }

    /// The same with losses drawn as gaps, of which this is the present one.
    pub(crate) fn with_gap(self, gap: Option<Gap>) -> Self {
        Self { gap, ..self }
    }

    fn refresh(&mut self, cx: &mut Cx<'_>, at: Instant) {
        if at < self.until {
            return;
        }
        let before = core::mem::replace(&mut self.state, self.base);
        self.bit_error = None;
        let mut until = Instant::NEVER;
        for process in &mut self.value_processes {
            until = until.min(process.apply(at, cx, &mut self.state));
        }
        until = until.min(self.user.apply(at, &mut self.state));
        for process in &mut self.impairments {
            until = until.min(process.apply(at, cx, &mut self.state));
        }
        self.until = until.max(at + Duration(1));
        self.count_change(&before);
    }

    /// The trace of opportunities; `None` while a user's rate replaces it.
    fn active_trace(&mut self) -> Option<&mut Opportunities> {
        self.opportunities.as_mut().filter(|_| self.user.change.rate.is_none())
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
        act: impl FnOnce(&mut UserChanges),
    ) -> Instant {
        self.resize(queue, now);
        let own = self.own_capacity.take().unwrap_or(queue.capacity());
        act(&mut self.user);
        queue.set_capacity(self.user.change.buffer.unwrap_or(own));
        self.own_capacity = self.user.change.buffer.map(|_| own);
        self.until = self.until.min(now);
        // a transmission that has begun is not affected; a link that waits for something else tries again now
        let free = if self.sending_until > now { busy_until } else { now };
        match self.active_trace() {
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
                grants.begin_frame(begin, waiting, rate);
            }
        }
    }

    /// End of the current state or frame, whichever is earlier.
    fn limit(&self) -> Instant {
        self.grants.as_ref().map_or(self.until, |g| g.end().min(self.until))
    }

    /// When to try again, if nothing can be sent at the moment.
    fn stopped(&self) -> Option<Instant> {
        let spent = self.grants.as_ref().filter(|g| g.budget == 0).map(DamaState::end);
        if self.state.rate.is_none() { Some(self.limit()) } else { spent }
    }

    /// When to try again, if no packet may begin at `at`.
    fn closed(&mut self, at: Instant) -> Option<Instant> {
        self.stopped().or_else(|| self.release.as_mut().map(|r| r.ready(at)).filter(|&ready| ready > at))
    }

    fn begin(&mut self, cx: &mut Cx<'_>, packet: Pkt, sent: Fragments) {
        let size = sent.framed(self.framing);
        let bit_error = match self.bit_error {
            Some((last, p)) if last == size => p,
            _ => {
                // logarithm of the probability that a bit is correct and no error event begins there
                let log = libm::log1p(-self.state.ber) + libm::log1p(-self.state.fade_event);
                let p = -libm::expm1(size.bits() as f64 * log);
                self.bit_error = Some((size, p));
                p
            }
        };
        let fate = self.state.draw_loss(cx.rng(self.errors), sent, bit_error, self.gap.as_mut());
        self.sending = Some(Sending { packet, fate, left: Work::from(size.bits()) * BIT });
    }

    pub(crate) const fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    pub(crate) fn snapshot(&mut self, cx: &mut Cx<'_>, queue: &mut Queue) -> LinkSnapshot {
        let now = cx.now;
        self.refresh(cx, now);
        self.resize(queue, now);
        let own = self.state.rate;
        LinkSnapshot {
            rate: self.active_trace().map_or(own, |trace| trace.mean_rate()),
            ..self.state.snapshot(queue)
        }
    }
}

fn boxed(process: impl Process + 'static) -> Box<dyn Process> {
    Box::new(process)
}
