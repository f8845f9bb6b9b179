//! The short way of the usual segment: an acknowledgment of new data, or data in order.
//!
//! Source: Van Jacobson's header prediction (1990). Nearly every segment of a long transfer is the one that
//! was expected, and needs none of the questions that RFC 9293, section 3.10.7.4, asks of a segment. What
//! the short way does is what the long way would do, to the last field of the connection: a test runs both
//! side by side. Everything else takes the long way: connections whose options or scheme have a part in each
//! segment, anything lost or out of order, the handshake and the end.

use crate::cc::{Ack, Episode};
use crate::connection::{Connection, JitterState};
use crate::delivery::Snapshot;
use crate::limits::Limit;
use crate::receiver::AckDue;
use crate::scheme::Detection;
use crate::state::State;
use crate::timers::Timer;
use bentpipe_base::trace::{Event as Trace, Mask};
use bentpipe_base::{
    Body, Cx, Duration, Flags, Instant, Packet, Pkt, ProbeOption, Size, TcpHeader, Timestamps,
};

/// Which short ways a connection may take at all; what it is decided by does not change once it is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShortWay {
    /// Nothing but TCP itself acts on a segment.
    pub(crate) plain: bool,
    /// Bytes of IP and TCP header without SACK blocks.
    headers: u8,
}

impl Connection {
    /// Decides which short ways this connection, which has just opened, may take.
    pub(crate) fn allow_short_way(&mut self) {
        let (agreed, config) = (&self.negotiated, &self.config);
        let signals = self.signalling.is_some() || agreed.signalling.is_some() || config.grant.is_some();
        let plain = !self.linux()
            && !signals
            && !agreed.ecn
            && self.probes.is_none()
            && !config.pacing
            && matches!(self.recovery.detection(), Detection::Reno | Detection::NewReno | Detection::Sack);
        let header =
            TcpHeader { timestamps: agreed.timestamps.then(Timestamps::default), ..TcpHeader::default() };
        self.short_way = ShortWay { plain, headers: agreed.ip.header() + header.wire_len() };
    }

    /// True if nothing but TCP itself acts on segments, nothing is ending and no loss is being repaired.
    #[inline]
    fn is_usual(&self) -> bool {
        self.short_way.plain && self.state == State::Established && !self.fin_queued
    }

    /// Takes a segment if it is the one that was expected. Returns false if the long way must take it.
    #[inline]
    pub(crate) fn take_expected(&mut self, cx: &mut Cx<'_>, segment: &Packet) -> bool {
        let h = &segment.tcp;
        let flags = h.flags.0 & !Flags::PSH.0;
        if !self.is_usual()
            || flags != Flags::ACK.0
            || h.seq != self.rcv.ack_field()
            || !h.sack.is_empty()
            || h.probe != ProbeOption::None
        {
            return false;
        }
        if self.negotiated.timestamps
            && h.timestamps.is_none_or(|ts| self.paws_rejects(cx, ts, h.phases.value))
        {
            return false;
        }
        if segment.body.len == 0 { self.expected_ack(cx, segment) } else { self.expected_data(cx, segment) }
    }

    /// Data in order, while nothing of ours is outstanding.
    #[inline]
    fn expected_data(&mut self, cx: &Cx<'_>, segment: &Packet) -> bool {
        let (left, len) = (self.rcv.next(), u64::from(segment.body.len));
        let una = self.board.una();
        if !self.board.is_empty()
            || segment.tcp.ack != self.iss.at(una)
            || self.tail_probe.is_outstanding()
            || len > self.rcv.room()
            || !self.rcv.is_gapless()
        {
            return false;
        }
        self.update_window(segment, left, una);
        self.peer_activity.heard(cx.now);
        self.take_timestamp(cx, segment, left);
        self.take_receiver_rtt(cx.now, segment);
        self.rcv.in_order(cx.now, len);
        true
    }

