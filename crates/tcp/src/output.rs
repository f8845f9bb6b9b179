//! Decides what may be sent now, and if nothing, what prevents it.
//!
//! One function, `choose`, decides both, so that deadlines and sending always agree. Order: a segment that
//! recovery forces; lost segments; new data; speculative retransmissions (RFC 6675, NextSeg 3 and 4).
//! Sources: RFC 9293, section 3.8.6 (windows, silly-window avoidance, zero-window probes), RFC 3042 (limited
//! transmit), RFC 3168, section 6.1 (marking), RFC 8985, section 7 (tail loss probe).

use crate::cc::{Episode, Path, Plan, SentSegment};
use crate::connection::{Connection, JitterState};
use crate::limits::Limit;
use crate::options::syn_options;
use crate::receiver::AckDue;
use crate::scheme::Detection;
use crate::signalling::End;
use crate::state::State;
use crate::timers::Timer;
use crate::told::Timing;
use bentpipe_base::{Body, Cx, Dscp, Duration, Ecn, Flags, Instant, Pkt, ProbeOption, Size, TcpHeader};

/// Result of `choose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// Send segment `i` of the scoreboard again.
    Resend(usize),
    /// Send new sequence space up to `end`.
    New { end: u64, limited: bool },
    /// Send nothing, for this reason.
    Hold(Limit),
}

impl Connection {
    /// Returns the next segment to send, if any. Call until `None`.
    #[inline]
    pub fn transmit(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        if let Some(packet) = self.outgoing.take() {
            return Some(packet);
        }
        match self.state {
            State::Closed => {
                self.limits.stop(cx.now);
                return self.transmit_reset(cx);
            }
            State::SynSent | State::SynReceived => return self.transmit_syn(cx),
            _ => {}
        }
        if self.signalling.as_ref().is_some_and(End::must_speak) {
            self.rcv.ack_now();
            return self.transmit_ack(cx);
        }
        if self.board.is_empty() && self.board.next() >= self.written && !self.fin_queued {
            // the usual case of a pure receiver
            self.limits.set(cx.now, self.idle_limit());
        } else if self.state.may_send() || !self.board.is_empty() {
            if let Some(packet) = self.transmit_probe(cx) {
                return Some(packet);
            }
            self.validate_window(cx);
            let path = self.path();
            let plan = self.cc.plan(&path);
            match self.choose(cx, &path, &plan) {
                Choice::Resend(i) => return Some(self.resend(cx, i, &path, &plan)),
                Choice::New { end, limited } => return Some(self.send_new(cx, end, limited, &path, &plan)),
                Choice::Hold(limit) => {
                    self.hold(cx.now, limit, &path, &plan);
                    if let Some(packet) = self.transmit_copy(cx, &path, &plan) {
                        return Some(packet);
                    }
                }
            }
        }
        self.transmit_ack(cx)
    }

    fn choose(&mut self, cx: &mut Cx<'_>, path: &Path, plan: &Plan) -> Choice {
        if let Some(i) = self.recovery.forced(&self.board) {
            return Choice::Resend(i);
        }
        let window = self.recovery.window(plan.window.0);
        let in_flight = path.in_flight.0;
        let repairing = self.recovery.episode() != Episode::Open;
        if self.recovery.prefers_new()
            && let new @ Choice::New { .. } = self.choose_new(cx, path, plan, window)
        {
            return new;
        }
        if let Some(i) = self.board.next_lost() {
            let len = self.board.get(i).map_or(0, |s| s.end - self.board.start_of(i));
            if (in_flight > 0 && in_flight + len > window) || self.burst_is_over(plan, len) {
                return Choice::Hold(Limit::Recovery);
            }
            let paced = self.pacer_holds(cx.now, plan, path);
            return if paced { Choice::Hold(Limit::Pacing) } else { Choice::Resend(i) };
        }
        match self.choose_new(cx, path, plan, window) {
            Choice::Hold(why) if repairing && !self.board.is_empty() => {
                match self.speculate(why, in_flight, window) {
                    Some(i) => Choice::Resend(i),
                    None => Choice::Hold(if why == Limit::Pacing { why } else { Limit::Recovery }),
                }
            }
            other => other,
        }
    }

