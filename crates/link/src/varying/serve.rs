//! Service of a link that changes over time.

use super::{BIT, Sending, Varying};
use crate::access::{DamaState, Work};
use crate::link::Link;
use crate::mtu::Fragments;
use bentpipe_base::trace::{Event, Mask};
use bentpipe_base::{Cx, Duration, Instant, Pkt, Size};

impl Link {
    /// The work of all packets waiting and being sent.
    fn waiting(&self, varying: &Varying) -> Work {
        let framing = varying.framing.0.saturating_mul(self.queue.len() as u64);
        let queued = Work::from((self.queue.backlog() + Size(framing)).bits()) * BIT;
        queued + varying.sending.as_ref().map_or(0, |s| s.left)
    }

    pub(crate) fn arrive_varying(&mut self, cx: &mut Cx<'_>, varying: &mut Varying, packet: Pkt) {
        cx.trace(Mask::PACKETS, || Event::Sent(&packet));
        self.catch_up_varying(cx, varying);
        let now = cx.now;
        varying.resize(&mut self.queue, now);
        if self.queue.is_empty() && varying.sending.is_none() && self.busy_until <= now {
            self.queue.rest();
            varying.refresh(cx, now);
            varying.carry = 0;
            if let Some(trace) = varying.active_trace() {
                trace.lose_until(now);
                self.busy_until = trace.next();
            } else if let Some(again) = varying.closed(now) {
                self.busy_until = again;
            } else {
                self.queue.pass(&packet);
                self.start(cx, varying, packet, now);
                return;
            }
        }
        self.enqueue(cx, packet);
    }

    /// Does everything that is due by now.
    pub(crate) fn catch_up_varying(&mut self, cx: &mut Cx<'_>, varying: &mut Varying) {
        while self.busy_until <= cx.now && !(self.queue.is_empty() && varying.sending.is_none()) {
            let at = self.busy_until;
            self.begin_frames(cx, varying, at);
            varying.refresh(cx, at);
            if varying.active_trace().is_some() {
                self.opportunity(cx, varying, at);
            } else {
                self.serve_varying(cx, varying, at);
            }
        }
        let now = cx.now;
        self.begin_frames(cx, varying, now);
    }

    /// Begins every frame up to `at`, if access is by frames.
    #[inline]
    fn begin_frames(&self, cx: &mut Cx<'_>, varying: &mut Varying, at: Instant) {
        if varying.grants.is_some() {
            varying.frames(cx, at, self.waiting(varying));
        }
    }

    /// Continues the packet being sent, or begins the next.
    fn serve_varying(&mut self, cx: &mut Cx<'_>, varying: &mut Varying, at: Instant) {
        let closed = if varying.is_sending() { varying.stopped() } else { varying.closed(at) };
        if let Some(again) = closed {
            self.busy_until = again;
        } else if varying.is_sending() {
            self.progress(cx, varying, at);
        } else if let Some(packet) = self.next_packet(cx, at) {
            self.start(cx, varying, packet, at);
        }
    }

    fn start(&mut self, cx: &mut Cx<'_>, varying: &mut Varying, packet: Pkt, at: Instant) {
        self.begin(cx, varying, packet);
        self.progress(cx, varying, at);
    }

    fn begin(&mut self, cx: &mut Cx<'_>, varying: &mut Varying, packet: Pkt) {
        let sent = Fragments::of(self.channel.mtu, packet.wire_len());
        self.served.packets += 1;
        self.served.bytes += sent.bytes;
        varying.begin(cx, packet, sent);
    }

