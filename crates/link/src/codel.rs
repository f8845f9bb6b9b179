//! CoDel: drops packets from the front, or marks them, while the queueing delay has been above a target for
//! longer than an interval.
//!
//! Source: RFC 8289, sections 4 and 5 (the pseudocode's names are kept). The estimator is the least time that
//! packets spent in the queue within an interval. When it has been above `target` for `interval`, packets are
//! dropped as they leave the queue: first one, then more at shrinking intervals, until the delay is low:
//!
//! ```text
//! drop_next = t + interval / sqrt(count)
//! ```
//!
//! A drop state that begins within 16 intervals of the end of the last one continues with the count of that
//! one, minus its initial count (section 5.5). A queue of no more than one largest packet is left alone, so
//! the last packet is never dropped.
//!
//! ECN (RFC 8289 has no pseudocode for it; RFC 8290, section 4.2, and Linux): where a drop is due, a packet
//! with ECT(0), ECT(1) or CE is marked CE instead and served; one mark counts as one drop, and a packet is
//! marked at most once.
//!
//! Defaults: target 5 ms, interval 100 ms (sections 4.3 and 4.4). The interval stands for the longest RTT, so
//! both should be longer behind a geostationary satellite.
//!
//! Deviation: the largest packet size is that of the largest packet seen; an interface would use its MTU.

use crate::drop_tail::{Capacity, Dropped, Refused};
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Duration, Ecn, Instant, Pkt, Size};
use std::collections::VecDeque;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// Acceptable standing queueing delay.
    pub target: Duration,
    /// Time for which the target must be exceeded; about the longest RTT.
    pub interval: Duration,
    /// Marks packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: true }
    }
}

/// Intervals within which a new drop state continues the last one.
const REENTRY: u64 = 16;

/// Packets in the order of their arrival, each with its time.
#[derive(Debug, Default)]
pub(crate) struct TimedQueue {
    pub(crate) packets: VecDeque<(Instant, Pkt)>,
    pub(crate) bytes: Size,
}

impl TimedQueue {
    pub(crate) fn push(&mut self, at: Instant, packet: Pkt) {
        self.bytes += packet.wire_len();
        self.packets.push_back((at, packet));
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Pkt)> {
        let (at, packet) = self.packets.pop_front()?;
        self.bytes = self.bytes - packet.wire_len();
        Some((at, packet))
    }
}

/// The variables of one queue's control loop.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above_time: Option<Instant>,
    /// Time of the next drop in drop state; afterwards, when that drop would have been.
    drop_next: Instant,
    /// Drops in this drop state.
    count: u32,
    /// Initial value of `count`.
    lastcount: u32,
    dropping: bool,
}

/// Sets CE if the packet is ECN-capable; returns whether it is.
fn mark(packet: &mut Pkt) -> bool {
    let capable = packet.ecn != Ecn::NotEct;
    if capable {
        packet.ecn = Ecn::Ce;
    }
    capable
}

impl Control {
    fn control_law(parameters: &Codel, t: Instant, count: u32) -> Instant {
        t + Duration((parameters.interval.0 as f64 / libm::sqrt(f64::from(count.max(1)))) as u64)
    }

    /// Takes the packet at the front; also returns whether it may be dropped.
    fn dodequeue(
        &mut self,
        parameters: &Codel,
        lane: &mut TimedQueue,
        now: Instant,
        largest: Size,
    ) -> (Option<Pkt>, bool) {
        let Some((since, packet)) = lane.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        let mut ok_to_drop = false;
        if now.since(since) < parameters.target || lane.bytes <= largest {
            self.first_above_time = None;
        } else if let Some(first_above_time) = self.first_above_time {
            ok_to_drop = now >= first_above_time;
        } else {
            self.first_above_time = Some(now + parameters.interval);
        }
        (Some(packet), ok_to_drop)
    }

    /// Returns the packet to be served at `now`; adds the packets dropped before it to `dropped`.
    pub(crate) fn dequeue(
        &mut self,
        parameters: &Codel,
        lane: &mut TimedQueue,
        (now, largest): (Instant, Size),
        dropped: &mut Dropped,
    ) -> Option<Pkt> {
        let (packet, mut ok_to_drop) = self.dodequeue(parameters, lane, now, largest);
        let mut packet = packet?;
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if parameters.ecn && mark(&mut packet) {
                    dropped.marked += 1;
                    self.drop_next = Self::control_law(parameters, self.drop_next, self.count);
                    break;
                }
                dropped.packets.push_back((packet, DropCause::Aqm));
                let (next, ok) = self.dodequeue(parameters, lane, now, largest);
                (packet, ok_to_drop) = (next?, ok);
                if ok_to_drop {
                    self.drop_next = Self::control_law(parameters, self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if parameters.ecn && mark(&mut packet) {
                dropped.marked += 1;
            } else {
                dropped.packets.push_back((packet, DropCause::Aqm));
                packet = self.dodequeue(parameters, lane, now, largest).0?;
            }
            self.dropping = true;
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now.since(self.drop_next) < parameters.interval * REENTRY;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = Self::control_law(parameters, now, self.count);
            self.lastcount = self.count;
        }
        Some(packet)
    }
}

#[derive(Debug)]
pub(crate) struct CodelQueue {
    pub(crate) parameters: Codel,
    pub(crate) queue: TimedQueue,
    control: Control,
    /// The largest packet seen.
    pub(crate) largest: Size,
}

impl CodelQueue {
    pub(crate) fn new(parameters: Codel) -> Self {
        Self { parameters, queue: TimedQueue::default(), control: Control::default(), largest: Size::ZERO }
    }

    pub(crate) fn push(&mut self, packet: Pkt, now: Instant, capacity: Capacity) -> Result<(), Refused> {
        let size = packet.wire_len();
        if !capacity.holds(self.queue.packets.len() + 1, self.queue.bytes + size) {
            return Err(Refused::Arrival(packet));
        }
        self.largest = self.largest.max(size);
        self.queue.push(now, packet);
        Ok(())
    }

    pub(crate) fn pop(&mut self, now: Instant, dropped: &mut Dropped) -> Option<Pkt> {
        self.control.dequeue(&self.parameters, &mut self.queue, (now, self.largest), dropped)
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