    /// Returns the segment that NextSeg (3) and (4) send, only if no new data can be sent.
    fn speculate(&mut self, why: Limit, in_flight: u64, window: u64) -> Option<usize> {
        if why == Limit::CongestionWindow || in_flight + self.mss() > window {
            return None;
        }
        self.recovery.speculative(&mut self.board)
    }

    /// Decides whether new data may be sent.
    fn choose_new(&mut self, cx: &mut Cx<'_>, path: &Path, plan: &Plan, window: u64) -> Choice {
        let next = self.board.next();
        let data_end = self.written;
        let fin_unsent = self.fin_queued && next <= data_end;
        if next >= data_end && !fin_unsent {
            return Choice::Hold(self.idle_limit());
        }
        let mss = self.full_segment();
        let mut end = data_end.min(next + mss);
        let mut fin = fin_unsent && end == data_end;
        let room = self.peer_right_edge.saturating_sub(next);
        let in_flight = path.in_flight.0;
        if end - next + u64::from(fin) > room {
            if room == 0 || (end - next > room && !self.worth_sending(room)) {
                return Choice::Hold(Limit::ReceiverWindow);
            }
            end = end.min(next + room);
            fin = false;
        }
        let len = end - next;
        let mut limited = false;
        if in_flight + len > window {
            limited = self.recovery.limited_transmit(mss);
            if !limited {
                return Choice::Hold(Limit::CongestionWindow);
            }
        }
        let last = end == data_end;
        if len < mss && last && !self.fin_queued {
            let nagle = self.nagle_holds() && !self.is_uncorked(end);
            if nagle || self.cork_holds(cx.now, end) {
                return Choice::Hold(self.idle_limit());
            }
        }
        if len == mss && !limited && self.linux() && self.tso_should_defer(cx.now, path, window, room) {
            let peer = room <= window.saturating_sub(in_flight);
            return Choice::Hold(if peer { Limit::ReceiverWindow } else { Limit::CongestionWindow });
        }
        if self.burst_is_over(plan, len) {
            return Choice::Hold(Limit::CongestionWindow);
        }
        end += u64::from(fin);
        if self.pacer_holds(cx.now, plan, path) || !self.jitter_allows(cx) {
            return Choice::Hold(Limit::Pacing);
        }
        Choice::New { end, limited }
    }

    /// Returns the payload of a full segment with the present options.
    pub(crate) fn full_segment(&self) -> u64 {
        self.mss().saturating_sub(self.sack_space()).max(1)
    }

    /// Returns the bytes of SACK blocks and a probe echo (RFC 9293, section 3.7.1: the MSS counts options).
    fn sack_space(&self) -> u64 {
        let echo = if self.rcv.echo().is_some() { u64::from(ProbeOption::LEN) } else { 0 };
        if !self.negotiated.sack || !self.rcv.has_blocks() {
            return echo;
        }
        echo + 4 + 8 * self.rcv.sack_list(self.sack_room()).as_slice().len() as u64
    }

    /// Returns how many SACK blocks fit beside the other options.
    const fn sack_room(&self) -> usize {
        (if self.negotiated.timestamps { 3 } else { 4 }) - self.rcv.echo().is_some() as usize
    }

    /// Silly-window avoidance at the sender (RFC 9293, section 3.8.6.2.1): true if a partial segment of
    /// `room` bytes is sent, since that is at least half the largest window.
    pub(crate) const fn worth_sending(&self, room: u64) -> bool {
        room * 2 >= self.peer_window_max
    }

