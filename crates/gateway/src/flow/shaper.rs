//! One pacer for the hop: packets leave for the satellite at slightly less than the hop's rate, so that the
//! link has no queue and no queue drops.
//!
//! It counts IP bytes and framing, as the link does. Flows request turns. Repairs go first (a hole stalls a
//! receiver), then the flows that `priority.rs` selects, within a tenth of the rate, then all others in turn
//! by deficit round robin (Shreedhar and Varghese, 1996) with a quantum of a full packet or a millisecond;
//! flows that only pass take part with queues of their own (`passing.rs`). Without a rate everything leaves
//! at once. A late wake-up is compensated, up to 2 ms.

use super::copies::Losses;
use super::passing::{EXPRESS, PassingQueues};
use super::priority::{FlowTraits, Priority};
use crate::config::Config;
use bentpipe_base::{Duration, Instant, Packet, Pkt, Rate, Size};
use std::collections::VecDeque;

/// Smallest quantum per turn: a full packet with framing.
const QUANTUM: i64 = 1600;
/// Largest delay of the pacer that is compensated.
const SLACK: Duration = Duration::from_millis(2);
/// Period over which use of the hop is measured.
const USE_PERIOD: Duration = Duration::from_millis(250);
/// Passing packets may queue for a round trip at the rate; this is the round trip if none is configured.
const TRIP: Duration = Duration::from_secs(1);
/// Lower bound of that queue.
const LEAST: Duration = Duration::from_millis(100);
/// Marks a number in the queue of turns as that of a queue of passing packets, not of a flow.
const PASSING_QUEUE: u32 = 1 << 31;

#[derive(Debug)]
pub(crate) enum SendGrant {
    /// The flow with this number may send: call `Flow::serve`, then [`Shaper::sent`].
    Flow(u32),
    /// Send this packet to the satellite; it has been charged.
    Pass(Pkt),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Repair,
    /// New data, or a redundant copy.
    Data,
}

#[derive(Debug, Default)]
pub(crate) struct Shaper {
    rate: Option<Rate>,
    share: f64,
    framing: Size,
    /// When the hop becomes free.
    free_at: Instant,
    /// Busy time in each of the last two periods of [`USE_PERIOD`], and start of the last one.
    busy: [Duration; 2],
    spell: Instant,
    /// Accelerated flows that used the hop in the previous period and in this one.
    users: [u32; 2],
    /// Flows waiting to repair, with their tickets.
    repairs: VecDeque<(u32, u32)>,
    /// Flows waiting to send data: number, ticket and deficit.
    flows: VecDeque<(u32, u32, i64)>,
    /// Tickets of each flow in the queues of repairs and data, 0 if not queued.
    waits: Vec<(u32, u32)>,
    /// Flows that go first, with their tickets.
    priority_flows: VecDeque<(u32, u32)>,
    flow_traits: Vec<FlowTraits>,
    serial: u32,
    /// Upper bound of the queue entries that are no longer valid.
    stale: usize,
    /// Passing packets, and how many bytes of them may queue.
    passing: PassingQueues,
    room: u64,
    /// Of the flows that go first, a passing one had the last turn.
    express_passed: bool,
    priority: Priority,
    /// Flows that use a good part of their share of the hop.
    pub(crate) active: u32,
    /// Loss statistics of the hop.
    pub(crate) losses: Losses,
}

impl Shaper {
    pub(crate) fn new(config: &Config) -> Self {
        let mut shaper = Self::default();
        shaper.configure(config);
        shaper
    }

