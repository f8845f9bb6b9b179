//! Sends probe segments: when, what they copy and how they look. `probes.rs` explains why, and tracks their
//! answers.

use crate::cc::{Path, Plan, ProbeClock, SentSegment};
use crate::connection::Connection;
use crate::limits::Limit;
use crate::probes::TICK;
use crate::timers::Timer;
use bentpipe_base::{Body, Cx, Dscp, Flags, Instant, Pkt, ProbeOption, Size};

impl Connection {
    /// Returns a probe segment if the scheme wants one now and nothing else may be sent.
    pub(crate) fn transmit_copy(&mut self, cx: &mut Cx<'_>, path: &Path, plan: &Plan) -> Option<Pkt> {
        let stamp = self.timestamp(cx.now);
        let probes = self.probes.as_mut()?;
        let Some(wish) = plan.probes.filter(|w| w.left > 0 && !self.board.is_empty()) else {
            probes.pause();
            self.timers.stop(Timer::Probe);
            return None;
        };
        if probes.is_taken(stamp) {
            let next = Instant((cx.now.0 / TICK.0 + 1) * TICK.0);
            self.timers.set(Timer::Probe, next);
            return None;
        }
        let data_waits = self.limits.current() == Limit::Pacing;
        if let Err(at) = probes.due(cx.now, wish.clock, data_waits, self.last_sent) {
            self.timers.set_or_stop(Timer::Probe, at);
            return None;
        }
        let carry = probes.carry(wish.carry);
        let Some((start, end)) = probes.selector.choose(&self.board, carry, self.written) else {
            self.timers.set_or_stop(Timer::Probe, probes.leave_out(cx.now, wish.clock));
            return None;
        };
        let option = probes.sent_copy(cx.now, start, end, stamp);
        self.board.copy(start);
        let packet = self.build_copy(cx, (start, end), option, wish.mark);
        let bytes = Size(end - start);
        if let (ProbeClock::Spare(_), Some(rate)) = (wish.clock, self.pace(plan, path)) {
            self.pacer.sent(cx.now, rate, plan.charge(bytes, self.mss())); // copies and data share the rate
        }
        self.cc.on_sent(cx, path, &SentSegment { bytes, resent: false, probe: true });
        Some(packet)
    }

    /// Builds a copy. Queues drop it before anything else, so an acknowledgment that is due is still sent on
    /// its own.
    fn build_copy(&mut self, cx: &mut Cx<'_>, range: (u64, u64), option: ProbeOption, mark: Dscp) -> Pkt {
        let (start, end) = range;
        let mut packet = self.blank(cx);
        if mark != Dscp::DEFAULT {
            packet.dscp = mark;
        }
        packet.tcp.flags = Flags::ACK;
        packet.tcp.seq = self.iss.at(start);
        packet.tcp.ack = self.rcv.ack_field();
        packet.tcp.window = self.rcv.window.advertise(self.rcv.next(), self.rcv.readable(), self.mss());
        packet.tcp.probe = option;
        packet.body = Body { off: start - 1, len: (end - start) as u32 };
        self.stamp(&mut packet, cx.now);
        packet.seal();
        self.add_place(&mut packet);
        packet
    }
}