    /// An acknowledgment of whole segments that were sent once, with nothing SACKed.
    #[inline]
    fn expected_ack(&mut self, cx: &mut Cx<'_>, segment: &Packet) -> bool {
        let una = self.board.una();
        let Some(ack) = self.iss.offset_near(segment.tcp.ack, una) else { return false };
        // never of the SYN, whose byte is none of the stream's
        if ack <= una || una == 0 || self.tail_probe.is_outstanding() || !self.recovery.is_quiet() {
            return false;
        }
        let standard = self.cc.standard_window().map(|window| (window.cwnd(), window.in_slow_start()));
        let Some((cwnd, slow_start)) = standard.or_else(|| {
            let cwnd = self.cc.window_only()?;
            Some((cwnd.0, self.cc.ssthresh().is_none_or(|s| cwnd < s)))
        }) else {
            return false;
        };
        let Some(last) = self.board.acknowledge_clean(ack) else { return false };
        let left = self.rcv.next();
        self.update_window(segment, left, ack);
        let limited_by = self.growth_limit_of(cx.now, cwnd, slow_start);
        self.apply_expected_ack(cx, ack - una, last, limited_by, standard.is_some());
        self.peer_activity.heard(cx.now);
        self.take_timestamp(cx, segment, left);
        true
    }

    /// What else `take_ack` does for such an acknowledgment, of so many `segments`, the last of which was
    /// sent at `sent_at`.
    #[inline]
    fn apply_expected_ack(
        &mut self,
        cx: &mut Cx<'_>,
        acked: u64,
        (sent_at, segments): (Instant, usize),
        limited_by: Limit,
        is_standard: bool,
    ) {
        let now = cx.now;
        self.send.burst = 0;
        self.rate.on_clean(now, acked, sent_at);
        let rtt = now.since(sent_at);
        self.take_rtt_sample(rtt);
        cx.trace(Mask::ROUND_TRIPS, || Trace::RoundTrip { port: self.tuple.local.1, rtt });
        self.peer_activity.progress(now);
        self.timeouts_in_a_row = 0;
        let round_ended = self.advance_round(acked);
        self.recovery.on_quiet_ack();
        let snapshot = self.board.take_snapshots(segments);
        if !is_standard {
            self.tell_of_expected_ack(cx, (Size(acked), rtt), (sent_at, snapshot), round_ended, limited_by);
        } else if limited_by == Limit::CongestionWindow
            && let Some(window) = self.cc.standard_window()
        {
            window.grow_by(Size(acked));
        }
        self.stats.bytes_acked = Size(self.board.una().saturating_sub(1).min(self.written - 1));
        if self.board.is_empty() {
            self.stop_retransmit_timer(now);
        } else {
            self.restart_retransmit_timer(now);
        }
        self.timers.stop(Timer::TailProbe);
        self.timers.stop(Timer::Reorder);
    }

    /// Tells the scheme of such an acknowledgment.
    #[inline(never)]
    fn tell_of_expected_ack(
        &mut self,
        cx: &mut Cx<'_>,
        (acked, rtt): (Size, Duration),
        (sent_at, snapshot): (Instant, Option<Snapshot>),
        round_ended: bool,
        limited_by: Limit,
    ) {
        let rtt_min = self.rtt.min().unwrap_or_default();
        let rate = snapshot.and_then(|snapshot| self.rate.sample_of(snapshot, sent_at, rtt_min));
        let (delivered, rtt, episode, probes) = (acked, Some(rtt), Episode::Open, 0);
        let ack = Ack { delivered, acked, rtt, rate, round_ended, episode, limited_by, probes };
        let path = self.path();
        self.cc.on_ack(cx, &path, &ack);
    }