    /// Records why nothing is sent now, and sets the timers after which sending may go on.
    fn hold(&mut self, now: Instant, limit: Limit, path: &Path, plan: &Plan) {
        self.limits.set(now, limit);
        if self.send.jitter_state == JitterState::Open {
            self.send.jitter_state = JitterState::Closed;
        }
        self.count_usage(limit, path, plan);
        if limit == Limit::ReceiverWindow && !self.board.is_empty() {
            self.stats.opened_at.get_or_insert(now);
        }
        match limit {
            Limit::ReceiverWindow if self.board.is_empty() && !self.timers.runs(Timer::Persist) => {
                let at = now + self.persist_interval();
                self.timers.set(Timer::Persist, at);
            }
            Limit::Application | Limit::SendBuffer => self.rate.app_limited(path.in_flight.0),
            _ => {}
        }
        // a window probe runs only the persist timer; once the window has opened, the outstanding probe needs
        // the retransmission timer
        if !self.board.is_empty() && !self.timers.runs(Timer::Retransmit) && !self.timers.runs(Timer::Persist)
        {
            self.restart_retransmit_timer(now);
        }
        self.arm_tail_probe(now);
    }

    /// Returns the time to the next window probe: an RTO, then doubled each time (RFC 9293, section 3.8.6.1).
    fn persist_interval(&mut self) -> Duration {
        self.note(Timing::Read);
        let doubled = self.rtt.rto().0.saturating_mul(1 << self.persist_backoff.min(16));
        Duration(doubled).min(self.config.rto.max)
    }

    /// Sets the timer of the tail loss probe (RFC 8985, section 7.2).
    fn arm_tail_probe(&mut self, now: Instant) {
        let wanted = self.recovery.detection() == Detection::Rack
            && self.recovery.episode() == Episode::Open
            && !self.board.is_empty()
            && self.board.sacked() == 0
            && !self.send.tail_probe
            && !self.tail_probe.is_outstanding();
        if !wanted {
            return;
        }
        let more = self.tail_probe_margin();
        self.note(Timing::Probe { now, more });
        if !self.timers.runs(Timer::TailProbe)
            && let Some(rto_at) = self.timers.at(Timer::Retransmit)
        {
            let at = now + self.rtt.probe_timeout(more);
            self.timers.set(Timer::TailProbe, at.min(rto_at));
        }
    }

    /// Stops that timer.
    pub(crate) fn disarm_tail_probe(&mut self, now: Instant) {
        self.note(Timing::NoProbe { now });
        self.timers.stop(Timer::TailProbe);
    }

    /// Returns a zero-window or tail loss probe if its timer has expired.
    fn transmit_probe(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        if std::mem::take(&mut self.send.persist)
            && let Some(packet) = self.window_probe(cx)
        {
            return Some(packet);
        }
        let due = std::mem::take(&mut self.send.tail_probe) && !self.board.is_empty();
        if !due || self.board.sacked() > 0 || self.recovery.episode() != Episode::Open {
            return None;
        }
        let next = self.board.next();
        let end = self.written.min(next + self.mss()).min(self.peer_right_edge);
        let fresh = end > next;
        let packet = self.send_now(cx, fresh.then_some(end), self.board.len() - 1);
        self.tail_probe.sent(self.board.next(), !fresh);
        Some(packet)
    }

    /// Sends one byte, or a FIN, beyond the edge of a closed window. A window that is only too small is
    /// filled instead: RFC 9293, section 3.8.6.2.1, the override timeout.
    fn window_probe(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        let next = self.board.next();
        let idle = self.board.is_empty();
        if idle && next >= self.written + u64::from(self.fin_queued) {
            return None;
        }
        if self.peer_right_edge > next {
            let end = self.written.min(next + self.mss()).min(self.peer_right_edge).max(next + 1);
            return idle.then(|| self.send_now(cx, Some(end), 0));
        }
        let at = cx.now + self.persist_interval();
        self.timers.set(Timer::Persist, at);
        self.board.renege_at_una();
        let packet = self.send_now(cx, idle.then_some(next + 1), 0);
        self.stop_retransmit_timer(cx.now);
        Some(packet)
    }

    /// Sends a probe, whatever the windows say: new data up to `end`, or without `end` segment `i` again.
    fn send_now(&mut self, cx: &mut Cx<'_>, end: Option<u64>, i: usize) -> Pkt {
        let path = self.path();
        let plan = self.cc.plan(&path);
        match end {
            Some(end) => self.send_new(cx, end, false, &path, &plan),
            None => self.resend(cx, i, &path, &plan),
        }
    }