    /// Sends as much of the current packet as one state and one frame allow.
    fn progress(&mut self, cx: &mut Cx<'_>, varying: &mut Varying, at: Instant) {
        let (Some(sending), Some(rate)) = (varying.sending.take(), varying.state.rate) else { return };
        let limit = varying.limit();
        let bps = rate.bps();
        let budget = varying.grants.as_ref().map_or(Work::MAX, |g| g.budget);
        let need = sending.left + varying.carry;
        let possible = Work::from(limit.since(at).0) * Work::from(bps);
        let done = need.min(budget).min(possible);
        let (lasts, rest) = divide(done, bps);
        varying.sending_until = at + lasts;
        self.served.busy += lasts;
        if let Some(grants) = &mut varying.grants {
            grants.budget = grants.budget.saturating_sub(done);
        }
        if let Some(release) = &mut varying.release {
            release.use_until(varying.sending_until);
        }
        if done == need {
            varying.carry = rest;
            self.busy_until = varying.sending_until;
            self.finish(cx, varying, sending, self.busy_until);
        } else {
            varying.carry = 0;
            varying.sending = Some(Sending { left: need - done, ..sending });
            // either the state ends here, or the share of the frame is used up
            self.busy_until =
                if done == possible { limit } else { varying.grants.as_ref().map_or(limit, DamaState::end) };
        }
    }

    /// Uses one opportunity of a trace.
    fn opportunity(&mut self, cx: &mut Cx<'_>, varying: &mut Varying, at: Instant) {
        if !varying.is_sending()
            && let Some(ready) = varying.release.as_mut().map(|r| r.ready(at)).filter(|&ready| ready > at)
            && let Some(opportunities) = &mut varying.opportunities
        {
            opportunities.lose_until(Instant(ready.0 - 1));
            self.busy_until = opportunities.next();
            // hold the channel until this opportunity: else a trace with long gaps would never carry anything
            if let Some(release) = &mut varying.release {
                release.use_until(self.busy_until);
            }
            return;
        }
        let Some(opportunities) = &mut varying.opportunities else { return };
        let whole = Work::from(opportunities.size.bits()) * BIT;
        let gap = opportunities.take();
        self.busy_until = opportunities.next();
        let mut room = whole;
        while room > 0 {
            if !varying.is_sending() {
                let Some(packet) = self.next_packet(cx, at) else { break };
                self.begin(cx, varying, packet);
            }
            let Some(mut sending) = varying.sending.take() else { break };
            let done = sending.left.min(room);
            sending.left -= done;
            room -= done;
            if sending.left > 0 {
                varying.sending = Some(sending);
            } else {
                self.finish(cx, varying, sending, at);
            }
        }
        // an opportunity counts for the time since the previous one
        self.served.busy += gap.mul_f64((whole - room) as f64 / whole.max(1) as f64);
        if let Some(release) = &mut varying.release {
            release.use_until(at);
        }
    }

    fn finish(&mut self, cx: &mut Cx<'_>, varying: &Varying, sending: Sending, end: Instant) {
        let arrival = end + varying.state.one_way;
        match sending.fate {
            Some(cause) => self.drop(cx, end, sending.packet, cause),
            None if varying.reorder => self.in_flight.insert(arrival, sending.packet),
            // first in, first out: a packet due before those ahead of it arrives with them
            None => self.in_flight.push(arrival, sending.packet),
        }
    }

    /// When the link must be called next. Unless packets may overtake, the first arrival is enough: later
    /// packets arrive later.
    pub(crate) fn deadline_varying(&self, varying: &Varying) -> Instant {
        let idle = self.queue.is_empty() && varying.sending.is_none();
        let next = if idle { Instant::NEVER } else { self.busy_until };
        match self.in_flight.first_at() {
            Some(at) if varying.reorder => at.min(next),
            Some(at) => at,
            None => next,
        }
    }
}

/// How long a link of `bps` bit/s needs for this work, in whole nanoseconds, and the work that is left then.
#[inline]
fn divide(work: Work, bps: u64) -> (Duration, Work) {
    // the usual case: dividing 128 bits takes several times as long
    if let Ok(work) = u64::try_from(work) {
        return (Duration(work / bps), Work::from(work % bps));
    }
    let rate = Work::from(bps);
    (Duration(u64::try_from(work / rate).unwrap_or(u64::MAX)), work % rate)
}