    /// Changes the configuration; the queues are kept.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.rate = config.rate;
        self.share = if config.share > 0.0 { config.share.min(1.0) } else { 1.0 };
        self.framing = config.framing;
        let wait = config.rtt.unwrap_or(TRIP).max(LEAST);
        self.room = config.rate.map_or(0, |rate| rate.bytes_in(wait).0);
        if self.rate.is_none() {
            // queued packets leave at once, before new ones
            self.free_at = Instant::ZERO;
        }
    }

    /// Bytes that the hop counts for a packet.
    pub(crate) fn cost(&self, packet: &Packet) -> Size {
        let n = u64::from(packet.pieces());
        Size(u64::from(packet.body.len) + n * (u64::from(packet.header_len) + self.framing.0))
    }

    /// Requests a turn for a flow, once for each of repairs and data.
    pub(crate) fn request(&mut self, flow: u32, want: Want) {
        let i = flow as usize;
        self.enlarge(i + 1);
        match want {
            Want::Repair if self.waits[i].0 == 0 => {
                self.waits[i].0 = self.ticket();
                self.repairs.push_back((flow, self.waits[i].0));
            }
            Want::Data if self.waits[i].1 == 0 => {
                self.waits[i].1 = self.ticket();
                if self.flow_traits[i].goes_first() {
                    self.priority_flows.push_back((flow, self.waits[i].1));
                } else {
                    self.flows.push_back((flow, self.waits[i].1, self.quantum()));
                }
            }
            _ => {}
        }
    }

    /// Notes whether the last packet of an accelerated flow was marked EF.
    pub(crate) fn mark(&mut self, flow: u32, is_marked: bool) {
        if is_marked {
            self.enlarge(flow as usize + 1);
        }
        if let Some(manner) = self.flow_traits.get_mut(flow as usize) {
            manner.is_marked = is_marked;
        }
    }

    /// Makes room for the flows with numbers below `flows`.
    fn enlarge(&mut self, flows: usize) {
        if self.waits.len() < flows {
            self.waits.resize(flows, (0, 0));
            self.flow_traits.resize(flows, FlowTraits::default());
        }
    }

    /// Returns a ticket that no queue entry has; 0 means none.
    const fn ticket(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        if self.serial == 0 {
            self.serial = 1;
        }
        self.serial
    }

    /// Removes invalid entries: those at the front, and all once there are many.
    fn tidy(&mut self) {
        let waits = &self.waits;
        let waiting = |flow: u32| waits.get(flow as usize).copied().unwrap_or_default();
        while self.repairs.front().is_some_and(|r| waiting(r.0).0 != r.1) {
            self.repairs.pop_front();
        }
        while self.flows.front().is_some_and(|f| f.0 & PASSING_QUEUE == 0 && waiting(f.0).1 != f.1) {
            self.flows.pop_front();
        }
        while self.priority_flows.front().is_some_and(|q| waiting(q.0).1 != q.1) {
            self.priority_flows.pop_front();
        }
        if self.stale > 64
            && self.stale * 2 > self.repairs.len() + self.flows.len() + self.priority_flows.len()
        {
            self.repairs.retain(|r| waiting(r.0).0 == r.1);
            self.priority_flows.retain(|q| waiting(q.0).1 == q.1);
            self.flows.retain(|f| f.0 & PASSING_QUEUE != 0 || waiting(f.0).1 == f.1);
            self.stale = 0;
        }
    }

    /// A flow's quantum per turn: a packet, or as much as leaves in a millisecond.
    fn quantum(&self) -> i64 {
        let burst = self.rate.map_or(0, |r| r.bytes_in(Duration::from_millis(1)).0.min(1 << 20));
        QUANTUM.max(burst as i64)
    }

    /// Queues a packet that belongs to no accelerated flow; returns it if it may leave at once.
    pub(crate) fn pass(&mut self, now: Instant, packet: Pkt) -> Option<Pkt> {
        if self.rate.is_none() {
            return Some(packet);
        }
        let (place, goes_first) = self.priority.place(now, &packet);
        let cost = self.cost(&packet).0;
        let lane = if goes_first { EXPRESS } else { place };
        self.passing.push(lane, place, packet, cost);
        if !goes_first {
            self.enter(lane);
        }
        None
    }

    /// Gives a queue of passing packets its place among those waiting for a turn.
    fn enter(&mut self, lane: usize) {
        if self.passing.enter(lane) {
            self.flows.push_back((PASSING_QUEUE | lane as u32, 0, self.quantum()));
        }
    }

    /// Removes a passing packet that must be dropped because too many are queued.
    pub(crate) fn overflow(&mut self) -> Option<Pkt> {
        if self.rate.is_none() || self.passing.bytes() <= self.room {
            return None;
        }
        let (packet, _, place) = self.passing.shorten()?;
        self.priority.left(place);
        Some(packet)
    }

    /// Removes a passing packet that is still queued although no rate is configured any more.
    pub(crate) fn unpaced(&mut self) -> Option<Pkt> {
        if self.rate.is_some() {
            return None;
        }
        let (packet, _, place) = self.passing.any()?;
        self.priority.left(place);
        Some(packet)
    }

    /// Removes the first packet of a queue and charges it to the hop; returns it with its cost.
    fn take(&mut self, now: Instant, lane: usize) -> Option<(Pkt, u64)> {
        let (packet, cost, place) = self.passing.pop(lane)?;
        self.priority.left(place);
        self.charge(now, Size(cost));
        Some((packet, cost))
    }

    /// Returns the flow or packet that may be sent now; none if the hop is busy or nothing waits.
    pub(crate) fn next(&mut self, now: Instant) -> Option<SendGrant> {
        if self.free_at > now {
            return None;
        }
        self.tidy();
        if let Some((flow, _)) = self.repairs.front() {
            return Some(SendGrant::Flow(*flow));
        }
        if self.priority.allows(now) {
            if let Some(turn) = self.first(now) {
                return Some(turn);
            }
        } else {
            // their share of the rate is used up: they join the other flows
            while let Some((flow, ticket)) = self.priority_flows.pop_front() {
                self.flows.push_back((flow, ticket, self.quantum()));
            }
            self.enter(EXPRESS);
            self.tidy();
        }
        while let Some((id, ticket, deficit)) = self.flows.front().copied() {
            if id & PASSING_QUEUE == 0 {
                return Some(SendGrant::Flow(id));
            }
            if deficit <= 0 {
                // its last super-packet was longer than its turns so far allowed
                self.flows.pop_front();
                self.flows.push_back((id, ticket, deficit + self.quantum()));
                self.tidy();
                continue;
            }
            if let Some(packet) = self.serve_lane(now, (id & !PASSING_QUEUE) as usize) {
                return Some(SendGrant::Pass(packet));
            }
            self.tidy();
        }
        None
    }

    /// Serves the queue of passing packets whose turn it is.
    fn serve_lane(&mut self, now: Instant, lane: usize) -> Option<Pkt> {
        let taken = self.take(now, lane);
        let cost = taken.as_ref().map_or(0, |taken| taken.1);
        let quantum = self.quantum();
        if let Some((id, ticket, deficit)) = self.flows.pop_front() {
            let left = deficit - cost as i64;
            if self.passing.is_empty(lane) {
                self.passing.leave(lane);
            } else if left > 0 {
                self.flows.push_front((id, ticket, left));
            } else {
                self.flows.push_back((id, ticket, left + quantum));
            }
        }
        taken.map(|taken| taken.0)
    }

    /// Returns the flow or packet that may be sent now, of those that go first.
    fn first(&mut self, now: Instant) -> Option<SendGrant> {
        if !self.passing.is_empty(EXPRESS) && (self.priority_flows.is_empty() || !self.express_passed) {
            let (packet, cost) = self.take(now, EXPRESS)?;
            self.express_passed = true;
            self.charge_first(now, Size(cost));
            return Some(SendGrant::Pass(packet));
        }
        self.express_passed = false;
        self.priority_flows.front().map(|q| SendGrant::Flow(q.0))
    }

    fn charge_first(&mut self, now: Instant, size: Size) {
        if let Some(rate) = self.rate {
            self.priority.charge(now, rate, size);
        }
    }

    /// Charges `size` to the flow whose turn it was; `wants` is the kind of packet that it wants to send
    /// next.
    pub(crate) fn sent(&mut self, now: Instant, flow: u32, size: Size, wants: Option<Want>) {
        self.charge(now, size);
        self.tidy();
        if let Some(manner) = self.flow_traits.get_mut(flow as usize) {
            self.users[1] += u32::from(manner.uses(self.spell));
            manner.sent(size.0.saturating_sub(self.framing.0));
        }
        if self.repairs.front().is_some_and(|r| r.0 == flow) {
            self.repairs.pop_front();
            self.waits[flow as usize].0 = 0;
        } else if self.priority_flows.front().is_some_and(|q| q.0 == flow) {
            self.priority_flows.pop_front();
            self.waits[flow as usize].1 = 0;
            self.charge_first(now, size);
        } else if let Some((_, ticket, deficit)) = self.flows.front_mut().filter(|f| f.0 == flow) {
            *deficit -= size.0 as i64;
            let (ticket, left) = (*ticket, *deficit);
            if left <= 0 || wants.is_none() {
                self.flows.pop_front();
                if wants.is_some() {
                    self.flows.push_back((flow, ticket, left + self.quantum()));
                } else {
                    self.waits[flow as usize].1 = 0;
                }
            }
        }
        if let Some(want) = wants {
            self.request(flow, want);
        }
    }

    /// Removes a flow. Its queue entries stay until their turn: many flows may end at once.
    pub(crate) fn forget(&mut self, flow: u32) {
        if let Some(waits) = self.waits.get_mut(flow as usize) {
            self.stale += usize::from(waits.0 != 0) + usize::from(waits.1 != 0);
            *waits = (0, 0);
            self.tidy();
        }
        if let Some(manner) = self.flow_traits.get_mut(flow as usize) {
            *manner = FlowTraits::default();
        }
    }

    pub(crate) fn charge(&mut self, now: Instant, size: Size) {
        let Some(rate) = self.rate else { return };
        let start = self.free_at.max(Instant(now.0.saturating_sub(SLACK.0)));
        let time = Duration((rate.time_for(size).0 as f64 / self.share) as u64);
        self.free_at = start + time;
        let gone = now.since(self.spell);
        if gone >= USE_PERIOD {
            let before = if gone < USE_PERIOD * 2 { self.busy[1] } else { Duration::ZERO };
            self.users = [self.users[1], 0];
            (self.busy, self.spell) = ([before, Duration::ZERO], now);
        }
        self.busy[1] += time;
    }

    /// Number of accelerated flows that recently used the hop; at least one.
    pub(crate) fn users(&self) -> u32 {
        self.users[0].max(self.users[1]).max(1)
    }

    /// The part of the rate that each of the accelerated flows now using the hop can have.
    pub(crate) fn fair_share(&self) -> Option<Rate> {
        let rate = self.rate?;
        Rate::from_bps((rate.bps() as f64 * self.share / f64::from(self.users())) as u64)
    }

    /// True if the hop was free for a fifth of the time, copies counted as use: more packets delay nobody.
    pub(crate) fn is_idle(&self) -> bool {
        self.rate.is_some() && self.busy.iter().all(|busy| *busy * 5 < USE_PERIOD * 4)
    }

    /// Largest payload of a packet: a segment, or as much as the hop carries in a millisecond.
    pub(crate) fn largest(&self, segment: u16) -> u32 {
        let Some(rate) = self.rate else { return u32::MAX };
        let burst = rate.bytes_in(Duration::from_millis(1)).0.min(u64::from(u16::MAX)) as u32;
        let segment = u32::from(segment).max(1);
        (burst / segment).max(1) * segment
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let flows = !self.repairs.is_empty() || !self.flows.is_empty() || !self.priority_flows.is_empty();
        (flows || !self.passing.is_empty(EXPRESS)).then_some(self.free_at)
    }
}

#[cfg(test)]
#[path = "shaper_tests.rs"]
mod tests;