    fn send_new(&mut self, cx: &mut Cx<'_>, end: u64, limited: bool, path: &Path, plan: &Plan) -> Pkt {
        let start = self.board.next();
        let idle = self.board.is_empty();
        let snapshot = self.rate.on_sent(cx.now, idle);
        self.board.push(end, cx.now, snapshot);
        if idle {
            self.restart_user_timeout(cx.now);
        }
        let len = end - start;
        self.record_partial_segment(len, end);
        let rtt = self.rtt.min().unwrap_or_default();
        self.stats.steady.sent(cx.now, start, self.stats.established_at, rtt);
        if limited {
            self.recovery.sent_limited(len);
        }
        self.recovery.on_new(&self.board, len);
        let mut packet = self.build(cx, start, end);
        if self.send.tso_burst.ends(cx.now) {
            packet.tcp.flags = packet.tcp.flags.with(Flags::PSH);
        }
        if plan.dscp != Dscp::DEFAULT {
            packet.dscp = plan.dscp;
        }
        self.signal(cx.now, &mut packet, plan.requested_rate);
        // RFC 3168: neither a FIN alone nor a window probe (section 6.1.6) is ECT
        if self.negotiated.ecn && packet.body.len > 0 && end <= self.peer_right_edge {
            packet.ecn = Ecn::Ect0;
            if self.ecn.send_cwr {
                packet.tcp.flags = packet.tcp.flags.with(Flags::CWR);
                self.ecn.send_cwr = false;
            }
        }
        self.count_sent(cx, &packet, plan, path, false);
        packet
    }

    fn resend(&mut self, cx: &mut Cx<'_>, i: usize, path: &Path, plan: &Plan) -> Pkt {
        let snapshot = self.rate.on_sent(cx.now, false);
        let start = self.board.start_of(i);
        let end = self.board.get(i).map_or(start + 1, |s| s.end);
        self.board.resend(i, cx.now, snapshot);
        self.recovery.on_resent(start, end - start);
        let sack = self.recovery.detection().by_sack();
        if i == 0 && sack && self.recovery.episode() == Episode::Fast {
            self.restart_retransmit_timer(cx.now); // RFC 6675, section 6: recovery may outlast the timer
        }
        let mut packet = self.build(cx, start, end);
        self.signal(cx.now, &mut packet, plan.requested_rate);
        self.count_sent(cx, &packet, plan, path, true);
        packet
    }

    fn count_sent(&mut self, cx: &mut Cx<'_>, packet: &Pkt, plan: &Plan, path: &Path, resent: bool) {
        let bytes = Size(u64::from(packet.body.len));
        if let Some(probes) = &mut self.probes {
            probes.acks = probes.acks.saturating_sub(1);
            packet.tcp.timestamps.inspect(|ts| probes.data_timestamp_sent(ts.value));
        }
        if bytes.0 > 0 {
            self.stats.segments_sent += 1;
            self.stats.retransmits += u64::from(resent);
        }
        self.send.burst += bytes.0;
        if let Some(rate) = self.pace(plan, path) {
            self.pacer.sent(cx.now, rate, plan.charge(bytes, self.mss()));
        }
        if let Some(rate) = plan.requested_rate {
            self.grant_state.request(cx.now, rate);
        }
        self.last_sent = cx.now;
        self.disarm_tail_probe(cx.now);
        if !self.timers.runs(Timer::Retransmit) {
            self.restart_retransmit_timer(cx.now); // RFC 6298 (5.1)
        }
        self.cc.on_sent(cx, path, &SentSegment { bytes, resent, probe: false });
    }

    /// Sends the SYN or SYN/ACK, for the first time or again.
    fn transmit_syn(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        if self.board.next() == 0 {
            let snapshot = self.rate.on_sent(cx.now, true);
            self.board.push(1, cx.now, snapshot);
            self.restart_user_timeout(cx.now);
        } else if self.recovery.forced(&self.board).is_some() || self.send.syn {
            let snapshot = self.rate.on_sent(cx.now, false);
            self.board.resend(0, cx.now, snapshot);
            self.recovery.on_resent(0, 1);
        } else {
            if self.rcv.due() == AckDue::Now && self.state == State::SynReceived {
                return self.transmit_ack(cx);
            }
            return None;
        }
        self.send.syn = false;
        if !self.timers.runs(Timer::Retransmit) {
            self.restart_retransmit_timer(cx.now);
        }
        self.last_sent = cx.now;
        let mut packet = self.build(cx, 0, 1);
        self.signal_syn(cx.now, &mut packet);
        self.follow_syn();
        Some(packet)
    }