    /// Sends all that may be sent now.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call for each packet would cost as much as a tenth of it")]
    pub fn transmit_all(&mut self, cx: &mut Cx<'_>, mut send: impl FnMut(&mut Cx<'_>, Pkt)) {
        loop {
            if self.outgoing.is_none() {
                if self.is_pure_receiver() && self.rcv.due() == AckDue::Now {
                    self.limits.set(cx.now, self.idle_limit());
                    if let Some(packet) = self.plain_ack(cx) {
                        return send(cx, packet); // with it nothing is due any more
                    }
                }
                if self.transmit_expected(cx, &mut send) {
                    return;
                }
            }
            let Some(packet) = self.transmit(cx) else { return };
            send(cx, packet);
        }
    }

    /// True if there is nothing to send but acknowledgments.
    #[inline]
    fn is_pure_receiver(&self) -> bool {
        self.board.is_empty() && self.is_usual() && self.board.next() >= self.written
    }

    /// Sends what may be sent, while data is outstanding and none of it is lost: full segments of new data.
    /// Returns true if a window or jitter ends it and nothing else is due; else the long way decides what is
    /// next.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `transmit_all`")]
    fn transmit_expected(&mut self, cx: &mut Cx<'_>, send: &mut impl FnMut(&mut Cx<'_>, Pkt)) -> bool {
        let mss = self.mss().max(1);
        if self.board.is_empty()
            || !self.is_usual()
            || self.send.persist
            || self.send.tail_probe
            || self.board.lost() != 0
            || !self.recovery.is_quiet()
            || self.rcv.has_blocks()
            || self.rcv.echo().is_some()
        {
            return false;
        }
        let Some(window) = self.cc.window_only() else { return false };
        // what is sent changes none of this
        loop {
            let next = self.board.next();
            if next + mss > self.written {
                return false;
            }
            let in_flight = self.recovery.flight(&self.board);
            let room = self.peer_right_edge.saturating_sub(next);
            if room < mss {
                let is_sent = room > 0 && self.worth_sending(room);
                return !is_sent && self.hold_expected(cx, Limit::ReceiverWindow, in_flight);
            }
            if in_flight + mss > window.0 {
                let is_sent = self.recovery.limited_transmit(mss);
                return !is_sent && self.hold_expected(cx, Limit::CongestionWindow, in_flight);
            }
            if self.random_values.jitter.is_some() && !self.jitter_allows(cx) {
                // asked again, it says the same and changes nothing
                return self.hold_expected(cx, Limit::Pacing, in_flight);
            }
            let packet = self.send_expected(cx, next, mss);
            send(cx, packet);
        }
    }

    /// What `hold` does in this case. Returns false if an acknowledgment is due.
    #[inline]
    fn hold_expected(&mut self, cx: &Cx<'_>, limit: Limit, in_flight: u64) -> bool {
        if self.rcv.due() != AckDue::No {
            return false;
        }
        self.limits.set(cx.now, limit);
        if self.send.jitter_state == JitterState::Open {
            self.send.jitter_state = JitterState::Closed;
        }
        let full = limit == Limit::CongestionWindow;
        self.usage.after_send(self.board.una(), self.board.next(), in_flight, full);
        if limit == Limit::ReceiverWindow {
            self.stats.opened_at.get_or_insert(cx.now);
        }
        if !self.timers.runs(Timer::Retransmit) && !self.timers.runs(Timer::Persist) {
            self.restart_retransmit_timer(cx.now);
        }
        true
    }

    /// What `send_new` does in this case.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `transmit_all`")]
    fn send_expected(&mut self, cx: &mut Cx<'_>, start: u64, len: u64) -> Pkt {
        let end = start + len;
        let snapshot = self.rate.on_sent(cx.now, false);
        self.board.push(end, cx.now, snapshot);
        let rtt = self.rtt.min().unwrap_or_default();
        self.stats.steady.sent(cx.now, start, self.stats.established_at, rtt);
        let packet = self.build_expected(cx, start, len as u32);
        self.stats.segments_sent += 1;
        self.send.burst += len;
        self.last_sent = cx.now;
        self.timers.stop(Timer::TailProbe);
        if !self.timers.runs(Timer::Retransmit) {
            self.restart_retransmit_timer(cx.now); // RFC 6298 (5.1)
        }
        packet
    }

    /// Returns the acknowledgment that is due, if it is one without blocks.
    #[inline]
    fn plain_ack(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        let is_plain = !self.rcv.has_blocks() && self.rcv.echo().is_none();
        is_plain.then(|| self.build_expected(cx, self.board.next(), 0))
    }

    /// Builds what `build` would: `len` bytes of the stream from `start`, with nothing but the usual header.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `transmit_all`")]
    fn build_expected(&mut self, cx: &mut Cx<'_>, start: u64, len: u32) -> Pkt {
        let window = self.rcv.window.advertise(self.rcv.next(), self.rcv.readable(), self.mss());
        let ends = len > 0 && start + u64::from(len) == self.written;
        let mut packet = cx.packet();
        packet.src = self.tuple.local.0;
        packet.sport = self.tuple.local.1;
        packet.dst = self.tuple.remote.0;
        packet.dport = self.tuple.remote.1;
        packet.ip = self.negotiated.ip;
        packet.hops = 64;
        packet.header_len = self.short_way.headers;
        packet.tcp.seq = self.iss.at(start);
        packet.tcp.ack = self.rcv.ack_field();
        packet.tcp.window = window;
        packet.tcp.flags = if ends { Flags::ACK.with(Flags::PSH) } else { Flags::ACK };
        if self.negotiated.timestamps {
            self.stamp(&mut packet, cx.now);
        }
        packet.body = Body { off: start - 1, len };
        self.rcv.acked();
        self.timers.stop(Timer::DelayedAck);
        self.clock.last_ack_sent = self.rcv.next();
        packet
    }
}

#[cfg(test)]
#[path = "prediction_tests.rs"]
mod tests;