    fn transmit_reset(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        if !self.send.reset {
            return None;
        }
        self.send.reset = false;
        let mut packet = self.blank(cx);
        packet.tcp.flags = Flags::RST.with(Flags::ACK);
        packet.tcp.seq = self.iss.at(self.board.next());
        packet.tcp.ack = self.rcv.ack_field();
        self.stamp(&mut packet, cx.now); // RFC 7323, section 3.2
        packet.seal();
        Some(packet)
    }

    /// Returns a pure acknowledgment, if one is due.
    fn transmit_ack(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        match self.rcv.due() {
            AckDue::No => None,
            AckDue::By(at) if at > cx.now => {
                self.timers.set(Timer::DelayedAck, at);
                None
            }
            AckDue::By(_) | AckDue::Now => {
                let next = self.board.next();
                let mut packet = self.build(cx, next, next);
                self.signal(cx.now, &mut packet, None);
                Some(packet)
            }
        }
    }

    /// Builds a segment of the stream range `[start, end)`, or a pure ACK when it is empty.
    pub(crate) fn build(&mut self, cx: &mut Cx<'_>, start: u64, end: u64) -> Pkt {
        let mut packet = self.blank(cx);
        let syn = start == 0;
        let mut flags = if self.state == State::SynSent { Flags(0) } else { Flags::ACK };
        if syn && end > 0 {
            packet.tcp = self.syn_header(&mut flags);
        } else {
            packet.tcp.window = self.rcv.window.advertise(self.rcv.next(), self.rcv.readable(), self.mss());
        }
        let fin = self.fin_queued && end == self.written + 1 && end > start;
        if fin {
            flags = flags.with(Flags::FIN);
        }
        if self.ecn.echo && !syn {
            flags = flags.with(Flags::ECE);
        }
        let text = end - start - u64::from(fin) - u64::from(syn && end > 0);
        if text > 0 && start + text == self.written {
            flags = flags.with(Flags::PSH);
        }
        packet.tcp.flags = flags;
        packet.tcp.seq = self.iss.at(start);
        packet.body = Body { off: start.saturating_sub(1), len: text as u32 };
        if flags.has(Flags::ACK) {
            packet.tcp.ack = self.rcv.ack_field();
            let blocks = if syn { 0 } else { self.sack_space() };
            // a retransmission may have no room for blocks: then the ACK that is due is sent separately
            if text == 0 || text + blocks <= self.mss() {
                if blocks > 0 && self.negotiated.sack {
                    packet.tcp.sack = self.rcv.sack_list(self.sack_room());
                }
                if let Some(number) = self.rcv.echo().filter(|_| !syn) {
                    packet.tcp.probe = ProbeOption::Echo(number);
                }
                self.rcv.acked();
                self.rcv.quick.sent(cx.now, text > 0);
                self.timers.stop(Timer::DelayedAck);
            }
            self.clock.last_ack_sent = self.rcv.next();
        }
        if self.negotiated.timestamps || packet.tcp.timestamps.is_some() {
            let answers = flags.has(Flags::ACK);
            let echo =
                if answers { (self.clock.recent, self.clock.recent_phase) } else { Default::default() };
            self.put_stamps(&mut packet, cx.now, echo);
        }
        packet.seal();
        packet
    }

    fn syn_header(&mut self, flags: &mut Flags) -> TcpHeader {
        let passive = self.state != State::SynSent;
        let mut header = syn_options(&self.config, passive.then_some(&self.negotiated));
        header.window = self.rcv.window.advertise_syn(self.rcv.next());
        *flags = flags.with(Flags::SYN).with(self.ecn_of_syn(passive.then_some(&self.negotiated)));
        header
    }
}
